package bench_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
)

// TestWorkloads runs each workload on few entities in every shape and compares the
// entities read with those written.
func TestWorkloads(t *testing.T) {
	const n, seed = 2_000, 1
	for _, name := range bench.ShapeNames() {
		shape, err := bench.ShapeOf(name, n)
		if err != nil {
			t.Fatal(err)
		}
		data := bench.NewDataset(shape, seed)
		var all, hot bench.Fold
		for _, e := range entitiesOf(data) {
			all.Row(e.View())
			if isHot(e) {
				hot.Row(e.View())
			}
		}
		run := &bench.Run{Store: bench.Tablerock{}, Data: data, Dir: t.TempDir(), CacheBytes: 8 << 20, LogBytes: 1 << 20, Seed: seed}
		for _, w := range bench.Workloads() {
			if !w.Fits(name) {
				continue
			}
			t.Run(w.Name+"/shape="+name, func(t *testing.T) {
				const passes = 2
				ops := passes * n
				if strings.HasPrefix(w.Name, "batch") || strings.HasPrefix(w.Name, "reopen") || strings.HasPrefix(w.Name, "insert") {
					ops = 10
				}
				before, after := 0, 0
				loaded := run.Loaded != ""
				res, err := run.Do(w, ops, func() { before++ }, func() { after++ })
				if err != nil {
					t.Fatal(err)
				}
				if before != 1 || after != 1 || res.Ops != int64(ops) || res.Elapsed <= 0 || res.DiskBytes <= 0 {
					t.Errorf("%d and %d calls, result %+v; want one call each, %d ops, time and bytes", before, after, res, ops)
				}
				if got, want := run.Loaded != "", loaded || w.ReadOnly; got != want {
					t.Errorf("a loaded database exists: %v, want %v", got, want)
				}
				if w.Durable && res.Syncs < 1 {
					t.Errorf("%d syncs of a durable workload", res.Syncs)
				}
				switch {
				case w.Name == "get/key=missing/readers=1":
					wantFold(t, res, 0, 0)
				case strings.HasPrefix(w.Name, "get"), w.Name == "scan/range=table":
					wantFold(t, res, passes*all.Sum(), passes*all.Rows())
				case strings.HasPrefix(w.Name, "filter"):
					wantFold(t, res, passes*hot.Sum(), passes*hot.Rows())
				}
			})
		}
	}
}

func wantFold(t *testing.T, res bench.Result, sum uint64, rows int64) {
	t.Helper()
	if res.Sum != sum || res.Rows != rows {
		t.Errorf("read %d rows with sum %016x, want %d with %016x", res.Rows, res.Sum, rows, sum)
	}
}

// TestReadsDoNotAllocate reads present and missing keys and scans the table, with the
// entities in the memtable and in sstables.
func TestReadsDoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	const rows = 2000
	data := bench.NewDataset(bench.Shape{Partitions: 1, Rows: rows}, 1)
	db, err := bench.Tablerock{}.Open(t.TempDir(), bench.Options{CacheBytes: 32 << 20, LogBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := db.Session()
	if err := s.Put(entitiesOf(data)); err != nil {
		t.Fatal(err)
	}
	var f bench.Fold
	get := func(key edm.Key, want bool) func() {
		return func() {
			if found, err := s.Get(key, &f); err != nil || found != want {
				t.Fatalf("get of %v: %v, %v, want %v", key, found, err, want)
			}
		}
	}
	scan := func() {
		if err := s.Scan("", false, &f); err != nil {
			t.Fatal(err)
		}
	}
	for _, where := range []string{"memtable", "sstables"} {
		if where == "sstables" {
			if err := db.Compact(); err != nil {
				t.Fatal(err)
			}
		}
		scan() // fills the cache
		if n := testing.AllocsPerRun(100, get(data.Key(rows/2), true)); n > 0 {
			t.Errorf("%s: a get allocates %v times, want 0", where, n)
		}
		if n := testing.AllocsPerRun(100, get(data.Missing(rows/2), false)); n > 0 {
			t.Errorf("%s: a get of a missing key allocates %v times, want 0", where, n)
		}
		// Only the start of a query allocates.
		if n := testing.AllocsPerRun(10, scan); n > rows/20 {
			t.Errorf("%s: a scan of %d entities allocates %v times, want none for a step", where, rows, n)
		}
	}
}

// flushes is a store that flushes its log on Close.
type flushes struct{ bench.Tablerock }

func (s flushes) Open(dir string, o bench.Options) (bench.DB, error) {
	db, err := s.Tablerock.Open(dir, o)
	return flushesDB{db}, err
}

type flushesDB struct{ bench.DB }

func (d flushesDB) Close() error { return errors.Join(d.DB.WaitIdle(), d.DB.Close()) }

// TestReopenReplaysAll checks that reopen/from=log fails on a store with an empty log.
func TestReopenReplaysAll(t *testing.T) {
	data := bench.NewDataset(bench.Shape{Partitions: 1, Rows: 100}, 1)
	run := &bench.Run{Store: flushes{}, Data: data, Dir: t.TempDir(), CacheBytes: 8 << 20, Seed: 1}
	for _, w := range bench.Workloads() {
		if w.Name == "reopen/from=log" {
			if _, err := run.Do(w, 1, nil, nil); err == nil || !strings.Contains(err.Error(), ".sst") {
				t.Errorf("%s of a store that flushes: %v, want an error that names the file", w.Name, err)
			}
		}
	}
}
