package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/faults"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/workload"
)

func errorsCommand() *cobra.Command {
	o := faults.Options{Sites: faults.NewSites()}
	l := limits{count: uint64(len(workload.Profiles()))}
	var profile string
	cmd := &cobra.Command{
		Use:   "errors",
		Short: "Fail every operation of the file system, one at a time, in every way",
		Long: `Run scripted workloads, one per profile. For N = 1, 2, 3, ... fail the N-th operation
of the file system: with EIO or ENOSPC, half done, done and then failed, a sync in
each way of real file systems; once or from then on. The running database must keep
its promises, and after a power failure the disk must contain everything that was
acknowledged.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var fixed bool
			if o.Profile, fixed = profileOf(profile); profile != "" && !fixed {
				return usageError{fmt.Errorf("no profile %q", profile)}
			}
			return runErrors(cmd, l, o, fixed)
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the first workload")
	flags.Uint64Var(&l.count, "count", l.count, "workloads to run (0: no limit)")
	flags.DurationVar(&l.duration, "duration", 0, "time to run for (0: no limit)")
	flags.IntVar(&l.workers, "workers", runtime.GOMAXPROCS(0), "concurrent workloads")
	flags.IntVar(&o.Steps, "steps", 25, "steps of a workload")
	flags.IntVar(&o.Stride, "stride", 1, "fail only every n-th operation")
	flags.Uint64Var(&o.Only, "operation", 0, "fail this operation only (0: all)")
	flags.StringVar(&profile, "profile", "", "profile of the workloads (default: each in turn)")
	return cmd
}

func runErrors(cmd *cobra.Command, l limits, o faults.Options, fixed bool) error {
	var counts faults.Counts
	begin := time.Now()
	summary := func() string {
		return fmt.Sprintf("%d failures at %d operations of %d workloads, %d disks checked, %.0f/s",
			counts.Runs.Load(), counts.Operations.Load(), counts.Workloads.Load(), counts.States.Load(), rate(counts.Runs.Load(), begin))
	}
	bar := startProgress(cmd.ErrOrStderr(), summary)
	profiles := workload.Profiles()
	err := l.each(cmd.Context(), func() bool { return false }, func(ctx context.Context, i uint64) error {
		o := o
		o.Seed += i
		if !fixed {
			o.Profile = profiles[o.Seed%uint64(len(profiles))]
		}
		return faults.Run(ctx, o, &counts)
	})
	bar.stop()
	var v *faults.Violation
	if errors.As(err, &v) {
		return fmt.Errorf("%w\nrepeat it with: torture errors --seed %d --count 1 --profile %v --steps %d --operation %d", err, v.Seed, v.Profile, o.Steps, v.N)
	}
	if err == nil {
		err = didNothing(counts.Runs.Load(), "operation failed")
	}
	if err != nil {
		return err
	}
	var missed []string
	sites := o.Sites.List()
	for _, s := range sites {
		if s.Failed == 0 {
			missed = append(missed, fmt.Sprintf("  %v in %s (%s:%d)", s.Kind, s.Func, s.File[strings.LastIndexByte(s.File, '/')+1:], s.Line))
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s, seeds from %d: 0 violations\n", summary(), o.Seed)
	fmt.Fprintf(cmd.OutOrStdout(), "%d of %d call sites failed at least once\n", len(sites)-len(missed), len(sites))
	if len(missed) > 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "never failed:\n%s\n", strings.Join(missed, "\n"))
	}
	return nil
}
