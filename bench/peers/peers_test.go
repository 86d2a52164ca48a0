package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/bench/peers/internal/results"
	"github.com/tablerock-db/tablerock/edm"
)

// TestMain runs the command if it is started as a child process.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childCommand {
		if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
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
		for _, typ := range bench.MatchedTypes() {
			match := data.Match(typ)
			want := match.Value(e.Properties[match.Prop].Value)
			if got, err := matches(value, match); err != nil || got != want {
				t.Fatalf("entity %d: %v is %v, %v, want %v", i, match.Expr, got, err, want)
			}
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

// runLines runs the command with few entities and returns the objects that it prints.
func runLines(t *testing.T, args ...string) (lines []map[string]any, progress string) {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"-json", "-reps", "1", "-dir", t.TempDir(), "-cache-mib", "16"}, args...)
	if err := run(t.Context(), args, nil, &out, &errs); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	for line := range bytes.Lines(out.Bytes()) {
		var object map[string]any
		if err := json.Unmarshal(line, &object); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		lines = append(lines, object)
	}
	return lines, errs.String()
}

// TestRun runs every workload on every engine, with few entities, and checks the objects.
func TestRun(t *testing.T) {
	const n = 1000
	names := engineNames()
	lines, _ := runLines(t, "-quick", "-sizes", strconv.Itoa(n), "-engines", strings.Join(names, ","), "-workloads", runnable(t))
	fields := []string{
		"alloc_bytes_per_op", "allocs_per_op", "cpu_us_per_op", "disk_bytes", "engine", "foreign_cores", "ops", "ops_per_s",
		"p50_us", "p999_us", "p99_us", "rep", "rss_bytes", "seconds", "shape", "size", "table_bytes", "workload", "write_amp",
	}
	seen := map[[2]string]bool{}
	for _, o := range lines {
		if diff := cmp.Diff(fields, slices.Sorted(maps.Keys(o))); diff != "" {
			t.Fatalf("fields:\n%s", diff)
		}
		workload, engine := o["workload"].(string), o["engine"].(string)
		seen[[2]string{workload, engine}] = true
		for _, name := range []string{"ops", "seconds", "ops_per_s", "disk_bytes", "table_bytes"} {
			if o[name].(float64) <= 0 {
				t.Errorf("%s on %s: %s is %v", workload, engine, name, o[name])
			}
		}
		if strings.HasPrefix(workload, "load") && strings.HasSuffix(workload, merged) && o["write_amp"].(float64) <= 0 {
			t.Errorf("%s on %s: write_amp is %v", workload, engine, o["write_amp"])
		}
	}
	for _, w := range bench.Workloads() {
		for _, name := range names {
			for _, ending := range []string{"", merged} {
				k := [2]string{w.Name, name}
				want := w.Fits(bench.Grid, n) && supported(task{workload: w, engine: name}) && runs(t, w)
				if ending == merged {
					k[0] += merged
					want = want && strings.Split(w.Name, "/")[0] == "load"
				}
				if want && !seen[k] {
					t.Errorf("%s on %s has no result", k[0], name)
				}
			}
		}
	}
}

// runs reports whether a workload runs in the directory of tests: one in memory stays in
// the page cache.
func runs(t *testing.T, w bench.Workload) bool {
	t.Helper()
	return !w.Cold || onDisk(t)
}

// onDisk reports whether files of the directory of tests leave the page cache.
func onDisk(t *testing.T) bool {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	return evict(dir) == nil
}

// runnable returns the names of the workloads that run in the directory of tests.
func runnable(t *testing.T) string {
	t.Helper()
	var names []string
	for _, w := range bench.Workloads() {
		if runs(t, w) {
			names = append(names, w.Name)
		}
	}
	return strings.Join(names, ",")
}

// TestContinue runs the command twice with one file: the second run measures only what
// the file lacks.
func TestContinue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.jsonl")
	args := []string{"-sizes", "1000", "-workloads", "load/order=sorted,step", "-out", file}
	first, _ := runLines(t, append(args, "-engines", "tablerock,bbolt")...)
	second, progress := runLines(t, append(args, "-engines", "tablerock,bbolt,goleveldb")...)
	if len(first) != 8 || len(second) != 4 || !strings.Contains(progress, "6 results are in the file already") {
		t.Errorf("%d and %d results, want 8 and 4; progress:\n%s", len(first), len(second), progress)
	}
	for _, o := range second {
		if o["engine"] != "goleveldb" {
			t.Errorf("%s on %s ran again", o["workload"], o["engine"])
		}
	}
	for _, other := range []string{"-quick", "-seed=2", "-cache-mib=8"} {
		if err := run(t.Context(), append(args, other), nil, io.Discard, io.Discard); !errors.Is(err, results.ErrRun) {
			t.Errorf("%s: error %v, want ErrRun: its results are of other work", other, err)
		}
	}
	f, err := results.Read(file)
	if err != nil || len(f.Results) != 12 || len(f.Runs) != 2 {
		t.Fatalf("the file has %v, %v, want 12 results of 2 runs", f, err)
	}
}

// TestInterrupt cancels a run and checks that it ends at once with its results in the
// file and no database left.
func TestInterrupt(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "results.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := writerFunc(func(p []byte) (int, error) {
		cancel()
		return len(p), nil
	})
	args := []string{"-json", "-sizes", "1000", "-engines", "tablerock", "-workloads", "load,step", "-dir", dir, "-out", file}
	err := run(ctx, args, nil, first, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "the same command continues") {
		t.Errorf("error %v, want one that says how to continue", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
	if f, err := results.Read(file); err != nil || len(f.Results) != 2 {
		t.Errorf("the file has %v, %v, want the 2 results of the first process", f, err)
	}
}

// TestUnknownWorkload checks that a name that is no workload is an error, beside others that are.
func TestUnknownWorkload(t *testing.T) {
	for _, names := range []string{"gets", "load,gets", "load/order", ""} {
		if s, err := parse([]string{"-workloads", names}, io.Discard); err == nil {
			t.Errorf("%q: %d workloads, want an error", names, len(s.workloads))
		}
	}
}

// TestIdleTime waits for the background work of each engine, which has none: all but 20 ms of the
// time that this takes must be idle, once of many times, because other processes may take the
// processors and the disk.
func TestIdleTime(t *testing.T) {
	const most, tries = 20 * time.Millisecond, 200
	for _, store := range engines {
		db, err := store.Open(t.Context(), t.TempDir(), bench.Options{CacheBytes: 16 << 20, LogBytes: 16 << 20})
		if err != nil {
			t.Fatal(err)
		}
		least := time.Duration(1 << 62)
		for n := 0; n < tries && least > most; n++ {
			start := time.Now()
			idle, err := db.WaitIdle()
			if took := time.Since(start); err != nil || idle > took {
				t.Errorf("%s: idle for %v of %v, %v", store.Name(), idle, took, err)
			}
			least = min(least, time.Since(start)-idle)
		}
		if least > most {
			t.Errorf("%s: without work, %v count as work", store.Name(), least)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestDurableWritesSync counts the calls that write to stable storage while each engine
// inserts durably with one writer: at least one for each insert.
func TestDurableWritesSync(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	const ops = 50
	for _, name := range engineNames() {
		trace := filepath.Join(t.TempDir(), "trace")
		j := job{Engine: name, Workload: "insert/writers=1", Start: "empty", Dir: t.TempDir(), Size: 1000, Shape: bench.Grid, Divide: 1000 / ops, CacheMiB: 16}
		input, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(strace, "-f", "-qq", "-o", trace, "-e", "trace=fsync,fdatasync,msync,sync_file_range", os.Args[0], childCommand)
		cmd.Stdin = bytes.NewReader(input)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("strace: %v: %s", err, out)
		}
		calls, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(calls, []byte("sync(")); n < ops {
			t.Errorf("%s: %d syncs for %d inserts", name, n, ops)
		}
	}
}
