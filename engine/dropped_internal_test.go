package engine

import (
	"errors"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/batch"
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
