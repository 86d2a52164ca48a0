package engine_test

import (
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestTornTakeOver cuts the power while the header of the next segment is written to
// the file of a flushed one, which it takes over. The file then belongs to neither and
// must be removed.
func TestTornTakeOver(t *testing.T) {
	disk := vfs.NewCrashMem()
	db := mustCreate(t, manual(errorfs.Wrap(disk, nil)))
	var states []*vfs.Mem
	old := ""
	disk.OnOp(func(op vfs.Op) {
		if op.Kind != "sync" || op.Name != old {
			return
		}
		for seed := range uint64(8) {
			states = append(states, disk.Crash(vfs.CrashOptions{Mode: "sector", Seed: seed}))
		}
	})
	fill(t, db, "p", 4, 14<<10)
	before := files(t, disk, "db", ".wal")
	check(t, "Flush", db.Flush(t.Context()))
	old = "db/" + before[len(before)-1]
	fill(t, db, "q", 1, 10)
	if len(states) == 0 {
		t.Fatal("no file was taken over")
	}
	for i, state := range states {
		for _, archive := range []engine.Archive{nil, &memArchive{}} {
			state := state.Clone()
			o := manual(state)
			o.Archive = archive
			db := mustOpen(t, "db", o)
			drain(t, db)
			check(t, "Close", closeAtOnce(db))
			for _, name := range files(t, state, "db", ".wal") {
				if strings.HasSuffix(old, name) {
					t.Errorf("state %d, archive %t: %s is still there", i, archive != nil, name)
				}
			}
		}
	}
}
