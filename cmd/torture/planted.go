package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/plant"
)

// planted is a planted bug. find returns how it was found, and the finding.
type planted struct {
	name, what string
	find       func(ctx context.Context) (how, finding string, err error)
}

// allPlanted returns the bugs for the crash campaign and those for unit tests.
func allPlanted(seed uint64, budget int64) []planted {
	var all []planted
	for _, b := range plant.Bugs() {
		all = append(all, planted{b.Name, b.What, func(ctx context.Context) (string, string, error) {
			c, err := plant.Hunt(ctx, b, seed, budget)
			if err != nil {
				return "", "", fmt.Errorf("%w\nrepeat it with: torture planted --seed %d --budget %d --only %s", err, seed, budget, b.Name)
			}
			return fmt.Sprintf("after %5d states", c.States), fmt.Sprintf("%.200v", c.By), nil
		}})
	}
	for _, b := range plant.SourceBugs() {
		all = append(all, planted{b.Name, b.What, func(ctx context.Context) (string, string, error) {
			dir, err := plant.SourceDir(ctx)
			if err != nil {
				return "", "", err
			}
			c, err := b.Hunt(ctx, dir)
			if err != nil {
				return "", "", fmt.Errorf("%w\nrepeat it with: torture planted --only %s", err, b.Name)
			}
			return fmt.Sprintf("by %s of %s in %.2f s", c.Test, b.Package, c.Seconds), c.By, nil
		}})
	}
	return all
}

func plantedCommand() *cobra.Command {
	var seed uint64
	var budget int64
	var only string
	l := limits{}
	cmd := &cobra.Command{
		Use:   "planted",
		Short: "Plant bugs around and in the engine, each of which torture crash or a unit test must find",
		Long: `Plant bugs below and above the engine, each of which torture crash must find, and bugs
in its source, each of which a unit test must find. The latter need Go, git and a
working directory in a checkout of the source, which does not change.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			bugs := allPlanted(seed, budget)
			if only != "" {
				bugs = slices.DeleteFunc(bugs, func(b planted) bool { return b.name != only })
				if len(bugs) == 0 {
					return usageError{fmt.Errorf("no planted bug %q", only)}
				}
			}
			l.count = uint64(len(bugs))
			var mu sync.Mutex
			var found atomic.Int64
			bar := startProgress(cmd.ErrOrStderr(), func() string { return fmt.Sprintf("%d of %d planted bugs found", found.Load(), len(bugs)) })
			defer bar.stop()
			return l.each(cmd.Context(), func() bool { return false }, func(ctx context.Context, i uint64) error {
				how, finding, err := bugs[i].find(ctx)
				if err != nil {
					return err
				}
				found.Add(1)
				mu.Lock()
				defer mu.Unlock()
				return bar.above(func() error {
					_, err := fmt.Fprintf(cmd.OutOrStdout(), "%-20s found %s: %s\n    %s\n", bugs[i].name, how, bugs[i].what, finding)
					return err
				})
			})
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&seed, "seed", 1, "seed of the first workload")
	flags.Int64Var(&budget, "budget", 10_000, "crash states to check for each bug")
	flags.StringVar(&only, "only", "", "plant only this bug")
	flags.IntVar(&l.workers, "workers", runtime.GOMAXPROCS(0), "concurrent bugs")
	return cmd
}
