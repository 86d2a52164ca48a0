package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// With NoSync, the files of a Load have a Timestamp beyond those that the manifest has reserved,
// so the manifest that Close or Checkpoint writes must be above it: files that it does not list
// would look as if it were outdated.

// loadTwice loads the same entities twice, so that a compaction replaces the first files.
func loadTwice(t *testing.T, db *engine.DB) {
	t.Helper()
	var rows []edm.Entity
	for i := range 100 {
		rows = append(rows, entity("p", fmt.Sprintf("%03d", i), 1, 10))
	}
	for range 2 {
		_, err := db.Load(t.Context(), table, sequence(rows), engine.LoadOptions{})
		check(t, "Load", err)
	}
}

// compactKilled compacts the database in dir and opens the disks of each of its operations.
func compactKilled(t *testing.T, dir string, disk *vfs.Mem, fs *errorfs.FS) {
	t.Helper()
	db := mustOpen(t, dir, manual(fs))
	var killed []*vfs.Mem
	fs.SetRule(func(vfs.Op) *errorfs.Fault {
		killed = append(killed, disk.Clone())
		return nil
	})
	check(t, "Compact", db.Compact(t.Context()))
	fs.SetRule(nil)
	for i, d := range killed {
		db, err := engine.Open(dir, manual(d))
		if err != nil {
			t.Fatalf("killed at operation %d of %d: %v", i, len(killed), err)
		}
		check(t, "Close", db.Close())
	}
}

func TestLoadNoSyncThenKilled(t *testing.T) {
	for _, checkpoint := range []bool{false, true} {
		t.Run(fmt.Sprintf("checkpoint=%t", checkpoint), func(t *testing.T) {
			disk := vfs.NewCrashMem()
			fs := errorfs.Wrap(disk, nil)
			o := manual(fs)
			o.NoSync = true
			db := mustCreate(t, o)
			loadTwice(t, db)
			dir := "db"
			if checkpoint {
				dir = "copy"
				check(t, "Checkpoint", db.Checkpoint(t.Context(), dir))
			} else {
				check(t, "Close", db.Close())
			}
			compactKilled(t, dir, disk, fs)
		})
	}
}

func TestLoadNoSyncSnapshotAtClose(t *testing.T) {
	o := manual(vfs.NewMem())
	o.NoSync = true
	db := mustCreate(t, o)
	loadTwice(t, db)
	snap, err := db.Snapshot()
	check(t, "Snapshot", err)
	defer snap.Close()
	apply(t, db, store.InsertOrReplace(entity("p", "050", 2, 10)))
	check(t, "Compact", db.Compact(t.Context()))
	check(t, "Close", db.Close())
	check(t, "Close", mustOpen(t, "db", o).Close())
}

func TestLoadNoSyncPowerCutInClose(t *testing.T) {
	disk := vfs.NewCrashMem()
	fs := errorfs.Wrap(disk, nil)
	o := manual(fs)
	o.NoSync = true
	db := mustCreate(t, o)
	check(t, "Flush", db.Flush(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fs.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "sync" && strings.HasSuffix(op.Name, ".sst") {
			cancel()
		}
		return nil
	})
	_, err := db.Load(ctx, table, sequence([]edm.Entity{entity("p", "r", 1, 10)}), engine.LoadOptions{})
	if err == nil {
		t.Fatal("Load was not cancelled")
	}
	var states []*vfs.Mem
	fs.SetRule(func(vfs.Op) *errorfs.Fault {
		for s := range disk.CrashStates(64) {
			states = append(states, s)
		}
		return nil
	})
	check(t, "Close", db.Close())
	fs.SetRule(nil)
	for i, s := range states {
		db, err := engine.Open("db", manual(s))
		if err != nil {
			t.Fatalf("state %d of %d: %v", i, len(states), err)
		}
		check(t, "Close", db.Close())
	}
}
