package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/soak"
)

func soakCommand() *cobra.Command {
	var o soak.Options
	c := &cobra.Command{
		Use:   "soak --backend URL",
		Short: "Overwrite, delete and drop on PostgreSQL, and watch its sizes",
		Long: `Overwrites, deletes and drops entities in a database that "tablerock backend init" has prepared, and compares
the rows, the table and the index with a fresh copy of what is live. It fails if one of them is
` + fmt.Sprint(soak.MaxRatio) + ` times as large, after the first minute.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.URL == "" {
				return usageError{errors.New("soak needs --backend URL")}
			}
			if o.Duration <= soak.WarmUp {
				return usageError{fmt.Errorf("--duration must be more than %v", soak.WarmUp)}
			}
			return runSoak(cmd, o)
		},
	}
	c.Flags().StringVar(&o.URL, "backend", "", "`URL` of the database")
	c.Flags().DurationVar(&o.Duration, "duration", 20*time.Minute, "how long")
	c.Flags().DurationVar(&o.Interval, "interval", 10*time.Second, "time between two lines")
	c.Flags().IntVar(&o.Entities, "entities", 200_000, "size of the table that is overwritten")
	c.Flags().IntVar(&o.Workers, "workers", 4, "writers")
	c.Flags().Uint64Var(&o.Seed, "seed", 1, "seed of the entities and of the order of writes")
	return c
}

func runSoak(cmd *cobra.Command, o soak.Options) error {
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%8s %10s %10s %10s %6s %10s %10s %6s %10s %10s %6s %8s\n",
		"time", "ops", "live rows", "dead rows", "times", "live MiB", "table MiB", "times", "live MiB", "index MiB", "times", "dropped")
	o.Report = func(s soak.Sample) { printSoak(out, s) }
	if err := soak.Run(cmd.Context(), o); err != nil {
		return err
	}
	fmt.Fprintf(out, "at most %d times what is live\n", soak.MaxRatio)
	return nil
}

func printSoak(out io.Writer, s soak.Sample) {
	mib := func(n int64) float64 { return float64(n) / (1 << 20) }
	r := s.Ratios()
	fmt.Fprintf(out, "%8v %10d %10d %10d %6.2f %10.1f %10.1f %6.2f %10.1f %10.1f %6.2f %8d\n",
		s.Elapsed.Round(time.Second), s.Ops, s.LiveRows, s.DeadRows, r.Rows, mib(s.LiveTable), mib(s.Table), r.Table,
		mib(s.LiveIndex), mib(s.Index), r.Index, s.DroppedTables)
}
