package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
)

// TestMain runs the command if it is started as a child process.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-child") {
		if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestValueFoldsAsEntity(t *testing.T) {
	data := bench.NewDataset(bench.Shape{Partitions: 1, Rows: 500}, 1)
	var e edm.Entity
	var bytesSum int
	for i := range data.Len() {
		data.Fill(i, i, &e)
		value := appendValue(nil, e.Properties)
		bytesSum += len(value)
		var f bench.Fold
		var want bench.Fold
		want.Row(e.View())
		if err := foldValue(value, &f); err != nil || f.Sum() != want.Sum() || f.Rows() != 1 {
			t.Fatalf("entity %d: sum %016x, %d rows, %v, want %016x, 1", i, f.Sum(), f.Rows(), err, want.Sum())
		}
		temperature, _ := e.Properties[bench.PropTemperature].Value.Double()
		isHot := temperature > bench.HotAbove
		if got, err := hot(value); err != nil || got != isHot {
			t.Fatalf("entity %d: hot is %v, %v, want %v", i, got, err, isHot)
		}
		for cut := range len(value) {
			// A prefix is an error unless it ends between two properties.
			var prefix bench.Fold
			if err := foldValue(value[:cut], &prefix); err == nil && prefix.Sum() == f.Sum() {
				t.Fatalf("entity %d: the sum of %d of %d bytes is that of all", i, cut, len(value))
			}
		}
	}
	if mean := bytesSum / data.Len(); mean < 200 || mean > 280 {
		t.Errorf("values of %d bytes on average, want about 230", mean)
	}
}

// TestCompare runs the command with few entities.
func TestCompare(t *testing.T) {
	var out, progress bytes.Buffer
	file := filepath.Join(t.TempDir(), "results.json")
	args := []string{
		"-n", "2000", "-reps", "1", "-shapes", "grid,singles", "-markdown", "-json", file, "-dir", t.TempDir(), "-cache-mib", "16",
		"-workloads", "load,insert/writers=64,batch/writers=16,get/key=missing,scan,filter,overwrite,reopen",
	}
	if err := run(t.Context(), args, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var saved struct{ Results []outcome }
	if err := json.Unmarshal(data, &saved); err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, shape := range []string{bench.Grid, bench.Singles} {
		for _, w := range bench.Workloads() {
			if w.Fits(shape) && slices.ContainsFunc([]string{
				"load", "insert/writers=64", "batch/writers=16", "get/key=missing", "scan", "filter", "overwrite", "reopen",
			}, func(p string) bool { return strings.HasPrefix(w.Name, p) }) {
				want += 3
			}
		}
	}
	if len(saved.Results) != want {
		t.Errorf("%d results, want %d", len(saved.Results), want)
	}
	for _, line := range []string{"commit: ", "machine: ", "| pebble | ", "| goleveldb | ", "| tablerock | "} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("the report lacks %q:\n%s", line, out.String())
		}
	}
}

func TestCheckFindsDifferences(t *testing.T) {
	a := outcome{Workload: "w", Shape: "s", Engine: "a", Sum: 1, Rows: 1}
	b := a
	b.Engine = "b"
	r := report{outcomes: []outcome{a, b}}
	if err := r.check(); err != nil {
		t.Errorf("equal sums: %v", err)
	}
	r.outcomes[1].Sum = 2
	if err := r.check(); err == nil {
		t.Error("no error for different sums")
	}
}
