package engine_test

import (
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestWritersWaitForManyRuns flushes rising keys one by one. Flushes precede compactions and
// the runs do not overlap, so unless writers wait, each flush leaves one more open file.
func TestWritersWaitForManyRuns(t *testing.T) {
	o := manual(vfs.NewMem())
	o.FileBytes = 64 << 20
	o.TierRuns = 8
	db := mustCreate(t, o)
	const flushes = 300
	var s engine.Stats
	most := 0
	for n := range flushes {
		apply(t, db, store.Insert(entity("p", fmt.Sprintf("%06d", n), int64(n), 100)))
		check(t, "Flush", db.Flush(t.Context()))
		var err error
		s, err = db.Stats()
		check(t, "Stats", err)
		most = max(most, s.SSTables)
	}
	if most > 100 || s.RunsMax > 2 || s.Stalls == 0 {
		t.Errorf("%d flushes, up to %d sstables, %d runs overlap, %d stalls; want at most 100, at most 2, and some", flushes, most, s.RunsMax, s.Stalls)
	}
	if rows := dump(t, db, store.Query{}); len(rows) != flushes {
		t.Errorf("%d rows, want %d", len(rows), flushes)
	}
}
