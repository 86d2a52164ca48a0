package engine

import (
	"errors"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/batch"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestLookupDuringDrop looks up a table, drops it, and reads from it after each step of
// the background work that removes its rows. Overwritten versions must not appear, and
// the error must be that the table is missing, not the entity.
func TestLookupDuringDrop(t *testing.T) {
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	db, err := Open("db", Options{FS: vfs.NewMem(), Testing: TestHooks{Manual: true}, SegmentBytes: 64 << 10, FileBytes: 64 << 10, TierRuns: 2})
	must("Open", err)
	defer func() { must("Close", db.Close()) }()
	const table = "Things"
	must("CreateTable", db.CreateTable(t.Context(), table))
	key := edm.Key{Partition: "p", Row: "r"}
	put := func(n int64) {
		_, err := db.Apply(t.Context(), table, store.InsertOrReplace(edm.Entity{
			Key: key, Properties: edm.Properties{{Name: "N", Value: edm.Int64(n)}},
		}))
		must("Apply", err)
	}
	put(1)
	must("Compact", db.Compact(t.Context()))
	put(2)

	cat := db.catalog.Load()
	b := batch.New(&db.batchDB)
	defer b.Release()
	must("Add", b.Add(table, []store.Op{store.Delete(key, "W/other")}))
	must("DeleteTable", db.DeleteTable(t.Context(), table))
	must("Freeze", db.log.Freeze())
	for worked := true; worked; {
		worked, err = db.Step(t.Context())
		must("Step", err)
		err := db.viewAt(cat, table, key, codec.MaxSeq, func(row edm.Row) error {
			n, _ := row.Lookup("N")
			t.Errorf("View shows N = %v", n)
			return nil
		})
		if !errors.Is(err, store.ErrTableNotFound) {
			t.Errorf("View: %v, want %v", err, store.ErrTableNotFound)
		}
		if err := b.Append(); !errors.Is(err, batch.ErrTableGone) {
			t.Errorf("a write: %v, want %v", err, batch.ErrTableGone)
		}
	}
}

// TestDropsAreForgotten creates and drops tables, half of them beside a snapshot. The database must
// keep no drop longer than a reader that is older.
func TestDropsAreForgotten(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, noSync := range []bool{false, true} {
		db, err := Open("db", Options{FS: vfs.NewMem(), NoSync: noSync, Testing: TestHooks{Manual: true}, SegmentBytes: 64 << 10})
		must(t, "Open", err)
		round := func() {
			t.Helper()
			must(t, "CreateTable", db.CreateTable(t.Context(), "Things"))
			must(t, "DeleteTable", db.DeleteTable(t.Context(), "Things"))
		}
		most := 0
		for range 10_000 {
			round()
			most = max(most, db.drops.Len())
		}
		if most > 2500 { // with NoSync, those of some segments
			t.Errorf("NoSync %t: %d of 10000 drops are kept", noSync, most)
		}
		must(t, "CreateTable", db.CreateTable(t.Context(), "Kept"))
		id := db.catalog.Load().Lookup("Kept").ID
		_, err = db.Apply(t.Context(), "Kept", store.Insert(edm.Entity{Key: edm.Key{Row: "r"}}))
		must(t, "Apply", err)
		snap, err := db.Snapshot()
		must(t, "Snapshot", err)
		must(t, "DeleteTable", db.DeleteTable(t.Context(), "Kept"))
		for range 1000 {
			round()
		}
		must(t, "Compact", db.Compact(t.Context()))
		if _, err := snap.Get(t.Context(), "Kept", edm.Key{Row: "r"}); err != nil || db.isDropped(id) {
			t.Errorf("NoSync %t: a snapshot of a dropped table: %v; no reader is left %t", noSync, err, db.isDropped(id))
		}
		if n := db.drops.Len(); n < 1000 {
			t.Errorf("NoSync %t: %d drops are kept beside an older snapshot, want 1000", noSync, n)
		}
		must(t, "Close", snap.Close())
		for range 2000 {
			round()
		}
		must(t, "Flush", db.Flush(t.Context()))
		round()
		if !db.isDropped(id) {
			t.Errorf("NoSync %t: the rows of a dropped table are kept without a reader", noSync)
		}
		must(t, "Compact", db.Compact(t.Context()))
		if stats, err := db.Stats(); err != nil || stats.Entities != 0 {
			t.Errorf("NoSync %t: %d entities are left, %v", noSync, stats.Entities, err)
		}
		must(t, "Close", db.Close())
	}
}
