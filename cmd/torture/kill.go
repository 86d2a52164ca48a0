package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/kill"
)

const killChild = "kill-child"

func killCommand() *cobra.Command {
	var seed uint64
	var cycles int
	var dir, program string
	var duration, longest time.Duration
	cmd := &cobra.Command{
		Use:   "kill",
		Short: "Kill real processes at random times and check what they acknowledged",
		Long: `Start a child process with four writers, which write batches to a database on the
real disk and record each acknowledgement. Kill it with SIGKILL after a random time,
open the database and check it: all acknowledged batches are present, none is
incomplete, and those of each writer are in order. The next child continues with the
same database. With --tablerock, kill the import of that program, too, repeat it until
it succeeds, and compare the export with the input.

A seed repeats the delays, but not the run, which depends on the machine.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			root, err := os.MkdirTemp(dir, "torture-kill-")
			if err != nil {
				return err
			}
			begin := time.Now()
			var killed atomic.Int64
			c := kill.New(self, killChild, root, seed)
			c.Longest = longest
			bar := startProgress(cmd.ErrOrStderr(), func() string { return fmt.Sprintf("%d of %d kills", killed.Load(), cycles) })
			for err == nil && cmd.Context().Err() == nil && c.Killed < cycles && (duration == 0 || time.Since(begin) < duration) {
				err = c.Run(cmd.Context())
				killed.Store(int64(c.Killed))
			}
			if err == nil && cmd.Context().Err() == nil {
				err = c.Finish(cmd.Context())
			}
			bar.stop()
			if cmd.Context().Err() != nil {
				err = cmd.Context().Err()
			}
			if err == nil && program != "" {
				err = killImports(cmd, program, root, seed, cycles, longest)
			}
			if nothing := didNothing(int64(c.Killed), "process was killed"); err == nil && nothing != nil {
				return errors.Join(nothing, os.RemoveAll(root))
			}
			if err != nil {
				return fmt.Errorf("after %d kills: %w\nthe database is kept in %s; try again with: torture kill --seed %d --cycles %d", c.Killed, err, root, seed, cycles)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d kills, %d batches, %.0f s: 0 violations\n", c.Killed, c.Batches, time.Since(begin).Seconds())
			return os.RemoveAll(root)
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&seed, "seed", 1, "seed of the delays")
	flags.IntVar(&cycles, "cycles", 100, "processes to kill")
	flags.DurationVar(&duration, "duration", 0, "time to run for (0: no limit)")
	flags.DurationVar(&longest, "longest", 60*time.Millisecond, "longest run time of a process")
	flags.StringVar(&dir, "dir", "", "parent `directory` of the databases (default: the system's directory for temporary files)")
	flags.StringVar(&program, "tablerock", "", "tablerock `program`, to kill its import, too")
	return cmd
}

func killImports(cmd *cobra.Command, program, root string, seed uint64, cycles int, longest time.Duration) error {
	bar := startProgress(cmd.ErrOrStderr(), func() string { return fmt.Sprintf("killing %d imports", cycles) })
	n, err := kill.Imports(cmd.Context(), kill.ImportOptions{Program: program, Dir: root, Seed: seed, Cycles: cycles, Longest: 10 * longest})
	bar.stop()
	if err == nil {
		fmt.Fprintf(cmd.OutOrStdout(), "%d imports killed, the export equals the input: 0 violations\n", n)
	}
	return err
}

// killChildCommand returns the command that torture kill runs as a child process.
func killChildCommand() *cobra.Command {
	return &cobra.Command{
		Use:    killChild + " DIR ACKS UNTIL FROM FROM FROM FROM",
		Hidden: true,
		Args:   cobra.ExactArgs(7),
		RunE: func(cmd *cobra.Command, args []string) error {
			var from [4]int
			until, err := strconv.Atoi(args[2])
			for i := range from {
				if err == nil {
					from[i], err = strconv.Atoi(args[3+i])
				}
			}
			if err != nil {
				return usageError{err}
			}
			return kill.Child(cmd.Context(), args[0], args[1], from, until)
		},
	}
}
