package engine

import (
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestStepFreesSegments loads entities into a database whose log is flushed. Load replaces the
// segment, which the next step must free: a process that only loads would keep it for ever.
func TestStepFreesSegments(t *testing.T) {
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	db, err := Open("db", Options{FS: vfs.NewMem(), Testing: TestHooks{Manual: true}, SegmentBytes: 64 << 10, FileBytes: 64 << 10})
	must("Open", err)
	defer func() { must("Close", db.Close()) }()
	const table = "Things"
	must("CreateTable", db.CreateTable(t.Context(), table))
	must("Flush", db.Flush(t.Context()))
	e := edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}}
	before := db.log.Active()
	_, err = db.Load(t.Context(), table, func(yield func(edm.Entity, error) bool) { yield(e, nil) }, LoadOptions{})
	must("Load", err)
	if db.log.Active() == before {
		t.Fatal("Load has not replaced the segment")
	}
	if worked, err := db.Step(t.Context()); err != nil || worked {
		t.Fatalf("Step: %v, %v, want nothing to do", worked, err)
	}
	// The next segment takes the memory of the last one that was freed.
	_, err = db.Apply(t.Context(), table, store.InsertOrReplace(e))
	must("Apply", err)
	must("Freeze", db.log.Freeze())
	if &db.log.Active().Image()[0] != &before.Image()[0] {
		t.Error("the segment that Load replaced keeps its memory")
	}
}
