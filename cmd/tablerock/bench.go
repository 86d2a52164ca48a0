package main

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
)

func init() { commands = append(commands, newBench) }

func newBench(a *app) *cobra.Command {
	var n int
	var shape, dir, only string
	var seed uint64
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine with a generated table",
		Long: `Load, read, scan and filter a generated table in a temporary directory and print the
cost of each workload. The results are rough; use "go test -bench" in package bench for
comparisons.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.isTyped("data") {
				return usagef("--data: bench measures a temporary directory; its parent is that of --dir")
			}
			s, err := bench.ShapeOf(shape, n)
			if err != nil {
				return usagef("%v", err)
			}
			names, err := splitList("--only", only)
			if err != nil {
				return err
			}
			chosen, err := choose(shape, s.Len(), names)
			if err != nil {
				return err
			}
			temp, err := os.MkdirTemp(dir, "tablerock-bench-")
			if err != nil {
				return hint.With(err, "give the directory with --dir, or set TMPDIR")
			}
			list, err := a.measure(cmd.Context(), chosen, s, &bench.Run{Store: bench.Tablerock{}, Dir: temp, Seed: seed})
			if len(list) > 0 { // with an error, those of the workloads before it
				err = errors.Join(err, a.printer().List(list[0].Names(), list))
			}
			return errors.Join(err, os.RemoveAll(temp))
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&n, "entities", 100_000, "number of entities")
	flags.StringVar(&shape, "shape", bench.Grid,
		"`shape` of the table, which is the distribution of entities over partitions: "+strings.Join(bench.ShapeNames(), ", "))
	flags.StringVar(&only, "only", "", "run only workloads that start with one of these `names`, separated by commas")
	flags.StringVar(&dir, "dir", "", "parent `directory` of the temporary directory, on the disk to measure")
	flags.Uint64Var(&seed, "seed", 1, "seed of the generated table")
	return cmd
}

// maxDurableOps limits the operations of each writer that waits for the disk.
const maxDurableOps = 2000

// measure generates a table for r, runs the workloads on it and returns a record for each. After an error, those that ended
// have theirs.
func (a *app) measure(ctx context.Context, chosen []bench.Workload, s bench.Shape, r *bench.Run) (list []output.Record, err error) {
	var done atomic.Int64
	watch := func(name, unit string) (end func()) {
		done.Store(0)
		return a.newBar(name, 0).Counts(unit).Watch(func() (rows, bytes int64) { return done.Load(), 0 })
	}
	end := watch("generate", "entities")
	r.Data, err = bench.Generate(ctx, s, r.Seed, &done)
	end()
	if err != nil {
		return nil, err
	}
	r.Written = &done
	for _, w := range chosen {
		a.note("measuring %s", w.Name)
		ops := w.Ops(r.Data.Len())
		if w.Durable {
			ops = min(ops, maxDurableOps*w.Parallel)
		}
		end := watch(w.Name, "entities written")
		res, err := r.Do(ctx, w, ops, nil, nil)
		end()
		if err != nil {
			return list, err
		}
		list = append(list, output.Record{
			{"workload", w.Name},
			{"of", w.Op},
			{"ops", res.Ops},
			{"ops_per_s", int64(res.OpsPerSecond())},
			{"cpu_us_per_op", rounded(res.PerOp(res.CPU)/float64(time.Microsecond), 1000)},
			{"p50_us", micros(res.Quantile(0.5))},
			{"p99_us", micros(res.Quantile(0.99))},
		})
	}
	return list, nil
}

// choose returns the workloads that run on n entities and start with one of the names, all of
// them without names.
func choose(shape string, n int, names []string) ([]bench.Workload, error) {
	// Files in memory stay in the page cache.
	list := slices.DeleteFunc(bench.Workloads(), func(w bench.Workload) bool { return w.Cold || !w.Fits(shape, n) })
	for _, name := range names {
		if !slices.ContainsFunc(list, func(w bench.Workload) bool { return strings.HasPrefix(w.Name, name) }) {
			return nil, usagef("--only %s: no workload that runs here starts with that", name)
		}
	}
	return slices.DeleteFunc(list, func(w bench.Workload) bool {
		return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(w.Name, name) })
	}), nil
}

func micros(d time.Duration) float64 { return rounded(float64(d)/float64(time.Microsecond), 10) }

// rounded returns f rounded to a multiple of 1/parts.
func rounded(f, parts float64) float64 { return math.Round(f*parts) / parts }
