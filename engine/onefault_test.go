package engine_test

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestQueryAfterOneFault fails each read of an sstable once, from its first use on, and works
// again. A query must return an error, or each row once. The first walk over rows ends after 128.
func TestQueryAfterOneFault(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, rows := range []int{127, 128, 129, 384} {
		disk := vfs.NewMem()
		o := engine.Options{FS: disk, CacheBytes: 4 << 20, SegmentBytes: 4 << 20, FileBytes: 4 << 20, Testing: engine.TestHooks{Manual: true}}
		db := mustCreate(t, o)
		check(t, "Flush", db.Flush(t.Context())) // the catalog has a file of its own
		fill(t, db, "q", rows, 1000)
		check(t, "Close", db.Close())
		names := files(t, disk, "db", ".sst")
		name := names[len(names)-1]
		for _, text := range []string{"PartitionKey eq 'q'", "PartitionKey eq 'q' and N ge 0L"} {
			for _, kind := range []string{"rows", "columns", "rows in reverse"} {
				failed := true
				for n := uint64(1); failed; n++ {
					failed = false
					o.FS = failRead(disk, n, false, &failed, name)
					db := mustOpen(t, "db", o)
					c := db.Query(t.Context(), table, store.Query{Filter: filter.MustParse(text), Reverse: kind == "rows in reverse"}).(store.ColumnCursor)
					seen := map[string]int{}
					for {
						var columns store.Columns
						if kind == "columns" {
							columns = c.NextColumns()
						}
						if columns != nil {
							for i := range columns.Len() {
								seen[string(columns.AppendRow(nil, i))]++
							}
						} else if c.Next() {
							seen[c.Row().Key().Row]++
						} else {
							break
						}
					}
					err := errors.Join(c.Err(), c.Close())
					for i := range rows {
						if key := fmt.Sprintf("%06d", i); seen[key] > 1 || seen[key] == 0 && err == nil {
							t.Fatalf("%d rows, %s, %s, read %d failed: row %s was returned %d times, %v", rows, text, kind, n, key, seen[key], err)
						}
					}
					check(t, "Close", closeAtOnce(db))
				}
			}
		}
	}
}

// failRead returns disk with a fault: the n-th read of the files fails, and if lasting is set all later ones. It sets
// failed then.
func failRead(disk vfs.FS, n uint64, lasting bool, failed *bool, names ...string) vfs.FS {
	rule := errorfs.FailNth(n, func(op vfs.Op) bool { return op.Kind == "read" && slices.Contains(names, path.Base(op.Name)) },
		errorfs.Fault{Err: syscall.EIO}, lasting)
	return errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
		f := rule(op)
		*failed = *failed || f != nil
		return f
	})
}

// TestEmptyRangeAfterOneFault fails each read of an sstable once in a query that passes tombstones. The query must not
// note that there is no entity behind them: a later query must return the rows.
func TestEmptyRangeAfterOneFault(t *testing.T) {
	race.SkipOneGoroutine(t)
	const rows, deleted = 300, 200
	disk := vfs.NewMem()
	o := engine.Options{FS: disk, CacheBytes: 4 << 20, SegmentBytes: 4 << 20, FileBytes: 4 << 20, Testing: engine.TestHooks{Manual: true}}
	db := mustCreate(t, o)
	check(t, "Flush", db.Flush(t.Context())) // the catalog has a file of its own
	fill(t, db, "q", rows, 1000)
	check(t, "Flush", db.Flush(t.Context()))
	names := files(t, disk, "db", ".sst")
	name := names[len(names)-1]
	for i := range rows {
		if i < deleted/2 || i >= rows-deleted/2 {
			_, err := db.Apply(t.Context(), table, store.Delete(edm.Key{Partition: "q", Row: fmt.Sprintf("%06d", i)}, store.Any))
			check(t, "Delete", err)
		}
	}
	check(t, "Close", closeAtOnce(db))
	for _, reverse := range []bool{false, true} {
		failures := 0
		for n, failed := uint64(1), true; failed; n++ {
			failed = false
			o.FS = failRead(disk, n, false, &failed, name)
			db := mustOpen(t, "db", o)
			count := func() (found int, err error) {
				for _, e := range db.Entities(t.Context(), table, store.Query{Reverse: reverse, Limit: 1}) {
					if err = e; err == nil {
						found++
					}
				}
				return found, err
			}
			if _, err := count(); err != nil {
				failures++
			}
			if found, err := count(); err != nil || found != 1 {
				t.Errorf("reverse=%t, read %d failed: the next query found %d entities, %v", reverse, n, found, err)
			}
			check(t, "Close", closeAtOnce(db))
		}
		if failures == 0 {
			t.Error("no query failed")
		}
	}
}

// TestFilterOfRunsAfterOneFault fails each read of two runs that overlap once, or it and all later ones, in a filter whose
// matches are in the older run. The query must return an error, or each row that matches once. It must not return an old
// version of a row because it could not read the newer run, which it asks for the keys of the matches, nor ask it forever.
func TestFilterOfRunsAfterOneFault(t *testing.T) {
	race.SkipOneGoroutine(t)
	const rows = 400
	disk := vfs.NewMem()
	o := engine.Options{FS: disk, CacheBytes: 4 << 20, SegmentBytes: 4 << 20, FileBytes: 4 << 20, Testing: engine.TestHooks{Manual: true}}
	db := mustCreate(t, o)
	check(t, "Flush", db.Flush(t.Context())) // the catalog has a file of its own
	catalog := len(files(t, disk, "db", ".sst"))
	n := map[string]int64{}
	for run := range 2 {
		for i := range rows {
			if key := fmt.Sprintf("%06d", i); run == 0 || i%3 == 0 {
				n[key] = int64(i%4 + 4*run)
				apply(t, db, store.InsertOrReplace(entity("q", key, n[key], 800)))
			}
		}
		check(t, "Flush", db.Flush(t.Context()))
	}
	check(t, "Close", db.Close())
	names := files(t, disk, "db", ".sst")[catalog:]
	if len(names) != 2 {
		t.Fatalf("files %v, want two", names)
	}
	for i := range 4 {
		reverse, lasting := i%2 > 0, i/2 > 0
		failures := 0
		for nth, failed := uint64(1), true; failed; nth++ {
			failed = false
			o.FS = failRead(disk, nth, lasting, &failed, names...)
			db := mustOpen(t, "db", o)
			seen := map[string]int{}
			var err error
			for e, each := range db.Entities(t.Context(), table, store.Query{Filter: filter.MustParse("PartitionKey eq 'q' and N eq 1L"), Reverse: reverse}) {
				if err = each; err == nil {
					seen[e.Key.Row]++
				}
			}
			if err != nil {
				failures++
			}
			for key, v := range n {
				if seen[key] > 1 || seen[key] == 1 && v != 1 || seen[key] == 0 && v == 1 && err == nil {
					t.Fatalf("reverse=%t, read %d failed (lasting=%t): row %s with N=%d was returned %d times, %v", reverse, nth, lasting, key, v, seen[key], err)
				}
			}
			check(t, "Close", closeAtOnce(db))
		}
		if failures == 0 {
			t.Error("no query failed")
		}
	}
}
