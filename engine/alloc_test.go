package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// layouts say where the rows are.
var layouts = []struct {
	name  string
	build func(tb testing.TB, db *engine.DB)
}{
	{"memtable", func(tb testing.TB, db *engine.DB) {
		fill(tb, db, "p", 2000, 50)
	}},
	{"sstable", func(tb testing.TB, db *engine.DB) {
		fill(tb, db, "p", 2000, 50)
		check(tb, "Flush", db.Flush(tb.Context()))
	}},
	{"both", func(tb testing.TB, db *engine.DB) {
		fill(tb, db, "p", 2000, 50)
		check(tb, "Flush", db.Flush(tb.Context()))
		for i := range 1000 {
			apply(tb, db, store.InsertOrReplace(entity("p", fmt.Sprintf("%06d", 2*i), int64(i), 40)))
		}
	}},
}

// TestReadsDoNotAllocate counts the allocations of point reads, and of a step
// of a scan, in each layout.
func TestReadsDoNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			o := engine.Options{FS: vfs.NewMem(), Testing: engine.TestHooks{Manual: true}, SegmentBytes: 4 << 20, CacheBytes: 16 << 20}
			db := mustCreate(t, o)
			l.build(t, db)
			ctx := t.Context()
			var sum int64
			var buf []byte
			read := func(row edm.Row) error {
				v, _ := row.Lookup("N")
				n, _ := v.Int64()
				buf = row.AppendRow(row.AppendPartition(buf[:0]))
				sum += n + int64(len(buf))
				return nil
			}
			for _, row := range []string{"000998", "000999"} {
				if n := testing.AllocsPerRun(100, func() {
					if err := db.View(ctx, table, edm.Key{Partition: "p", Row: row}, read); err != nil {
						t.Fatal(err)
					}
				}); n != 0 {
					t.Errorf("View of %s allocates %v times", row, n)
				}
			}
			for _, key := range []edm.Key{{Partition: "p", Row: "none"}, {Partition: "none", Row: "000999"}} {
				if n := testing.AllocsPerRun(100, func() {
					if err := db.View(ctx, table, key, read); !errors.Is(err, store.ErrEntityNotFound) {
						t.Fatal(err)
					}
				}); n != 0 {
					t.Errorf("View of %v, which is missing, allocates %v times", key, n)
				}
			}
			dump(t, db, store.Query{}) // fills the cache
			dump(t, db, store.Query{}) // lays the heads out by rows
			for _, q := range []store.Query{
				{}, {Reverse: true}, {Select: []string{"N"}}, {Filter: filter.MustParse("N ge 0 and Filler ne X''")},
			} {
				scan := func() {
					c := db.Query(ctx, table, q)
					defer c.Close()
					for range 100 { // allocations that are made once for a query
						c.Next()
					}
					steps := func() {
						for range 200 { // more than a row group
							if !c.Next() {
								t.Fatalf("the scan has ended: %v", c.Err())
							}
							_ = read(c.Row())
						}
					}
					// Other goroutines of the process may allocate occasionally.
					least := testing.AllocsPerRun(1, steps)
					for range 3 {
						least = min(least, testing.AllocsPerRun(1, steps))
					}
					if least != 0 {
						t.Errorf("200 steps of %+v allocate %v times", q, least)
					}
				}
				scan()
			}
			from := &edm.Key{Partition: "p", Row: "000100"}
			if n := testing.AllocsPerRun(100, func() {
				c := db.Query(ctx, table, store.Query{From: from, Limit: 50})
				for c.Next() {
					_ = read(c.Row())
				}
				if c.Resume() == nil || c.Close() != nil {
					t.Fatal("no resume key, or no end")
				}
			}); n > 2 { // the cursor and the text of the resume key
				t.Errorf("a query of 50 rows allocates %v times", n)
			}
		})
	}
}

// TestOpenIsCheap opens many databases in memory. The bound is far above the time of
// one, so that only a change of the design exceeds it.
func TestOpenIsCheap(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes its time")
	}
	const n = 20
	start := time.Now()
	for range n {
		check(t, "Close", mustCreate(t, engine.Options{FS: vfs.NewMem(), CacheBytes: 1 << 20}).Close())
	}
	if each := time.Since(start) / n; each > time.Second {
		t.Errorf("a database in memory takes %v to open", each)
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, c := range []struct {
		name string
		open func(b *testing.B) (vfs.FS, string)
	}{
		{"fs=mem", func(*testing.B) (vfs.FS, string) { return vfs.NewMem(), "db" }},
		{"fs=os", func(b *testing.B) (vfs.FS, string) { return vfs.OS(), b.TempDir() }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fsys, dir := c.open(b)
				db, err := engine.Open(dir, engine.Options{FS: fsys})
				check(b, "Open", err)
				check(b, "Close", db.Close())
			}
		})
	}
}

// TestResultsAreIndependent keeps the results of many calls and appends to them. The
// calls share memory for their results, and no caller may notice.
func TestResultsAreIndependent(t *testing.T) {
	db := mustCreate(t, engine.Options{FS: vfs.NewMem(), Testing: engine.TestHooks{Manual: true}, NoSync: true})
	var kept [][]store.Result
	n := 0
	for call := range 200 {
		var ops []store.Op
		for range 1 + call%5*call%23 {
			ops = append(ops, store.InsertOrReplace(entity("p", fmt.Sprint(n), 1, 10)))
			n++
		}
		if call%7 == 0 {
			apply(t, db, store.InsertOrReplace(entity("p", "gone", 1, 10)))
			ops = append(ops, store.Delete(edm.Key{Partition: "p", Row: "gone"}, store.Any), store.Insert(entity("p", fmt.Sprint("x", call), 1, 10)))
		}
		results := apply(t, db, ops...)
		kept = append(kept, results)
		if extra := append(results, store.Result{ETag: "mine"}); len(extra) != len(ops)+1 {
			t.Fatalf("%d results of %d operations", len(results), len(ops))
		}
	}
	last := edm.Ticks(0)
	for call, results := range kept {
		for i, r := range results {
			if r == (store.Result{}) { // of the deletion
				continue
			}
			if r.ETag != r.Timestamp.ETag() || r.Timestamp <= last {
				t.Errorf("call %d, result %d: %d and %q after %d", call, i, r.Timestamp, r.ETag, last)
			}
			last = r.Timestamp
		}
	}
}
