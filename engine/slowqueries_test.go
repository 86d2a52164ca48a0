package engine_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// deleteInserted inserts and deletes n entities at the beginning of partition "p", and inserts
// one behind them.
func deleteInserted(t *testing.T, db *engine.DB, n int) {
	t.Helper()
	for i := range n {
		key := edm.Key{Partition: "p", Row: fmt.Sprintf("%06d", i)}
		apply(t, db, store.Insert(edm.Entity{Key: key}))
		apply(t, db, store.Delete(key, store.Any))
	}
	apply(t, db, store.InsertOrReplace(entity("p", "last", 1, 1)))
}

// first returns the key of the first entity of the table.
func first(t *testing.T, query func(store.Query) store.Cursor) string {
	t.Helper()
	c := query(store.Query{Limit: 1})
	defer c.Close()
	if !c.Next() {
		t.Fatalf("no entity: %v", c.Err())
	}
	return c.Row().Key().Row
}

// passTombstones makes n queries that pass all tombstones before the first entity. They are of a Snapshot, which does not
// know of the range that the first one finds empty.
func passTombstones(t *testing.T, db *engine.DB, n int) {
	t.Helper()
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		first(t, func(q store.Query) store.Cursor { return snap.Query(t.Context(), table, q) })
	}
	if err := snap.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFlushForQueries passes deleted entities in queries. The memtable is flushed when they cost
// more than that, and the sstable has none of them.
func TestFlushForQueries(t *testing.T) {
	const n = 1000
	db := mustCreate(t, engine.Options{FS: vfs.NewMem(), SegmentBytes: 8 << 20, CacheBytes: 1 << 20})
	deleteInserted(t, db, n)
	snap, err := db.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	ofDB := func(q store.Query) store.Cursor { return db.Query(t.Context(), table, q) }
	ofSnapshot := func(q store.Query) store.Cursor { return snap.Query(t.Context(), table, q) }
	for i := 0; ; i++ {
		query := ofDB
		if i%2 == 1 {
			query = ofSnapshot
		}
		if got := first(t, query); got != "last" {
			t.Fatalf("the first row is %s, want last", got)
		}
		stats, err := db.Stats()
		if err != nil {
			t.Fatal(err)
		}
		if stats.SSTables > 0 {
			if stats.WALBytes != 0 || stats.Entities != 1 {
				t.Errorf("after a flush: %+v, want one entity, and no log", stats)
			}
			break
		}
		if i == 100_000 {
			t.Fatalf("no flush after %d queries over %d tombstones", i, n)
		}
	}
	if err := snap.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNoFlushForQueries passes few deleted entities, or many beside a long log or an archive.
// None of these costs as much as a flush.
func TestNoFlushForQueries(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, c := range []struct {
		name                    string
		deleted, queries, bytes int
		archive                 engine.Archive
	}{
		{"few tombstones", 10, 1000, 0, nil},
		{"a long log", 1000, 200, 2 << 20, nil},
		{"an archive", 1000, 200, 0, &memArchive{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := mustCreate(t, engine.Options{
				FS: vfs.NewMem(), SegmentBytes: 8 << 20, CacheBytes: 1 << 20, Archive: c.archive, Testing: engine.TestHooks{Manual: true},
			})
			for i := range c.bytes >> 15 {
				apply(t, db, store.Insert(edm.Entity{
					Key:        edm.Key{Partition: "z", Row: fmt.Sprint(i)},
					Properties: edm.Properties{{Name: "B", Value: edm.Binary(make([]byte, 1<<15))}},
				}))
			}
			deleteInserted(t, db, c.deleted)
			passTombstones(t, db, c.queries)
			if _, err := db.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			if stats, err := db.Stats(); err != nil || stats.Flushes > 0 {
				t.Errorf("%d flushes, %v; want none", stats.Flushes, err)
			}
		})
	}
}

// TestQueriesWhileFlushesFail passes many deleted entities after each flush that fails. They do not
// freeze one memtable after the other, for which writes would be refused soon.
func TestQueriesWhileFlushesFail(t *testing.T) {
	race.SkipOneGoroutine(t)
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	db := mustCreate(t, engine.Options{FS: fsys, SegmentBytes: 8 << 20, CacheBytes: 1 << 20, Testing: engine.TestHooks{Manual: true}})
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "create" && strings.HasSuffix(op.Name, ".sst") {
			return &errorfs.Fault{Err: syscall.EIO}
		}
		return nil
	})
	step := func() error {
		deleteInserted(t, db, 1000)
		passTombstones(t, db, 200)
		_, err := db.Step(t.Context())
		return err
	}
	for range 5 {
		if err := step(); err == nil {
			t.Fatal("Step: no error, want that of the flush")
		}
	}
	fsys.SetRule(nil)
	check(t, "Step", step())
	drain(t, db)
	if stats, err := db.Stats(); err != nil || stats.WALBytes != 0 {
		t.Errorf("after a flush: %+v, %v, want no log", stats, err)
	}
}
