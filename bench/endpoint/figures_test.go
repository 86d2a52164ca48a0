package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

var (
	figures       = flag.Bool("figures", false, "measure whole workloads in TestFigures and print a table")
	figuresRounds = flag.Int("figures.rounds", 3, "rounds of TestFigures")
	figuresScript = flag.String("figures.azurite", "", "dist/src/table/main.js of Azurite, for TestFigures")
)

// setup is a service to measure. Its accounts have clients at the same time.
type setup struct {
	name  string
	start func(t *testing.T, dir string) *running
}

// running is a setup that runs.
type running struct {
	accounts  []string // connection strings
	servers   []string // more addresses of the first account
	pids      []int
	databases int // the last of pids are servers of PostgreSQL
}

// TestFigures runs the workloads on the embedded engine, on PostgreSQL with one to three
// servers and with one to three databases, and on Azurite, round after round:
//
//	go test ./bench/endpoint -run TestFigures -figures -figures.azurite main.js -v -timeout 60m
//
// Without the flag it checks with few calls that one of them runs.
func TestFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program and starts databases")
	}
	program := filepath.Join(t.TempDir(), "tablerock")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/tablerock").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	setups := []setup{
		{"engine", func(t *testing.T, dir string) *running { return embedded(t, program, dir) }},
		{"PostgreSQL", func(t *testing.T, dir string) *running { return onPostgres(t, program, dir, 1) }},
		{"PostgreSQL, 2 servers", func(t *testing.T, dir string) *running { return onPostgres(t, program, dir, 2) }},
		{"PostgreSQL, 3 servers", func(t *testing.T, dir string) *running { return onPostgres(t, program, dir, 3) }},
		{"2 accounts, 2 PostgreSQL", func(t *testing.T, dir string) *running { return sharded(t, program, dir, 2) }},
		{"3 accounts, 3 PostgreSQL", func(t *testing.T, dir string) *running { return sharded(t, program, dir, 3) }},
	}
	if *figuresScript != "" {
		setups = append(setups, setup{"Azurite", azurite})
	}
	sizes := []string{"-n", "300", "-inserts", "20", "-gets", "20", "-scans", "1"}
	rounds := 1
	if *figures {
		sizes, rounds = []string{"-n", "20000", "-inserts", "10000", "-gets", "20000", "-scans", "3"}, *figuresRounds
	} else {
		setups = setups[4:5] // a server, two accounts and two databases
	}
	found := map[string][]figure{}
	for range rounds {
		for _, s := range setups {
			t.Run(s.name, func(t *testing.T) {
				r := s.start(t, t.TempDir())
				for _, f := range r.measure(t, sizes) {
					found[s.name+"\x00"+f.workload] = append(found[s.name+"\x00"+f.workload], f)
				}
			})
		}
	}
	rows := [][]string{{"setup", "workload", "per second", "CPU a call", "of servers", "of PostgreSQL", "p50", "p99"}}
	for _, s := range setups {
		for _, workload := range []string{"batch", "insert", "get", "scan"} {
			list := found[s.name+"\x00"+workload]
			if len(list) == 0 {
				t.Errorf("%s has no figures of %s", s.name, workload)
				continue
			}
			slices.SortFunc(list, func(a, b figure) int { return cmp.Compare(a.servers+a.postgres, b.servers+b.postgres) })
			f := list[len(list)/2]
			micro := func(d time.Duration) string { return fmt.Sprintf("%.0f us", float64(d)/1e3) }
			rows = append(rows, []string{
				s.name, workload, fmt.Sprintf("%.0f", f.perSecond), micro(f.servers + f.postgres), micro(f.servers), micro(f.postgres),
				f.p50.Round(time.Microsecond).String(), f.p99.Round(time.Microsecond).String(),
			})
		}
	}
	var table bytes.Buffer
	printMarkdown(&table, rows)
	t.Log("\n" + table.String())
}

// figure is the cost of a workload: of an entity of a scan, of a call otherwise.
type figure struct {
	workload          string
	perSecond         float64 // of all accounts
	servers, postgres time.Duration
	p50, p99          time.Duration
}

// measure runs the workloads with a client of each account at the same time.
func (r *running) measure(t *testing.T, sizes []string) []figure {
	t.Helper()
	reports := make([]report, len(r.accounts))
	errs := make(chan error)
	for i, account := range r.accounts {
		args := append([]string{
			"-connection-string", account, "-json", "-workloads", "insert,get,scan", "-conns", fmt.Sprint(48 / len(r.accounts)), "-pid", join(r.pids),
		}, sizes...)
		if i == 0 && len(r.servers) > 0 {
			args = append(args, "-servers", strings.Join(r.servers, ","))
		}
		go func() {
			var out bytes.Buffer
			err := run(t.Context(), args, &out, io.Discard)
			if err == nil {
				err = json.Unmarshal(out.Bytes(), &reports[i])
			}
			errs <- err
		}()
	}
	for range r.accounts {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	var list []figure
	for w, first := range reports[0].Results {
		f := figure{workload: first.Workload, p50: first.P50, p99: first.P99}
		calls := 0.0
		for _, rep := range reports {
			res := rep.Results[w]
			f.perSecond += res.PerSecond
			calls += float64(res.Calls)
			if res.Workload == "scan" {
				calls += float64(res.Entities - res.Calls)
			}
		}
		// The clients of several accounts see the processor time of all of them.
		for i, cpu := range first.Processes {
			part := &f.servers
			if i >= len(r.pids)-r.databases {
				part = &f.postgres
			}
			*part += time.Duration(float64(cpu) / calls)
		}
		list = append(list, f)
	}
	return list
}

func join(pids []int) string {
	var text []string
	for _, pid := range pids {
		text = append(text, fmt.Sprint(pid))
	}
	return strings.Join(text, ",")
}

// serve starts a server with a free port, and returns its connection string and process.
func serve(t *testing.T, program, dir string, args ...string) (connection string, pid int) {
	t.Helper()
	ready := filepath.Join(dir, fmt.Sprintf("ready%d.json", time.Now().UnixNano()))
	cmd := exec.Command(program, append([]string{"serve", "--listen", "127.0.0.1:0", "--ready-file", ready}, args...)...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // out has the reason
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		<-ended
	})
	var s settings
	poll(t, func() bool {
		select {
		case <-ended:
			t.Fatalf("the server has ended: %s", &out)
		default:
		}
		s = settings{readyFile: ready}
		return s.readReadyFile() == nil
	})
	return s.connectionString, cmd.Process.Pid
}

// poll calls done until it returns true.
func poll(t *testing.T, done func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("not ready after a minute")
		}
	}
}

func embedded(t *testing.T, program, dir string) *running {
	connection, pid := serve(t, program, dir, "--data", filepath.Join(dir, "data"))
	return &running{accounts: []string{connection}, pids: []int{pid}}
}

// database starts a PostgreSQL that syncs each commit, and returns the URL of a database for
// servers.
func database(t *testing.T, program string) (address string, pid int) {
	pg := pgtest.Start(t)
	address = pg.NewDatabase(t)
	if out, err := exec.Command(program, "backend", "init", address, "--allow-async").CombinedOutput(); err != nil {
		t.Fatalf("backend init: %v\n%s", err, out)
	}
	return address, pg.Processes()[0]
}

// onPostgres starts a number of servers on one database.
func onPostgres(t *testing.T, program, dir string, servers int) *running {
	address, pid := database(t, program)
	r := &running{databases: 1}
	for range servers {
		connection, server := serve(t, program, dir, "--backend", address, "--allow-async")
		if len(r.accounts) == 0 {
			r.accounts = []string{connection}
		} else {
			r.servers = append(r.servers, mustTarget(t, connection).host)
		}
		r.pids = append(r.pids, server)
	}
	r.pids = append(r.pids, pid)
	return r
}

// sharded starts a server with accounts on databases of their own.
func sharded(t *testing.T, program, dir string, accounts int) *running {
	r := &running{databases: accounts}
	args := []string{"--allow-async"}
	var pids []int
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("key", 20)))
	for i := range accounts {
		address, pid := database(t, program)
		args = append(args, "--account", fmt.Sprintf("account%d:%s@%s", i, key, address))
		pids = append(pids, pid)
	}
	connection, server := serve(t, program, dir, args...)
	host := mustTarget(t, connection).host
	for i := range accounts {
		r.accounts = append(r.accounts, fmt.Sprintf("AccountName=account%d;AccountKey=%s;TableEndpoint=http://%s/account%d", i, key, host, i))
	}
	r.pids = append([]int{server}, pids...)
	return r
}

// azurite starts Azurite's table service.
func azurite(t *testing.T, dir string) *running {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)
	cmd := exec.Command("node", *figuresScript, "--location", dir, "--tablePort", port, "--silent", "--skipApiVersionCheck", "--disableTelemetry")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Kill) // it may have ended
		_ = cmd.Wait()
	})
	poll(t, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return &running{accounts: []string{strings.Replace(development, "127.0.0.1:10002", address, 1)}, pids: []int{cmd.Process.Pid}}
}
