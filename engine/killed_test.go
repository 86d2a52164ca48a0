package engine_test

import (
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestPowerFailsAfterKill kills the process at every operation of a flush and cuts the
// power at every operation of the recovery. What the page cache shows to the recovery,
// names included, need not be on the disk.
func TestPowerFailsAfterKill(t *testing.T) {
	race.SkipOneGoroutine(t)
	ctx := t.Context()
	cache := engine.NewCache(1 << 20)
	open := func(disk *vfs.Mem, readOnly bool) (*engine.DB, error) {
		return engine.Open("db", engine.Options{FS: disk, Testing: engine.TestHooks{Manual: true}, SegmentBytes: 64 << 10, Cache: cache, ReadOnly: readOnly})
	}
	key := edm.Key{Partition: "p", Row: "r"}
	disk := vfs.NewCrashMem()
	for _, write := range []func(*engine.DB) error{
		func(db *engine.DB) error { return db.CreateTable(ctx, "Rows") },
		func(db *engine.DB) error {
			_, err := db.Apply(ctx, "Rows", store.Insert(edm.Entity{Key: key}))
			return err
		},
	} {
		db, err := open(disk, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := write(db); err != nil {
			t.Fatal(err)
		}
		if err := closeAtOnce(db); err != nil {
			t.Fatal(err)
		}
	}
	db, err := open(disk, false)
	if err != nil {
		t.Fatal(err)
	}
	var killed []*vfs.Mem
	disk.OnOp(func(vfs.Op) { killed = append(killed, disk.Clone()) })
	if err := db.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	disk.OnOp(nil)
	if err := closeAtOnce(db); err != nil {
		t.Fatal(err)
	}
	states, most := 0, 64
	if testing.Short() {
		most = 16 // all lost, all kept and a random sample; cmd/torture checks more
	}
	for kill, disk := range killed {
		check := func(op vfs.Op) {
			for after := range disk.CrashStates(most) {
				states++
				db, err := open(after, false)
				if err != nil {
					t.Fatalf("killed at operation %d of the flush, power lost at %v of the recovery: %v", kill, op, err)
				}
				if _, err := db.Get(ctx, "Rows", key); err != nil {
					t.Fatalf("killed at operation %d of the flush, power lost at %v of the recovery: get: %v", kill, op, err)
				}
				if err := closeAtOnce(db); err != nil {
					t.Fatal(err)
				}
			}
		}
		disk.OnOp(check)
		db, err := open(disk, false)
		if err != nil {
			t.Fatal(err)
		}
		disk.OnOp(nil)
		check(vfs.Op{})
		if err := closeAtOnce(db); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d kills, %d states", len(killed), states)
}

// TestPowerFailsAfterKilledCreation kills the process before the directories that it has made are
// durable. What the next process acknowledges must not depend on them.
func TestPowerFailsAfterKilledCreation(t *testing.T) {
	const dir = "data/accounts/db"
	disk := vfs.NewCrashMem()
	var killed []*vfs.Mem
	fs := errorfs.Wrap(disk, nil)
	fs.SetRule(func(vfs.Op) *errorfs.Fault {
		killed = append(killed, disk.Clone())
		return nil
	})
	check(t, "Close", mustOpen(t, dir, manual(fs)).Close())
	for i, disk := range killed {
		db := mustOpen(t, dir, manual(disk))
		check(t, "CreateTable", db.CreateTable(t.Context(), table))
		apply(t, db, store.Insert(entity("p", "r", 1, 10)))
		after := mustOpen(t, dir, manual(disk.Crash(vfs.CrashOptions{Mode: "min"})))
		if _, err := after.Get(t.Context(), table, edm.Key{Partition: "p", Row: "r"}); err != nil {
			t.Errorf("killed at operation %d of %d: an acknowledged write is lost: %v", i, len(killed), err)
		}
	}
}
