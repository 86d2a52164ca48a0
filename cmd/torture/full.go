package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/full"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/plant"
)

// fullFlags are the flags of torture full.
type fullFlags struct {
	seed               uint64
	dir, program, only string
	short, list        bool
	workers            int
}

func fullCommand() *cobra.Command {
	f := fullFlags{}
	cmd := &cobra.Command{
		Use:   "full",
		Short: "Fill small volumes and check that the program survives it",
		Long: `Mount small volumes, ext4 in a loop device and tmpfs, and fill each with the tablerock
program: by clients of serve, by import, or by another file. End the server with SIGTERM
or SIGKILL and start it again on the full volume. Check that nothing acknowledged is
missing, that reads continue, that writes are refused with 503 and not before 80 % of the
volume is in use, and that writes are accepted again after half of the rows or one of two
tables is deleted.

The command needs root on Linux and mkfs.ext4. Where it cannot mount, it exits with 7.
It unmounts and removes the volumes at its end, also after a failure or Ctrl-C.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the rows")
	flags.StringVar(&f.only, "only", "", "run only the cases whose name matches this `regexp`")
	flags.BoolVar(&f.short, "short", false, "run only a few cases, for about a minute")
	flags.BoolVar(&f.list, "list", false, "print the names of the cases and end")
	flags.IntVar(&f.workers, "workers", 1, "concurrent cases")
	flags.StringVar(&f.dir, "dir", "", "parent `directory` of images and mount points (default: the system's directory for temporary files)")
	flags.StringVar(&f.program, "program", "", "tablerock `program` (default: build it from the source of the working directory)")
	return cmd
}

func (f *fullFlags) run(cmd *cobra.Command) (err error) {
	cases, err := f.cases()
	if err != nil {
		return err
	}
	if f.list {
		for _, c := range cases {
			fmt.Fprintln(cmd.OutOrStdout(), c.Name())
		}
		return nil
	}
	if err := full.CheckSystem(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(f.dir, "torture-full-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := f.program
	if program == "" {
		program = filepath.Join(dir, "tablerock")
		if err := buildTablerock(cmd.Context(), program); err != nil {
			return err
		}
	}
	return f.runCases(cmd, cases, full.Options{Program: program, Dir: dir, Seed: f.seed})
}

// cases returns the selected cases.
func (f *fullFlags) cases() ([]full.Case, error) {
	pattern, err := regexp.Compile(f.only)
	if err != nil {
		return nil, usageError{err}
	}
	cases := slices.DeleteFunc(full.Cases(), func(c full.Case) bool { return f.short && !c.Short || !pattern.MatchString(c.Name()) })
	if len(cases) == 0 {
		return nil, usageError{fmt.Errorf("no case matches %q; --list prints the names", f.only)}
	}
	return cases, nil
}

// runCases runs all cases, also after one failed, and prints a line for each.
func (f *fullFlags) runCases(cmd *cobra.Command, cases []full.Case, o full.Options) error {
	var mu sync.Mutex
	var ended, failed atomic.Int64
	var phase atomic.Value
	phase.Store("starting")
	o.Phase = func(c full.Case, name string) { phase.Store(c.Name() + ", " + name) }
	fmt.Fprintln(cmd.OutOrStdout(), full.Header)
	bar := startProgress(cmd.ErrOrStderr(), func() string { return fmt.Sprintf("%d of %d cases, %s", ended.Load(), len(cases), phase.Load()) })
	defer bar.stop()
	l := limits{workers: f.workers, count: uint64(len(cases))}
	err := l.each(cmd.Context(), func() bool { return false }, func(ctx context.Context, i uint64) error {
		figures, err := full.Run(ctx, o, cases[i])
		if errors.Is(err, full.ErrCannotMount) || ctx.Err() != nil {
			return err
		}
		ended.Add(1)
		result := "ok"
		if err != nil {
			failed.Add(1)
			result = "FAILED\n    " + strings.ReplaceAll(err.Error(), "\n", "\n    ") +
				fmt.Sprintf("\n    repeat it with: torture full --seed %d --only '^%s$'", f.seed, cases[i].Name())
		}
		mu.Lock()
		defer mu.Unlock()
		return bar.above(func() error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), figures.Line(cases[i]), result)
			return err
		})
	})
	if err != nil {
		return err
	}
	if n := failed.Load(); n > 0 {
		return fmt.Errorf("%d of %d cases failed", n, len(cases))
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d cases: 0 violations\n", len(cases))
	return err
}

// buildTablerock builds the program from the source of the engine.
func buildTablerock(ctx context.Context, output string) error {
	dir, err := plant.SourceDir(ctx)
	if err != nil {
		return fmt.Errorf("%w; or name the program with --program", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", output, "./cmd/tablerock")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}
