package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/cluster"
	"github.com/tablerock-db/tablerock/cmd/torture/internal/failover"
)

// errBlind means that the negative control found nothing.
var errBlind = errors.New("the check is blind: it found no lost batch where commits did not wait for a standby")

func (f *failoverFlags) run(cmd *cobra.Command) (err error) {
	faults, err := f.faults()
	if err != nil {
		return err
	}
	if f.list {
		for _, fault := range faults {
			fmt.Fprintf(cmd.OutOrStdout(), "%-12s %s\n", fault.Name, fault.Text)
		}
		return nil
	}
	dir, err := os.MkdirTemp(f.dir, "torture-failover-")
	if err != nil {
		return err
	}
	defer func() {
		if f.keep && err != nil && cmd.Context().Err() == nil {
			err = fmt.Errorf("%w\nthe logs are in %s", err, dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	// The programs run as another user if this one is root.
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	o := failover.Options{Dir: dir, Program: f.program, Batches: f.batches, Writers: f.writers, Async: f.async}
	if err := f.prepare(cmd, &o); err != nil {
		return err
	}
	return f.runTrials(cmd, faults, o)
}

// faults returns the selected faults.
func (f *failoverFlags) faults() ([]failover.Fault, error) {
	pattern, err := regexp.Compile(f.only)
	if err != nil {
		return nil, usageError{err}
	}
	if f.async {
		return []failover.Fault{failover.Control()}, nil
	}
	faults := slices.DeleteFunc(failover.Faults(), func(fault failover.Fault) bool { return !pattern.MatchString(fault.Name) })
	if len(faults) == 0 {
		return nil, usageError{fmt.Errorf("no fault matches %q; --list prints the names", f.only)}
	}
	return faults, nil
}

// prepare unpacks the packages and builds the program.
func (f *failoverFlags) prepare(cmd *cobra.Command, o *failover.Options) (err error) {
	ctx := cmd.Context()
	packages := f.programs
	if packages == "" {
		packages = filepath.Join(o.Dir, "packages")
	}
	if o.Programs, err = cluster.Unpack(ctx, packages); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", errNoCluster, err)
	}
	if o.Program == "" {
		o.Program = filepath.Join(o.Dir, "tablerock")
		if err := buildTablerock(ctx, o.Program); err != nil {
			return err
		}
	}
	versions, err := o.Programs.Versions(ctx)
	if err == nil {
		fmt.Fprintln(cmd.OutOrStdout(), versions)
	}
	return err
}

// runTrials runs all trials, also after one failed, and prints a line for each and a table.
func (f *failoverFlags) runTrials(cmd *cobra.Command, faults []failover.Fault, o failover.Options) (err error) {
	var phase atomic.Value
	phase.Store("starting")
	o.Phase = func(text string) { phase.Store(text) }
	var results []*failover.Result
	failed, skipped := 0, 0
	begin := time.Now()
	bar := startProgress(cmd.ErrOrStderr(), func() string { return fmt.Sprintf("%d of %d trials, %s", len(results)+failed, f.trials, phase.Load()) })
	defer bar.stop()
	r := failover.New(o)
	defer func() { err = errors.Join(err, r.Close()) }()
	out := cmd.OutOrStdout()
	fmt.Fprintln(out, failover.Header)
	for i := range uint64(f.trials) {
		seed := f.seed + i
		fault := faults[(seed-1)%uint64(len(faults))]
		result, err := r.Trial(cmd.Context(), seed, fault)
		if cmd.Context().Err() != nil {
			return cmd.Context().Err()
		}
		line := ""
		switch {
		case errors.Is(err, failover.ErrNoVolume):
			skipped++
			line = fmt.Sprintf("%6d %-12s skipped: %v", seed, fault.Name, err)
		case f.async && result != nil && result.Report.Lost > 0:
			results = append(results, result)
			line = result.Line()
		case err != nil:
			failed++
			line = f.failure(seed, fault, result, err)
		default:
			results = append(results, result)
			line = result.Line()
		}
		if err := bar.above(func() error { _, err := fmt.Fprintln(out, line); return err }); err != nil {
			return err
		}
	}
	bar.stop()
	bar = nil
	return f.summary(out, results, failed, skipped, time.Since(begin))
}

// failure returns the text of a failed trial.
func (f *failoverFlags) failure(seed uint64, fault failover.Fault, result *failover.Result, err error) string {
	line := fmt.Sprintf("%6d %-12s", seed, fault.Name)
	if result != nil {
		line = result.Line()
	}
	name := "^" + fault.Name + "$"
	return line + " FAILED\n    " + strings.ReplaceAll(err.Error(), "\n", "\n    ") +
		fmt.Sprintf("\n    repeat it with: torture failover --seed %d --trials 1 --only '%s'", seed, name)
}

func (f *failoverFlags) summary(out io.Writer, results []*failover.Result, failed, skipped int, elapsed time.Duration) error {
	acked, lost, unknown := 0, 0, 0
	for _, r := range results {
		acked += r.Report.Acked
		lost += r.Report.Lost
		unknown += r.Report.Unknown
	}
	fmt.Fprintf(out, "\n%s\n", failover.Table(results))
	if f.async {
		fmt.Fprintf(out, "negative control: %d trials, %d batches acknowledged, %d lost, %.0f s\n", len(results), acked, lost, elapsed.Seconds())
		if failed == 0 && lost == 0 {
			return errBlind
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d trials failed", failed, f.trials)
	}
	if f.async {
		return nil
	}
	_, err := fmt.Fprintf(out, "%d trials, %d skipped, %d batches acknowledged, %d of unknown outcome, %.0f s: 0 violations\n",
		len(results), skipped, acked, unknown, elapsed.Seconds())
	return err
}
