// Command torture tests the promises of the storage engine: it simulates power failures at
// every operation, fails every operation, damages every byte, kills processes and fills
// volumes, and compares the remaining database with an oracle. On a cluster of PostgreSQL it
// tests the promises of the server in front of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/full"
)

func main() {
	// The program opens thousands of small databases. A step of the profile churn has disks of 2 GB, which may grow to
	// five times that between collections unless the memory is limited.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(4 << 30)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(exitCode(err))
	}
}

const (
	exitViolation   = 1
	exitUsage       = 2
	exitUnusable    = 7
	exitInterrupted = 130
)

// usageError is the error of an invalid command line.
type usageError struct{ error }

// noArgs refuses arguments, such as a mistyped command.
func noArgs(c *cobra.Command, args []string) error {
	if err := cobra.NoArgs(c, args); err != nil {
		return usageError{err}
	}
	return nil
}

func exitCode(err error) int {
	var usage usageError
	switch {
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, full.ErrCannotMount), errors.Is(err, errNoCluster):
		return exitUnusable
	}
	return exitViolation
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	root := &cobra.Command{
		Use:           "torture",
		Short:         "Test the promises of the storage engine",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() }, // without it the root ignores Args

		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return checkLeast(c.Flags()) },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(crashCommand(), errorsCommand(), rotCommand(), killCommand(), killChildCommand(), plantedCommand(), fullCommand(),
		failoverCommand(), soakCommand())
	return root.ExecuteContext(ctx)
}
