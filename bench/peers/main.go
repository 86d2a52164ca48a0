// Command peers measures Tablerock beside other embedded stores, and makes the page
// BENCHMARKS.md of the repository.
//
//	go run . -quick                          all workloads, 10,000 entities: one minute
//	go run . -out results.jsonl              1,000,000 entities, 3 repetitions: about 2 hours
//	go run . -sizes 100000,1000000,10000000 -workloads growth -out results.jsonl
//	go run . gates results.jsonl             compare with the goals: a second
//	go run . report results.jsonl            write BENCHMARKS.md and its pictures: seconds
//
// RocksDB and LMDB need a C compiler, the Debian packages librocksdb-dev and
// liblmdb-dev, and the build tags rocksdb and lmdb:
//
//	go run -tags rocksdb,lmdb . -quick -engines tablerock,rocksdb,lmdb
//
// Each repetition of a workload on an engine has its own process, and the repetitions of
// the engines alternate. A result is appended to the file when its process ends, and the
// command skips results that the file has, so it may be interrupted and started again.
//
// All engines get the same entities in the same order, encode them within the measured
// time, and fold every property that they read into a checksum. The process compares the
// checksum with that of the generated entities, and after a workload that writes it
// reads the whole table and compares that: a difference is an error.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/tablerock-db/tablerock/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// childCommand makes the program run one job.
const childCommand = "child"

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case childCommand:
			return runChild(stdin, stdout)
		case "gates":
			return printGates(args[1:], stdout, stderr)
		case "report":
			return writeReport(args[1:], stderr)
		}
	}
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	return s.measure(ctx, stdout, stderr)
}

// settings are the flags of a measurement.
type settings struct {
	sizes     []int
	shapes    []string
	engines   []string
	workloads []bench.Workload
	reps      int
	seed      uint64
	dir       string
	out       string
	json      bool
	quick     bool
	divide    int
	cacheMiB  int64
	profile   string
	command   string
}

func parse(args []string, stderr io.Writer) (*settings, error) {
	s := &settings{command: "go run . " + strings.Join(args, " ")}
	fs := flag.NewFlagSet("peers", flag.ContinueOnError)
	fs.SetOutput(stderr)
	sizes := fs.String("sizes", defaultSizes, "comma-separated numbers of entities")
	shapes := fs.String("shapes", bench.Grid, "comma-separated shapes: "+strings.Join(bench.ShapeNames(), ", "))
	names := fs.String("engines", strings.Join(append(engineNames(), rawName), ","),
		"comma-separated engines; raw measures the disk alone")
	workloads := fs.String("workloads", "all", "comma-separated workloads, or their first parts such as load,get/key=missing, or growth or caches")
	fs.IntVar(&s.reps, "reps", 3, "repetitions")
	fs.Uint64Var(&s.seed, "seed", 1, "seed of entities and orders")
	fs.StringVar(&s.dir, "dir", "", "parent of the temporary directory for databases, on the disk to measure")
	fs.StringVar(&s.out, "out", "", "`file` to append results to; results that it has are skipped")
	fs.BoolVar(&s.json, "json", false, "print one JSON object for each result")
	fs.BoolVar(&s.quick, "quick", false, "10,000 entities, one repetition, few operations: ends in a minute; its figures mean little")
	fs.Int64Var(&s.cacheMiB, "cache-mib", 512, "block cache in MiB of workloads that set none")
	fs.StringVar(&s.profile, "cpuprofile", "", "`directory` for CPU profiles of the measured parts, instead of results")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if s.divide = 1; s.quick {
		s.reps, s.divide, s.cacheMiB = 1, quickDivide, quickCacheMiB
	}
	if s.quick && *sizes == defaultSizes {
		*sizes = strconv.Itoa(quickSize)
	}
	if s.reps < 1 {
		return nil, fmt.Errorf("%d repetitions: at least one is needed", s.reps)
	}
	return s, s.resolve(*sizes, *shapes, *names, *workloads)
}

// defaultSizes is the size of the report.
const defaultSizes = "1000000"

// Settings of -quick. It divides the numbers of operations.
const quickSize, quickDivide, quickCacheMiB = 10_000, 50, 64
