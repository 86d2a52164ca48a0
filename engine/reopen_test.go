package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// loadNew inserts n entities with new keys in random order and flushes them in runs
// equal parts. No entity is overwritten.
func loadNew(tb testing.TB, db *engine.DB, runs, n int) {
	tb.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	for i, row := range rnd.Perm(n) {
		partition := fmt.Sprintf("p%02d", row%20)
		e := entity(partition, fmt.Sprintf("%06d", row), int64(row), 50)
		e.Properties = append(e.Properties, edm.Property{Name: "Noise", Value: edm.Int64(rnd.Int64())})
		apply(tb, db, store.Insert(e))
		if (i+1)%(n/runs) == 0 {
			check(tb, "Flush", db.Flush(tb.Context()))
		}
	}
}

// TestReplayedIsFlushed opens a database with a log. The background goroutine flushes what
// Open replayed, without a write.
func TestReplayedIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small(vfs.NewMem())
		db := mustCreate(t, o)
		fill(t, db, "p", 100, 1500)
		want := dump(t, db, store.Query{})
		check(t, "Close", closeAtOnce(db))
		if left := files(t, o.FS, "db", ".wal"); len(left) == 0 {
			t.Fatal("no log: the test proves nothing")
		}
		db = mustOpen(t, "db", o)
		synctest.Wait()
		stats, err := db.Stats()
		check(t, "Stats", err)
		if stats.WALBytes != 0 {
			t.Errorf("log of %d bytes, want all flushed", stats.WALBytes)
		}
		if diff := cmp.Diff(want, dump(t, db, store.Query{})); diff != "" {
			t.Errorf("entities (-want +got):\n%s", diff)
		}
		check(t, "Close", db.Close())
	})
}

// TestReopenRewritesNothing loads entities without overwrites into several runs. After a
// reopen, no compaction must find garbage in them, and the space amplification remains 1.
func TestReopenRewritesNothing(t *testing.T) {
	race.SkipOneGoroutine(t)
	disk := vfs.NewMem()
	o := engine.Options{FS: disk, TierRuns: 8, FileBytes: 64 << 10, CacheBytes: 1 << 20, Testing: engine.TestHooks{Manual: true}}
	db := mustCreate(t, o)
	loadNew(t, db, 6, 6000)
	drain(t, db)
	before, err := db.Stats()
	check(t, "Stats", err)
	names := fmt.Sprint(files(t, disk, "db", ".sst"))
	if before.RunsMax < 3 || before.SpaceAmp > 1.2 {
		t.Fatalf("%d runs with space amplification %v, want several and about 1", before.RunsMax, before.SpaceAmp)
	}
	check(t, "Close", db.Close())
	for range 3 {
		db = mustOpen(t, "db", o)
		drain(t, db)
		after, err := db.Stats()
		check(t, "Stats", err)
		if after.Compactions != 0 || after.CompactionBytesWritten != 0 || after.CompactionBytesRead != 0 {
			t.Errorf("%d compactions wrote %d bytes after the reopen, want none", after.Compactions, after.CompactionBytesWritten)
		}
		if after.SpaceAmp != before.SpaceAmp || after.RunsMax != before.RunsMax {
			t.Errorf("space amplification %v in %d runs after the reopen, %v in %d before", after.SpaceAmp, after.RunsMax, before.SpaceAmp, before.RunsMax)
		}
		if got := fmt.Sprint(files(t, disk, "db", ".sst")); got != names {
			t.Errorf("sstables are %s, were %s", got, names)
		}
		check(t, "Close", db.Close())
	}
}
