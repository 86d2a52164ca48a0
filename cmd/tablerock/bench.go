package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/bench"
)

func init() { commands = append(commands, newBench) }

func newBench(a *app) *cobra.Command {
	var n int
	var shape, dir, only string
	var seed uint64
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine with a generated table",
		Long: `Load, read, scan and filter a generated table in a temporary directory, which is
deleted at the end, and print what each kind of work has cost. It is a quick look;
"go test -bench" in package bench measures with care.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := bench.ShapeOf(shape, n)
			if err != nil {
				return usagef("%v", err)
			}
			temp, err := os.MkdirTemp(dir, "tablerock-bench-")
			if err != nil {
				return err
			}
			err = a.measure(cmd, &bench.Run{Store: bench.Tablerock{}, Data: bench.NewDataset(s, seed), Dir: temp, Seed: seed}, shape, only)
			return errors.Join(err, os.RemoveAll(temp))
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&n, "entities", 100_000, "size of the table")
	flags.StringVar(&shape, "shape", bench.Grid, "how its entities are spread over partitions: "+strings.Join(bench.ShapeNames(), ", "))
	flags.StringVar(&only, "only", "", "measure only kinds of work that begin with one of these `names`, with commas between")
	flags.StringVar(&dir, "dir", "", "make the temporary directory in this `directory`, on the disk to be measured (default: the system's)")
	flags.Uint64Var(&seed, "seed", 1, "seed of the generated table")
	return cmd
}

// mostDurable is how many operations that wait for the disk are measured.
const mostDurable = 2000

// measure runs all workloads that make sense and prints one line for each.
func (a *app) measure(cmd *cobra.Command, r *bench.Run, shape, only string) error {
	begins := splitList(only)
	var list []record
	for _, w := range bench.Workloads() {
		chosen := len(begins) == 0 || slices.ContainsFunc(begins, func(p string) bool { return strings.HasPrefix(w.Name, p) })
		if !chosen || !w.Fits(shape) {
			continue
		}
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		a.note("measuring %s", w.Name)
		ops := w.Ops(r.Data.Len())
		if w.Durable {
			ops = min(ops, mostDurable*w.Parallel)
		}
		res, err := r.Do(w, ops, nil, nil)
		if err != nil {
			return err
		}
		list = append(list, record{
			{"workload", w.Name},
			{"of", w.Op},
			{"ops", res.Ops},
			{"ops/s", int64(res.OpsPerSecond())},
			{"cpu us/op", fmt.Sprintf("%.3f", res.PerOp(res.CPU)/float64(time.Microsecond))},
			{"p50 us", micros(res.Quantile(0.5))},
			{"p99 us", micros(res.Quantile(0.99))},
		})
	}
	if len(list) == 0 {
		return usagef("--only %q: no kind of work begins so", only)
	}
	return a.printList(names(list[0]), list)
}

func micros(d time.Duration) string {
	return fmt.Sprintf("%.1f", float64(d)/float64(time.Microsecond))
}
