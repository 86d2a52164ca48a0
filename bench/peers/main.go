// Command peers runs the workloads of package bench on Tablerock and on other embedded
// stores and prints a comparison.
//
//	go run . -n 1000000 -reps 3 -workloads all -engines tablerock,pebble,goleveldb
//
// Each repetition of a workload on a store has its own process, and the repetitions of
// the stores alternate. Workloads that only read use a database that another process
// loaded in random order and compacted. The command fails if the stores read different
// checksums.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/tablerock-db/tablerock/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// settings are the command's flags.
type settings struct {
	n         int
	reps      int
	seed      uint64
	workloads string
	engines   string
	shapes    string
	dir       string
	json      string
	markdown  bool
	cacheMiB  int64

	// Flags for child processes.
	child   string // the workload, or "prepare"
	loaded  string
	profile string
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var s settings
	fs := flag.NewFlagSet("peers", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.IntVar(&s.n, "n", 100_000, "entities")
	fs.IntVar(&s.reps, "reps", 3, "repetitions")
	fs.Uint64Var(&s.seed, "seed", 1, "seed of entities and orders")
	fs.StringVar(&s.workloads, "workloads", "all", "comma-separated prefixes of names of workloads, such as load,get/key=missing")
	fs.StringVar(&s.engines, "engines", "tablerock,pebble,goleveldb", "comma-separated stores: tablerock, tablerock-compact, pebble, goleveldb")
	fs.StringVar(&s.shapes, "shapes", bench.Grid, "comma-separated shapes: "+strings.Join(bench.ShapeNames(), ", "))
	fs.StringVar(&s.dir, "dir", "", "directory for databases (default a temporary one)")
	fs.StringVar(&s.json, "json", "", "`file` for the results of all runs")
	fs.BoolVar(&s.markdown, "markdown", false, "print Markdown tables")
	fs.Int64Var(&s.cacheMiB, "cache-mib", 512, "block cache in MiB")
	fs.StringVar(&s.child, "child", "", "run this one workload in this process and print its result (used by the command itself)")
	fs.StringVar(&s.loaded, "loaded", "", "with -child, the database to read")
	fs.StringVar(&s.profile, "cpuprofile", "", "with -child, file for a CPU profile of the measured part")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if s.child != "" {
		return s.runChild(stdout)
	}
	return s.compare(ctx, stdout, stderr)
}

// stores returns the stores that -engines names.
func (s *settings) stores() ([]bench.Store, error) {
	all := []bench.Store{bench.Tablerock{}, bench.Tablerock{Small: true}, pebbleStore{}, levelStore{}}
	var out []bench.Store
names:
	for name := range strings.SplitSeq(s.engines, ",") {
		for _, store := range all {
			if store.Name() == name {
				out = append(out, store)
				continue names
			}
		}
		return nil, fmt.Errorf("engine %q is not known", name)
	}
	return out, nil
}

// selected returns the workloads that -workloads names.
func (s *settings) selected() ([]bench.Workload, error) {
	var out []bench.Workload
	for _, w := range bench.Workloads() {
		for prefix := range strings.SplitSeq(s.workloads, ",") {
			if s.workloads == "all" || strings.HasPrefix(w.Name, prefix) {
				out = append(out, w)
				break
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no workload starts with %q", s.workloads)
	}
	return out, nil
}
