package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/plant"
)

// TestMain runs the child of torture kill if the test binary is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == killChild {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestCommands runs every command for a short time and checks its last line.
func TestCommands(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"crash --states 500 --steps 4 --all 0", "0 violations"},
		{"crash --states 500 --steps 4 --all 0 --no-sync", "0 violations"},
		{"crash --states 1000 --lying", "losses detected"},
		{"errors --stride 300", "call sites failed at least once"},
		{"rot --stride 101", "0 violations"},
		{"kill --cycles 3", "3 kills"},
		{"planted --only wal-sync", "states"},
	} {
		t.Run(c.args, func(t *testing.T) {
			var out, errs bytes.Buffer
			if err := run(t.Context(), strings.Fields(c.args), &out, &errs); err != nil {
				t.Fatalf("%v\n%s", err, errs.String())
			}
			if !strings.Contains(out.String(), c.want) {
				t.Errorf("output %q, want %q in it", out.String(), c.want)
			}
		})
	}
}

// TestLeast checks that each flag of a number or time, but those that can be anything, has a least value.
func TestLeast(t *testing.T) {
	for _, c := range []*cobra.Command{
		crashCommand(), errorsCommand(), rotCommand(), killCommand(), plantedCommand(), fullCommand(), failoverCommand(), soakCommand(),
	} {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			_, listed := least[f.Name]
			if kind := f.Value.Type(); (kind == "int" || kind == "int64" || kind == "duration") != listed {
				t.Errorf("%s --%s of type %s has a least value: %v", c.Name(), f.Name, kind, listed)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args string
		want int
	}{
		{"crash --profile none", exitUsage},
		{"crash --modes none", exitUsage},
		{"crash --no-such-flag", exitUsage},
		{"crush", exitUsage},
		{"crash 50000", exitUsage},
		{"errors --profile none", exitUsage},
		{"planted --only none", exitUsage},
		{"planted --only wal-sync --budget 0", exitViolation},
		{"full --only none", exitUsage},
		{"full --only (", exitUsage},
		{"full --workers 0 --list", exitUsage},
		{"kill --cycles 0", exitUsage},
		{"kill --cycles -1", exitUsage},
		{"kill --longest 0", exitUsage},
		{"kill --duration 1ns", exitUsage},
		{"crash --duration -1s", exitUsage},
		{"crash --duration 1ns", exitUsage},
		{"crash --states -1", exitUsage},
		{"crash --point 999999 --count 1 --steps 4", exitUsage},
		{"errors --stride 0", exitUsage},
		{"errors --duration 1ns", exitUsage},
		{"errors --operation 99999999", exitUsage},
		{"rot --stride 0", exitUsage},
		{"rot --duration 1ns", exitUsage},
		{"failover --trials 0", exitUsage},
	} {
		t.Run(c.args, func(t *testing.T) {
			var out, errs bytes.Buffer
			err := run(t.Context(), strings.Fields(c.args), &out, &errs)
			if err == nil || exitCode(err) != c.want {
				t.Errorf("got %v (code %d), want code %d", err, exitCode(err), c.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := run(ctx, []string{"crash"}, &bytes.Buffer{}, &bytes.Buffer{})
	if exitCode(err) != exitInterrupted {
		t.Errorf("after an interrupt: got %v, want code %d", err, exitInterrupted)
	}
	if err := run(t.Context(), []string{"planted", "--only", "wal-sync", "--budget", "0"}, &bytes.Buffer{}, &bytes.Buffer{}); !errors.Is(err, plant.ErrMissed) {
		t.Errorf("got %v, want %v", err, plant.ErrMissed)
	}
}

// TestFullCannotMount runs torture full where the programs of the system are missing.
func TestFullCannotMount(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := run(t.Context(), []string{"full", "--program", "tablerock"}, &bytes.Buffer{}, &bytes.Buffer{})
	if exitCode(err) != exitUnusable {
		t.Errorf("got %v (code %d), want code %d", err, exitCode(err), exitUnusable)
	}
}
