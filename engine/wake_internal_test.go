package engine

import (
	"context"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestCompactWakesWriters compacts many runs of one key before a lot of other data. Writers that
// wait because of the runs must be woken when they are compacted, and not at the end.
func TestCompactWakesWriters(t *testing.T) {
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	db, err := Open("db", Options{FS: vfs.NewMem(), Testing: TestHooks{Manual: true}, SegmentBytes: 64 << 10, FileBytes: 64 << 10, TierRuns: 16})
	must("Open", err)
	defer func() { must("Close", db.Close()) }()
	const table = "Things"
	must("CreateTable", db.CreateTable(t.Context(), table))
	load := func(rows, step int) {
		_, err := db.Load(t.Context(), table, func(yield func(edm.Entity, error) bool) {
			for i := 0; i < rows; i += step {
				e := edm.Entity{Key: edm.Key{Partition: fmt.Sprintf("z%04d", i)}, Properties: edm.Properties{{Name: "B", Value: edm.Binary(make([]byte, 2000))}}}
				if !yield(e, nil) {
					return
				}
			}
		}, LoadOptions{})
		must("Load", err)
	}
	load(4000, 1)
	load(4000, 10) // so that all of the first is compacted
	for n := range maxRuns {
		_, err := db.Apply(t.Context(), table, store.InsertOrReplace(edm.Entity{
			Key: edm.Key{Partition: "a"}, Properties: edm.Properties{{Name: "N", Value: edm.Int32(int32(n))}},
		}))
		must("Apply", err)
		must("Flush", db.Flush(t.Context()))
	}
	if db.stallCause() == "" {
		t.Fatal("writers need not wait")
	}
	job := db.timeJob(db.tree.NewFullCompaction(), 0)
	woken := func() uint64 {
		db.work.mu.Lock()
		defer db.work.mu.Unlock()
		return db.work.work
	}
	before := woken()
	for db.stallCause() != "" {
		done, err := db.compactStep(context.Background(), job)
		must("Step", err)
		if done {
			t.Fatal("writers wait for the end")
		}
	}
	if woken() == before {
		t.Error("no writer was woken")
	}
	for done := false; !done; {
		done, err = db.compactStep(context.Background(), job)
		must("Step", err)
	}
}
