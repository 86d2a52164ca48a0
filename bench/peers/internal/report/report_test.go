package report_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/bench/peers/internal/report"
	"github.com/tablerock-db/tablerock/bench/peers/internal/results"
)

// fileOf returns results of all workloads, in which peer needs CPU times a peer's.
func fileOf(ours float64) *results.File {
	f := &results.File{Runs: []results.Run{{
		Started: "then", Commit: "c0ffee", Command: "go run . -reps 1", Machine: "2 processors",
		Engines: map[string]string{"tablerock": "defaults", "pebble": "v2"},
	}}}
	add := func(workload, engine string, cpu float64, size int) {
		f.Results = append(f.Results, results.Result{
			Workload: workload, Engine: engine, Size: size, Shape: bench.Grid, Rep: 1, Ops: 10, Seconds: 1, OpsPerSec: 1e6 / cpu, CPUMicros: cpu,
			P50: cpu, P99: 2 * cpu, P999: 10 * cpu, WriteAmp: 2, ForeignCores: 0.1, RSSBytes: 1e6, DiskBytes: 2e6,
		})
	}
	for _, w := range bench.Workloads() {
		names := []string{w.Name}
		if strings.HasPrefix(w.Name, "load") || strings.HasPrefix(w.Name, "overwrite") {
			names = append(names, w.Name+"/until=merged")
		}
		for _, name := range names {
			add(name, "tablerock", ours, 1000)
			add(name, "pebble", 4, 1000)
			add(name, "bbolt", 8, 1000)
		}
	}
	again := f.Results[0]
	again.Rep = 2
	f.Results = append(f.Results, again)
	for _, w := range []string{"get/key=present/readers=1", "load/order=random"} {
		add(w, "tablerock", ours, 10_000)
		add(w, "pebble", 5, 10_000)
	}
	return f
}

// TestWrite writes the page and reads the pictures as XML.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	page, pictures := filepath.Join(dir, "page.md"), filepath.Join(dir, "docs", "pictures")
	if err := report.Write(fileOf(2), page, pictures); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| commit | c0ffee |", "| machine | 2 processors |", "$ go run . -reps 1", "- pebble: v2", "| repetitions | 1 to 2, medians |",
		"| ycsb/mix=C | **2.00** | 4.00 | 8.00 | 2.00 | 0.1 |",
		"No peer in Go needs less CPU time at any workload.",
		"| hot get, 1 reader | 500 k/s, 2.00 us | pebble 250 k/s | pebble 4.00 us | 2.00 | 2.00 | 1.60 | yes |  |",
		"| hot get, 2 readers | 500 k/s, 2.00 us | pebble 250 k/s | pebble 4.00 us | 2.00 | 2.00 | 2.00 | yes |  |",
		"| missing get | 500 k/s, 2.00 us | pebble 250 k/s | pebble 4.00 us | 2.00 | 2.00 | 4.00 | **no** |  |",
		"| reopen/from=log |  |  |  |", "| step/runs=1 | 0.000 | 0.000 | 0.000 |",
		"| filter on an Int32 | 2000.0 ns of CPU |  |  |  |  | at most 11.2 ns | **no** |  |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, name := range []string{"ratios", "latencies", "growth", "write-amplification", "caches"} {
		if !strings.Contains(string(text), "](docs/pictures/"+name+".svg)") {
			t.Errorf("the page lacks the picture %s", name)
		}
		data, err := os.ReadFile(filepath.Join(pictures, name+".svg"))
		if err != nil {
			t.Error(err)
			continue
		}
		for d := xml.NewDecoder(bytes.NewReader(data)); err == nil; {
			_, err = d.Token()
		}
		if err != io.EOF {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWriteNamesLosses checks that the page says why a peer wins, for every workload.
// The reason must not be one of another peer.
func TestWriteNamesLosses(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := report.Write(fileOf(20), page, dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if n := utf8.RuneCountInString(line); n > 161 {
			t.Errorf("%d characters, at most 160 are allowed: %s", n-1, line)
		}
	}
	for _, w := range bench.Workloads() {
		if !strings.Contains(string(text), "- `"+w.Name+"`: pebble, 5.00 times. ") {
			t.Errorf("the page does not say why Pebble wins at %s", w.Name)
		}
	}
	_, losses, _ := strings.Cut(string(text), "Where a peer in Go needs less CPU time:")
	losses, _, _ = strings.Cut(losses, "### Latencies")
	if strings.Contains(losses, "bbolt") {
		t.Error("the page explains by bbolt why Pebble wins")
	}
}

// TestGatesRules checks the rules for busy machines, for syncs and for the raw disk.
func TestGatesRules(t *testing.T) {
	const insert, disk = "insert/writers=1", "get/key=present/from=disk/readers=1"
	result := func(workload, engine string, ops, cpu, foreign, p50 float64) results.Result {
		return results.Result{
			Workload: workload, Engine: engine, Size: 1000, Shape: bench.Grid, Rep: 1, Ops: 1, Seconds: 1,
			OpsPerSec: ops, CPUMicros: cpu, ForeignCores: foreign, P50: p50,
		}
	}
	tables := func(engine string, megabytes int64) results.Result {
		return results.Result{Workload: disk, Engine: engine, Size: 1000, Shape: bench.Grid, OpsPerSec: 1, CPUMicros: 1, TableBytes: megabytes * 1e6}
	}
	for _, c := range []struct {
		name    string
		results []results.Result
		want    string
		missed  int
	}{
		{"both ratios hold", []results.Result{
			result(disk, "tablerock", 130, 1, 0, 1), result(disk, "pebble", 100, 1.3, 0, 1),
		}, "1.30 | 1.30 | 1.20 | yes", 0},
		{"the rate is too low", []results.Result{
			result(disk, "tablerock", 110, 1, 0, 1), result(disk, "pebble", 100, 1.3, 0, 1),
		}, "1.10 | 1.30 | 1.20 | **no**", 1},
		{"the rate does not count beside other processes", []results.Result{
			result(disk, "tablerock", 110, 1, 0.5, 1), result(disk, "pebble", 100, 1.3, 0, 1),
		}, "yes | busy 0.5", 0},
		{"the best peers differ", []results.Result{
			result(disk, "tablerock", 130, 1, 0, 1), result(disk, "pebble", 100, 1.3, 0, 1), result(disk, "goleveldb", 120, 9, 0, 1),
		}, "goleveldb 120/s | pebble 1.30 us | 1.08 | 1.30 | 1.20 | **no**", 1},
		{"an engine in C does not count", []results.Result{
			result(disk, "tablerock", 130, 1, 0, 1), result(disk, "pebble", 100, 1.3, 0, 1), result(disk, "lmdb", 900, 0.1, 0, 1),
		}, "yes", 0},
		{"the share of raw suffices", []results.Result{
			result(disk, "tablerock", 90, 1, 0, 1), result(disk, "pebble", 100, 1, 0, 1), result(disk, "raw", 100, 1, 0, 1),
		}, "yes | 90 % of raw, of 85", 0},
		{"the smallest tables count", []results.Result{
			tables("tablerock", 92), tables("tablerock-compact", 79), tables("pebble", 150), tables("goleveldb", 100), tables("lmdb", 10),
		}, "92.0 MB | goleveldb 100 MB |  | 0.92 |  | at most 0.92 | yes", 2},
		{"the median of the tables counts", []results.Result{
			tables("tablerock", 50), tables("tablerock", 92), tables("tablerock", 92), tables("pebble", 100),
		}, "92.0 MB | pebble 100 MB |  | 0.92 |  | at most 0.92 | yes", 1},
		{"tables of an older build do not count", []results.Result{tables("tablerock", 100), tables("pebble", 0)}, "get from disk, 1 reader", 1},
		{"a fast sync counts by rate", []results.Result{
			result(insert, "tablerock", 150, 9, 0, 1), result(insert, "pebble", 100, 1, 0, 1), result(insert, "raw", 900, 1, 0, 150),
		}, "1.50 | 0.11 | 1.40 | yes", 0},
		{"a slow sync counts by CPU", []results.Result{
			result(insert, "tablerock", 150, 9, 0, 1), result(insert, "pebble", 100, 1, 0, 1), result(insert, "raw", 900, 1, 0, 250),
		}, "1.50 | 0.11 | 1.40 | **no**", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			missed := report.Gates(&out, &results.File{Results: c.results})
			if missed != c.missed || !strings.Contains(out.String(), c.want) {
				t.Errorf("%d missed, want %d and %q:\n%s", missed, c.missed, c.want, out.String())
			}
		})
	}
}

// TestServerSection compares the sections of the page that server.md has with it.
func TestServerSection(t *testing.T) {
	section, err := os.ReadFile("server.md")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../../BENCHMARKS.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(page, section) {
		t.Error("BENCHMARKS.md does not end with server.md")
	}
}
