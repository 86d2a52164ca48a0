package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestDropFreesFiles drops a table of many files, and writes nothing afterwards. Background work must
// remove the files at once, or when the last reader that can see the table ends.
func TestDropFreesFiles(t *testing.T) {
	for _, c := range []struct {
		reader string
		begin  func(t *testing.T, db *engine.DB) (end func() error)
	}{
		{"none", func(*testing.T, *engine.DB) func() error { return func() error { return nil } }},
		{"snapshot", func(t *testing.T, db *engine.DB) func() error {
			s, err := db.Snapshot()
			check(t, "Snapshot", err)
			return s.Close
		}},
		{"query", func(t *testing.T, db *engine.DB) func() error {
			q := db.Query(t.Context(), table, store.Query{})
			if !q.Next() {
				t.Fatalf("no row, error %v", q.Err())
			}
			return q.Close
		}},
	} {
		t.Run(c.reader, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := vfs.NewMem()
				db := mustCreate(t, small(disk))
				fill(t, db, "p", 300, 1500)
				check(t, "Flush", db.Flush(t.Context()))
				synctest.Wait()
				before := files(t, disk, "db", ".sst")
				if len(before) < 3 {
					t.Fatalf("files %v, want several", before)
				}
				end := c.begin(t, db)
				check(t, "DeleteTable", db.DeleteTable(t.Context(), table))
				synctest.Wait()
				check(t, "end of the reader", end())
				synctest.Wait()
				if after := files(t, disk, "db", ".sst"); len(after) > 1 { // one has rows of the catalog
					t.Errorf("files %v of %v remain", after, before)
				}
			})
		})
	}
}

// TestCloseRemovesDropped drops a table of many files and closes the database before the background
// goroutine takes a step, as a program does that drops a table on a full disk and ends. Close must
// remove the files, unless a cursor reads them.
func TestCloseRemovesDropped(t *testing.T) {
	for _, cursor := range []bool{false, true} {
		t.Run(fmt.Sprintf("cursor=%t", cursor), func(t *testing.T) {
			disk := vfs.NewMem()
			db := mustCreate(t, manual(disk))
			fill(t, db, "p", 300, 1500)
			check(t, "Flush", db.Flush(t.Context()))
			before := files(t, disk, "db", ".sst")
			if len(before) < 3 {
				t.Fatalf("files %v, want several", before)
			}
			if cursor {
				defer checkRows(t, db.Query(t.Context(), table, store.Query{}), 300)
			}
			check(t, "DeleteTable", db.DeleteTable(t.Context(), table))
			check(t, "Close", db.Close())
			// Two have rows of the catalog.
			if after := files(t, disk, "db", ".sst"); cursor && len(after) < len(before) || !cursor && len(after) > 2 {
				t.Errorf("files %v of %v remain", after, before)
			}
		})
	}
}

// checkRows reads the rest of a cursor, which must have n rows, and closes it.
func checkRows(t *testing.T, q store.Cursor, n int) {
	t.Helper()
	for ; q.Next(); n-- {
	}
	check(t, "Err", q.Err())
	check(t, "Close of the cursor", q.Close())
	if n != 0 {
		t.Errorf("%d rows are missing", n)
	}
}

// TestSnapshotsFreeVersions closes snapshots for which compactions have kept many versions, and writes
// nothing afterwards. Background work must remove the versions.
func TestSnapshotsFreeVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := mustCreate(t, small(vfs.NewMem()))
		const rows = 500
		var taken []*engine.Snapshot
		for range 8 {
			for i := range rows {
				apply(t, db, store.InsertOrReplace(entity("p", fmt.Sprintf("%04d", i), int64(i), 20)))
			}
			check(t, "Compact", db.Compact(t.Context()))
			s, err := db.Snapshot()
			check(t, "Snapshot", err)
			taken = append(taken, s)
		}
		versions := func() int64 {
			synctest.Wait()
			s, err := db.Stats()
			check(t, "Stats", err)
			return s.Entities
		}
		if n := versions(); n < 8*rows {
			t.Fatalf("%d versions of %d rows beside 8 snapshots", n, rows)
		}
		for _, s := range taken {
			check(t, "Close", s.Close())
		}
		if n := versions(); n > rows+rows/4 {
			t.Errorf("%d versions of %d rows", n, rows)
		}
	})
}

// TestBatchKeepsNoFiles replaces several rows of one partition, which are in sstables, in a conditional batch. Once the batch is done,
// nothing keeps the files that a compaction replaces.
func TestBatchKeepsNoFiles(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	fill(t, db, "p", 5, 1000)
	check(t, "Flush", db.Flush(t.Context()))
	var ops []store.Op
	for i := range 5 {
		ops = append(ops, store.Replace(entity("p", fmt.Sprintf("%06d", i), 7, 10), store.Any))
	}
	apply(t, db, ops...)
	check(t, "Compact", db.Compact(t.Context()))
	if got, want := files(t, disk, "db", ".sst"), stats(t, db).SSTables; len(got) != want {
		t.Errorf("the directory has %q, want %d files", got, want)
	}
}
