package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
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

// TestFlushesWaitForCompactions writes rows at random keys while the background work does no more
// than each flush needs. Unless flushes wait for compactions, those are left until 20 runs overlap,
// and then writers wait for all of them at once.
func TestFlushesWaitForCompactions(t *testing.T) {
	o := manual(vfs.NewMem())
	o.FileBytes, o.TierRuns = 1<<20, 8
	db := mustCreate(t, o)
	r := rand.New(rand.NewPCG(1, 1))
	const flushes = 120
	mostRuns, mostSteps, steps := 0, 0, 0
	for n := 0; ; n++ {
		s, err := db.Stats()
		check(t, "Stats", err)
		mostRuns = max(mostRuns, s.RunsMax)
		if s.Stalls > 0 {
			t.Fatalf("writers wait after %d flushes, with %d runs", s.Flushes, s.RunsMax)
		}
		if s.Flushes >= flushes {
			break
		}
		if len(s.Memtables) == 1 {
			mostSteps, steps = max(mostSteps, steps), 0
			apply(t, db, store.Insert(entity("p", fmt.Sprintf("%08x-%d", r.Uint32(), n), int64(n), 2000)))
			continue
		}
		steps++
		_, err = db.Step(t.Context())
		check(t, "Step", err)
	}
	// Eight runs have 512 KiB, and a step reads about 200 KiB of them.
	if mostRuns < 8 || mostSteps > 12 {
		t.Errorf("up to %d runs, want 8 or more; up to %d steps between two writes, want 12 or fewer", mostRuns, mostSteps)
	}
	check(t, "Close", db.Close())
}

// TestFlushDoesNotWaitForDamage has a compaction before a flush fail, because its inputs are damaged.
func TestFlushDoesNotWaitForDamage(t *testing.T) {
	disk := vfs.NewMem()
	o := manual(disk)
	o.FileBytes, o.TierRuns = 1<<20, 8
	db := mustCreate(t, o)
	for n := range 14 {
		for i := range 20 {
			apply(t, db, store.Insert(entity("p", fmt.Sprintf("%02d-%02d", i, n), 1, 1000)))
		}
		check(t, "Flush", db.Flush(t.Context()))
	}
	m, err := manifest.Read(disk, "db")
	check(t, "read manifest", err)
	for _, f := range m.Files {
		check(t, "Patch", disk.Patch("db/"+filename.Make(filename.SSTable, f.Number), 100, []byte("damaged")))
	}
	before, err := db.Stats()
	check(t, "Stats", err)
	for n, s := 0, before; len(s.Memtables) == 1; n++ {
		apply(t, db, store.Insert(entity("p", fmt.Sprintf("10-%03d", n), 1, 1000)))
		s, err = db.Stats()
		check(t, "Stats", err)
	}
	steps := 0
	for err = nil; err == nil && steps < 100; steps++ {
		_, err = db.Step(t.Context())
	}
	middle, _ := db.Stats()
	if !errors.Is(err, store.ErrCorrupt) || middle.Flushes != before.Flushes {
		t.Errorf("after %d steps: error %v and %d flushes, want damage before the first flush", steps, err, middle.Flushes-before.Flushes)
	}
	_, err = db.Step(t.Context())
	check(t, "Step", err)
	after, _ := db.Stats()
	if after.Flushes != before.Flushes+1 {
		t.Error("the step after the failure does not flush")
	}
	check(t, "Close", db.Close())
}
