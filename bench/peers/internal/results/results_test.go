package results_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/bench/peers/internal/results"
)

var (
	runA  = results.Run{Commit: "a", Machine: "m", Command: "go run ."}
	first = results.Result{Workload: "get", Engine: "tablerock", Size: 10, Shape: "grid", Rep: 1, Ops: 5, CPUMicros: 1.5}
)

// write appends results to a file in one run.
func write(t *testing.T, file string, run results.Run, list ...results.Result) {
	t.Helper()
	w, err := results.Append(file, run)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(list), w.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestAppend(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	second := first
	second.Rep = 2
	write(t, file, runA, first)
	write(t, file, runA, second)
	got, err := results.Read(file)
	want := &results.File{Runs: []results.Run{runA, runA}, Results: []results.Result{first, second}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	w, err := results.Append(file, runA)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	other := first
	other.Engine = "pebble"
	if !w.Has(first.Key()) || !w.Has(second.Key()) || w.Has(other.Key()) {
		t.Error("Has differs from the file")
	}
}

// TestAppendAfterKill cuts the last line of a file at each byte: the complete lines stay.
func TestAppendAfterKill(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole")
	second := first
	second.Rep = 2
	write(t, whole, runA, first, second)
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	keep := len(lines[0]) + len(lines[1])
	for cut := keep; cut < len(data); cut++ {
		file := filepath.Join(t.TempDir(), "cut")
		if err := os.WriteFile(file, data[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		write(t, file, runA, second)
		got, err := results.Read(file)
		if err != nil || len(got.Results) != 2 || got.Results[0] != first || got.Results[1] != second {
			t.Fatalf("cut at %d: %v, %v", cut, got, err)
		}
	}
}

func TestAppendRefusesOtherRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, runA, first)
	for _, change := range []func(*results.Run){
		func(r *results.Run) { r.Commit = "b" },
		func(r *results.Run) { r.Machine = "n" },
		func(r *results.Run) { r.Seed++ },
		func(r *results.Run) { r.CacheMiB = 64 },
		func(r *results.Run) { r.Divide = 50 },
	} {
		run := runA
		change(&run)
		if _, err := results.Append(file, run); !errors.Is(err, results.ErrRun) {
			t.Errorf("run %+v: error %v, want ErrRun", run, err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, text := range []string{"{}\n", "no\n", `{"workload":"get"}` + "\n"} {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if f, err := results.Read(file); err == nil {
			t.Errorf("%q: %v, want an error", text, f)
		}
	}
}
