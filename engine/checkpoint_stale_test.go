package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestCheckpointReplacesSource writes to a checkpoint whose source was removed, on a disk that
// shows the bytes of removed files where a power cut loses those of new ones. The files that the
// source wrote after the checkpoint have its id, so the checkpoint must not use their numbers.
func TestCheckpointReplacesSource(t *testing.T) {
	race.SkipOneGoroutine(t)
	source := vfs.NewCrashMem()
	o := manual(source)
	o.SegmentBytes = 600 << 10
	db := mustCreate(t, o)
	check(t, "Flush", db.Flush(t.Context()))
	check(t, "Checkpoint", db.Checkpoint(t.Context(), "copy"))
	insert := func(db *engine.DB) {
		t.Helper()
		for i := range 50 {
			var batches [][]store.Op
			for k := range 50 {
				batches = append(batches, []store.Op{store.Insert(entity(fmt.Sprintf("p%06d", i*50+k), "r", 1, 300))})
			}
			_, err := db.ApplyBatches(t.Context(), table, batches)
			check(t, "ApplyBatches", err)
		}
	}
	insert(db)
	disk := source.Crash(vfs.CrashOptions{Mode: "max"})
	check(t, "Close", db.Close())
	logs := files(t, disk, "db", ".wal")
	others := slices.DeleteFunc(files(t, disk, "db", ""), func(name string) bool { return slices.Contains(logs, name) })
	for _, name := range append(others, logs...) { // the memory of the last one is used first
		check(t, "Remove", disk.Remove("db/"+name))
	}
	check(t, "SyncDir", disk.SyncDir("db"))
	o.FS = disk
	c := mustOpen(t, "copy", o)
	states := 0
	disk.OnOp(func(op vfs.Op) {
		if op.Kind != "sync" || op.Done != 0 {
			return
		}
		for seed := range uint64(3) {
			states++
			cut := disk.Crash(vfs.CrashOptions{Mode: []string{"subset", "sector", "prefix"}[seed], Seed: seed + uint64(op.Index)})
			again, err := engine.Open("copy", manual(cut))
			if err != nil {
				t.Errorf("a power cut at %v: %v", op, err)
				continue
			}
			check(t, "Close", closeAtOnce(again))
		}
	})
	insert(c)
	disk.OnOp(nil)
	if states < 100 {
		t.Errorf("%d power cuts", states)
	}
	check(t, "Close", closeAtOnce(c))
}

// TestOldCursorRemovesNothing replaces a closed database by a checkpoint, whose files a compaction of the source has consumed
// and only a cursor of the source keeps. The end of the cursor must not remove the files of the checkpoint.
func TestOldCursorRemovesNothing(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	for range 2 {
		fill(t, db, "p", 100, 100)
		check(t, "Flush", db.Flush(t.Context()))
	}
	want := dump(t, db, store.Query{})
	check(t, "Checkpoint", db.Checkpoint(t.Context(), "copy"))
	c := db.Query(t.Context(), table, store.Query{})
	check(t, "Compact", db.Compact(t.Context()))
	check(t, "Close", db.Close())
	for _, name := range files(t, disk, "db", "") {
		check(t, "Remove", disk.Remove("db/"+name))
	}
	for _, name := range files(t, disk, "copy", "") {
		check(t, "Rename", disk.Rename("copy/"+name, "db/"+name))
	}
	db = mustOpen(t, "db", manual(disk))
	check(t, "Close of the cursor", c.Close())
	check(t, "Close", db.Close())
	db = mustOpen(t, "db", manual(disk))
	if got := dump(t, db, store.Query{}); !slices.Equal(got, want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
}
