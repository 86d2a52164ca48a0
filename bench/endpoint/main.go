// Command endpoint sends requests to a Table service and prints the cost of an operation:
// the CPU time and the memory of the service, and the latency that clients see.
//
//	tablerock serve --data DIR --ready-file ready.json &
//	go run ./bench/endpoint -ready-file ready.json
//	go run ./bench/endpoint -pid PID -connection-string 'AccountName=...;AccountKey=...;TableEndpoint=...'
//	go run ./bench/endpoint -exec 'tablerock serve --data DIR'
//
// A service of several processes, such as servers on PostgreSQL, has several ids:
//
//	go run ./bench/endpoint -ready-file ready.json -servers 127.0.0.1:10003 -pid PID,PID,POSTMASTER
//
// It works with any service of the protocol. With -exec the command starts the service,
// restarts it at the end and measures the time to the first response. The CPU time of
// another process is available on Linux only.
//
// The client writes its requests to plain keep-alive sockets. It costs little CPU that
// way, because it shares the machine with the service.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "endpoint:", err)
		os.Exit(1)
	}
}

// workloadNames are the workloads in the order of their runs.
var workloadNames = []string{"batch", "insert", "get", "scan", "filter"}

// settings are the command's flags.
type settings struct {
	connectionString string
	readyFile        string
	pids             []int
	servers          []string
	exec             string
	signal           string
	wait             time.Duration

	entities  int
	inserts   int
	gets      int
	scans     int
	filters   int
	conns     int
	reps      int
	seed      uint64
	workloads string
	insecure  bool
	keep      bool

	json     bool
	markdown bool
}

func parseSettings(args []string, stderr io.Writer) (settings, error) {
	var s settings
	fs := flag.NewFlagSet("endpoint", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&s.connectionString, "connection-string", "UseDevelopmentStorage=true", "connection `string` of the service and its account")
	fs.StringVar(&s.readyFile, "ready-file", "", "read connection string and process id from this `file` of tablerock serve")
	fs.Func("pid", "`ids` of processes of the service, separated by commas, to report the CPU time of all with their children and the memory of the first",
		s.addPIDs)
	fs.Func("servers", "`addresses` of more servers of the account, separated by commas, as 127.0.0.1:10003, to spread the connections over",
		func(list string) error {
			s.servers = strings.Split(list, ",")
			return nil
		})
	fs.StringVar(&s.exec, "exec", "", "`command` that starts the service; it is restarted at the end; arguments are split at blanks")
	fs.StringVar(&s.signal, "signal", "TERM", "with -exec, `signal` that ends the service before its restart: TERM or KILL")
	fs.DurationVar(&s.wait, "wait", time.Minute, "with -exec, how long to wait for the service")
	fs.IntVar(&s.entities, "n", 100_000, "entities to load, in batches of 100")
	fs.IntVar(&s.inserts, "inserts", 50_000, "single inserts")
	fs.IntVar(&s.gets, "gets", 100_000, "point gets")
	fs.IntVar(&s.scans, "scans", 8, "full scans of the loaded entities")
	fs.IntVar(&s.filters, "filters", 20, "queries of the loaded entities with a filter on a property")
	fs.IntVar(&s.conns, "conns", 64, "connections, each with one request at a time")
	fs.IntVar(&s.reps, "reps", 1, "repetitions; the report has the run with the median cost of each workload")
	fs.Uint64Var(&s.seed, "seed", 1, "seed of entities and of the order of gets")
	fs.StringVar(&s.workloads, "workloads", strings.Join(workloadNames, ","), "workloads to run, in this order; batch always runs, because it loads the entities")
	fs.BoolVar(&s.insecure, "insecure", false, "accept any certificate of the service")
	fs.BoolVar(&s.keep, "keep", false, "keep the tables at the end")
	fs.BoolVar(&s.json, "json", false, "print JSON")
	fs.BoolVar(&s.markdown, "markdown", false, "print a Markdown table")
	if err := fs.Parse(args); err != nil {
		return s, err
	}
	if fs.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if s.entities < perBatch || s.conns < 1 || s.reps < 1 {
		return s, fmt.Errorf("-n must be at least %d, -conns and -reps at least 1", perBatch)
	}
	if min(s.inserts, s.gets, s.scans, s.filters) < 0 {
		return s, errors.New("-inserts, -gets, -scans and -filters must not be negative")
	}
	if s.signal != "TERM" && s.signal != "KILL" {
		return s, fmt.Errorf("-signal %q: want TERM or KILL", s.signal)
	}
	for name := range strings.SplitSeq(s.workloads, ",") {
		if !slices.Contains(workloadNames, strings.TrimSpace(name)) {
			return s, fmt.Errorf("-workloads %q: want some of %v", name, workloadNames)
		}
	}
	if s.exec != "" && (len(s.pids) > 0 || s.readyFile != "") {
		return s, errors.New("-exec excludes -pid and -ready-file")
	}
	s.entities -= s.entities % perBatch
	return s, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, err := parseSettings(args, stderr)
	if err != nil {
		return err
	}
	if s.readyFile != "" {
		if err := s.readReadyFile(); err != nil {
			return err
		}
	}
	t, err := parseTarget(s.connectionString)
	if err != nil {
		return err
	}
	t.insecure = s.insecure
	var service *service
	if s.exec != "" {
		if service, _, err = startService(ctx, s.exec, t, "Tables", s.wait); err != nil {
			return err
		}
		defer func() { service.end(os.Kill) }()
		s.pids = []int{service.pid()}
	}
	b := newHarness(s, t)
	report, err := b.measure(ctx, stderr)
	if err != nil {
		return err
	}
	if service != nil {
		if report.Restart, err = service.restart(ctx, s, t, b.data.entityPath(tableLoaded, s.entities/2)); err != nil {
			return err
		}
	}
	if !s.keep {
		if err := b.dropTables(); err != nil {
			return err
		}
	}
	return report.print(stdout, s)
}

// addPIDs adds the process ids of a list.
func (s *settings) addPIDs(list string) error {
	for _, text := range strings.Split(list, ",") {
		pid, err := strconv.Atoi(text)
		if err != nil || pid < 1 {
			return fmt.Errorf("%q is no process id", text)
		}
		s.pids = append(s.pids, pid)
	}
	return nil
}

// selects reports whether -workloads names the workload.
func (s *settings) selects(name string) bool {
	for _, w := range strings.Split(s.workloads, ",") {
		if strings.TrimSpace(w) == name {
			return true
		}
	}
	return false
}
