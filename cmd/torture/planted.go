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

func plantedCommand() *cobra.Command {
	var seed uint64
	var budget int64
	var only string
	l := limits{}
	cmd := &cobra.Command{
		Use:   "planted",
		Short: "Plant bugs below and above the engine, each of which torture crash must find",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			bugs := plant.Bugs()
			if only != "" {
				bugs = slices.DeleteFunc(bugs, func(b plant.Bug) bool { return b.Name != only })
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
				c, err := plant.Hunt(ctx, bugs[i], seed, budget)
				if err != nil {
					return fmt.Errorf("%w\nrepeat it with: torture planted --seed %d --budget %d --only %s", err, seed, budget, bugs[i].Name)
				}
				found.Add(1)
				mu.Lock()
				defer mu.Unlock()
				return bar.above(func() error {
					_, err := fmt.Fprintf(cmd.OutOrStdout(), "%-20s found after %5d states: %s\n    %.200v\n", c.Bug.Name, c.States, c.Bug.What, c.By)
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
