package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/crash"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/workload"
	"github.com/tablerock-db/tablerock/vfs"
)

// crashFlags are the flags of torture crash.
type crashFlags struct {
	limits
	o       crash.Options
	states  int64
	profile string
	modes   []string
	lying   bool
}

func crashCommand() *cobra.Command {
	var f crashFlags
	cmd := &cobra.Command{
		Use:   "crash",
		Short: "Simulate power failures at every operation of random workloads, and again during recovery",
		Long: `Run workloads on a disk in memory. At every operation of the file system and at
points inside each write and sync, build disks that a power failure can leave. Open
the database on each disk, compare it with the oracle and write to it, with further
power failures, up to --depth in a row.

Workload i of a run has the seed --seed + i. The same flags give the same run.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.Uint64Var(&f.o.Seed, "seed", 1, "seed of the first workload")
	flags.Uint64Var(&f.count, "count", 0, "workloads to run (0: no limit)")
	flags.DurationVar(&f.duration, "duration", 0, "time to run for (0: no limit)")
	flags.Int64Var(&f.states, "states", 50_000, "end after at least this many crash states (0: no limit)")
	flags.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "concurrent workloads")
	flags.IntVar(&f.o.Steps, "steps", 40, "steps of a workload")
	flags.IntVar(&f.o.Choices, "choices", 1, "disks per point and random mode")
	flags.IntVar(&f.o.Depth, "depth", 3, "power failures in a row")
	flags.IntVar(&f.o.All, "all", 256, "at one point in 16, build all disks if there are at most this many (0: never)")
	flags.IntVar(&f.o.Point, "point", 0, "check this point only (0: all)")
	flags.BoolVar(&f.o.NoSync, "no-sync", false, "acknowledge writes before they are synced")
	flags.StringVar(&f.profile, "profile", "", "profile of the workloads: mixed, singles, batches, churn, tables, large, loads (default: each in turn)")
	flags.StringSliceVar(&f.modes, "modes", nil, "crash modes: kill, min, max, prefix, subset, sector, dirs (default: all)")
	flags.BoolVar(&f.lying, "lying", false, "discard syncs that the disk acknowledged: the engine must detect the losses")
	return cmd
}

func (f *crashFlags) run(cmd *cobra.Command) error {
	if err := f.parse(); err != nil {
		return usageError{err}
	}
	var counts crash.Counts
	begin := time.Now()
	summary := func() string {
		n := counts.States.Load()
		s := fmt.Sprintf("%d crash states (%d of them after several crashes) at %d points of %d workloads, %.0f/s",
			n, counts.Nested.Load(), counts.Points.Load(), counts.Workloads.Load(), rate(n, begin))
		if f.lying {
			s += fmt.Sprintf(", %d losses detected, %d disks without loss, %d losses without evidence on disk",
				counts.Detected.Load(), counts.Harmless.Load(), counts.Undetectable.Load())
		}
		return s
	}
	bar := startProgress(cmd.ErrOrStderr(), summary)
	profiles := workload.Profiles()
	err := f.each(cmd.Context(), func() bool { return f.states > 0 && counts.States.Load() >= f.states },
		func(ctx context.Context, i uint64) error {
			o := f.o
			o.Seed += i
			if f.profile == "" {
				o.Profile = profiles[o.Seed%uint64(len(profiles))]
			}
			return crash.Explore(ctx, o, &counts)
		})
	bar.stop()
	var v *crash.Violation
	if errors.As(err, &v) {
		return fmt.Errorf("%w\nrepeat it with: torture crash %s", err, f.repeat(v))
	}
	if err == nil {
		err = didNothing(counts.States.Load(), "crash state was checked")
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s, seeds from %d: 0 violations\n", summary(), f.o.Seed)
	return nil
}

func (f *crashFlags) parse() error {
	if f.profile != "" {
		var ok bool
		if f.o.Profile, ok = profileOf(f.profile); !ok {
			return fmt.Errorf("no profile %q", f.profile)
		}
	}
	for _, name := range f.modes {
		if name != crash.Kill && !slices.Contains(vfs.CrashModes, name) {
			return fmt.Errorf("no crash mode %q", name)
		}
		f.o.Modes = append(f.o.Modes, name)
	}
	if f.lying {
		f.o.Modes, f.o.Depth, f.o.All = []string{"lying"}, 1, 0
	}
	return nil
}

func profileOf(name string) (workload.Profile, bool) {
	for _, p := range workload.Profiles() {
		if p.String() == name {
			return p, true
		}
	}
	return 0, false
}

// repeat returns the flags of a run that finds v only.
func (f *crashFlags) repeat(v *crash.Violation) string {
	s := fmt.Sprintf("--seed %d --count 1 --states 0 --profile %v --steps %d --choices %d --depth %d --all %d",
		v.Seed, v.Profile, f.o.Steps, f.o.Choices, f.o.Depth, f.o.All)
	if v.Point > 0 {
		s += fmt.Sprintf(" --point %d", v.Point)
	}
	for _, m := range f.modes {
		s += " --modes " + m
	}
	if f.lying {
		s += " --lying"
	}
	if f.o.NoSync {
		s += " --no-sync"
	}
	return s
}
