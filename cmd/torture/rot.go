package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/rot"
)

func rotCommand() *cobra.Command {
	var o rot.Options
	var l limits
	cmd := &cobra.Command{
		Use:   "rot",
		Short: "Damage every byte, sector and file of small databases: the engine must detect it, or read the same data",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runRot(cmd, l, o) },
	}
	flags := cmd.Flags()
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the bits to flip and of garbage")
	flags.IntVar(&o.Stride, "stride", 1, "damage only every n-th byte")
	flags.BoolVar(&o.EveryBit, "every-bit", false, "flip all eight bits of each byte instead of one")
	flags.DurationVar(&l.duration, "duration", 0, "time to run for (0: no limit)")
	flags.IntVar(&l.workers, "workers", runtime.GOMAXPROCS(0), "concurrent damages")
	return cmd
}

func runRot(cmd *cobra.Command, l limits, o rot.Options) error {
	subjects, err := rot.Build(cmd.Context())
	if err != nil {
		return fmt.Errorf("build the databases: %w", err)
	}
	var r rot.Report
	var jobs []func(context.Context) error
	for i := range subjects {
		fmt.Fprintln(cmd.OutOrStdout(), subjects[i].Describe())
		more, err := subjects[i].Jobs(o, &r)
		if err != nil {
			return err
		}
		jobs = append(jobs, more...)
	}
	begin := time.Now()
	l.count = uint64(len(jobs))
	summary := func() string {
		return fmt.Sprintf("%d damages, %d detected, %d harmless, %.0f/s",
			r.Total.Load(), r.Detected.Load(), r.Harmless.Load(), rate(r.Total.Load(), begin))
	}
	bar := startProgress(cmd.ErrOrStderr(), summary)
	err = l.each(cmd.Context(), func() bool { return false }, func(ctx context.Context, i uint64) error { return jobs[i](ctx) })
	bar.stop()
	var v *rot.Violation
	if errors.As(err, &v) {
		return fmt.Errorf("%w\nrepeat it with: torture rot --seed %d --stride %d --every-bit=%v --workers 1", err, o.Seed, o.Stride, o.EveryBit)
	}
	if err == nil {
		err = didNothing(r.Total.Load(), "damage was done")
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: 0 violations\n", summary())
	for _, line := range r.Lines() {
		fmt.Fprintln(cmd.OutOrStdout(), "  "+line)
	}
	return nil
}
