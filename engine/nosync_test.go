package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestNoSyncKeepsOrder kills the process and cuts the power at many times of a run in
// NoSync mode. A prefix of the writes must be left, with whole batches.
func TestNoSyncKeepsOrder(t *testing.T) {
	race.SkipOneGoroutine(t)
	disk := vfs.NewCrashMem()
	o := manual(disk)
	o.NoSync = true
	db := mustCreate(t, o)
	const batches = 120
	verify := func(what string, after *vfs.Mem) {
		db := mustOpen(t, "db", manual(after))
		defer db.Close()
		tables, err := db.Tables(t.Context(), "", 0)
		check(t, "Tables", err)
		got := 0
		if len(tables) > 0 {
			for e, err := range store.Entities(db.Query(t.Context(), table, store.Query{})) {
				check(t, what, err)
				if e.Key.Row != fmt.Sprintf("%06d", got) {
					t.Fatalf("%s: row %d is %q", what, got, e.Key.Row)
				}
				got++
			}
		}
		if got%3 != 0 {
			t.Errorf("%s: %d rows are left, want whole batches of 3", what, got)
		}
		if r, err := db.Verify(t.Context()); err != nil || len(r.Findings) > 0 {
			t.Errorf("%s: Verify: %+v, %v", what, r, err)
		}
	}
	for i := range batches {
		var ops []store.Op
		for k := range 3 {
			ops = append(ops, store.Insert(entity("p", fmt.Sprintf("%06d", 3*i+k), int64(i), 4000)))
		}
		apply(t, db, ops...)
		_, err := db.Step(t.Context())
		check(t, "Step", err)
		if i%10 == 9 {
			verify(fmt.Sprintf("kill after batch %d", i), disk.Clone())
			for seed, mode := range vfs.CrashModes {
				verify(fmt.Sprintf("%v after batch %d, seed %d", mode, i, seed), disk.Crash(vfs.CrashOptions{Mode: mode, Seed: uint64(seed)}))
			}
		}
	}
	check(t, "Close", closeAtOnce(db))
	db = mustOpen(t, "db", manual(disk.Crash(vfs.CrashOptions{Mode: "min"})))
	if n := len(dump(t, db, store.Query{})); n != 3*batches {
		t.Errorf("after Close %d rows are durable, want %d", n, 3*batches)
	}
}

// TestNoSyncLosesSegments cuts the power while several segments are not synced. Segments behind a
// torn one must be gone, durably, before the manifest states where the log ends.
func TestNoSyncLosesSegments(t *testing.T) {
	disk := vfs.NewCrashMem()
	o := manual(disk)
	o.NoSync, o.SegmentBytes = true, 64<<10
	db := mustCreate(t, o)
	check(t, "Flush", db.Flush(t.Context()))
	fill(t, db, "p", 100, 1500) // three segments, none of which is flushed
	lost := 0
	for seed := range 20 {
		after := disk.Crash(vfs.CrashOptions{Mode: "subset", Seed: uint64(seed)})
		durable, lostHere := true, 0
		o := manual(errorfs.Wrap(after, func(op vfs.Op) *errorfs.Fault {
			switch {
			case op.Kind == "remove" && strings.HasSuffix(op.Name, ".wal"):
				durable = false
				lostHere++
			case op.Kind == "sync-dir":
				durable = true
			case op.Kind == "rename" && !durable:
				t.Errorf("seed %d: the manifest is replaced before the removal of segments is durable", seed)
			}
			return nil
		}))
		var logged bytes.Buffer
		reader := o
		reader.ReadOnly, reader.Logger = true, slog.New(slog.NewTextHandler(&logged, nil))
		read := mustOpen(t, "db", reader)
		readable := len(dump(t, read, store.Query{}))
		check(t, "Close", closeAtOnce(read))
		again := mustOpen(t, "db", o)
		rows := len(dump(t, again, store.Query{}))
		if warned := strings.Count(logged.String(), "a crash lost"); readable != rows || warned != min(lostHere, 1) {
			t.Errorf("seed %d: a read-only open has %d rows of %d and warns %d times of %d lost segments", seed, readable, rows, warned, lostHere)
		}
		apply(t, again, store.InsertOrReplace(entity("q", "r", 1, 10)))
		check(t, "Close", closeAtOnce(again))
		again = mustOpen(t, "db", o)
		if n := len(dump(t, again, store.Query{})); n != rows+1 {
			t.Errorf("seed %d: %d rows, want %d", seed, n, rows+1)
		}
		check(t, "Close", closeAtOnce(again))
		lost += min(lostHere, 1)
	}
	if lost < 5 {
		t.Errorf("%d of 20 crashes have lost a segment", lost)
	}
	check(t, "Close", closeAtOnce(db))
}

// TestNoSyncLostNumbers cuts the power again when the removal of lost segments is durable. The next
// segments must have other numbers: where a crash loses sectors of theirs, the disk can show those
// of the removed files, and with the same number their records would be valid.
func TestNoSyncLostNumbers(t *testing.T) {
	race.SkipOneGoroutine(t)
	disk := vfs.NewCrashMem()
	o := manual(disk)
	o.NoSync, o.SegmentBytes = true, 512<<10
	db := mustCreate(t, o)
	check(t, "Flush", db.Flush(t.Context()))
	fill(t, db, "p", 2400, 500) // three segments, none of which is flushed
	tried := 0
	for seed := range uint64(8) {
		after := disk.Crash(vfs.CrashOptions{Mode: "subset", Seed: seed})
		var removed []string
		var cut *vfs.Mem
		synced := false
		after.OnOp(func(op vfs.Op) {
			switch {
			case op.Kind == "remove" && strings.HasSuffix(op.Name, ".wal"):
				removed = append(removed, op.Name)
			case op.Kind == "sync-dir" && len(removed) > 0:
				synced = true
			case synced && cut == nil:
				cut = after.Crash(vfs.CrashOptions{Mode: "min"})
			}
		})
		check(t, "Close", closeAtOnce(mustOpen(t, "db", manual(after))))
		if cut == nil {
			continue
		}
		tried++
		o.FS = cut
		again := mustOpen(t, "db", o)
		fill(t, again, "p", 1200, 500)
		for _, name := range files(t, cut, "db", ".wal") {
			if slices.Contains(removed, "db/"+name) {
				t.Errorf("seed %d: %s was lost and removed, and is a new segment", seed, name)
			}
		}
		for seed := range uint64(200) {
			after := cut.Crash(vfs.CrashOptions{Mode: "subset", Seed: seed})
			check(t, "Close", closeAtOnce(mustOpen(t, "db", manual(after))))
		}
		check(t, "Close", closeAtOnce(again))
	}
	if tried == 0 {
		t.Error("no crash has lost a segment")
	}
	check(t, "Close", closeAtOnce(db))
}

// TestNoSyncInterruptedFlush cuts the power when the files of a flush are durable and no manifest
// lists them. The log is lost, and Open must not take the files for those of a newer manifest.
func TestNoSyncInterruptedFlush(t *testing.T) {
	disk := vfs.NewCrashMem()
	fs := errorfs.Wrap(disk, nil)
	o := manual(fs)
	o.NoSync = true
	db := mustCreate(t, o)
	check(t, "Flush", db.Flush(t.Context()))
	fill(t, db, "p", 30, 1000)
	var crashes []*vfs.Mem
	fs.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "rename" {
			crashes = append(crashes, disk.Crash(vfs.CrashOptions{Mode: "min"}))
		}
		return nil
	})
	check(t, "Flush", db.Flush(t.Context()))
	fs.SetRule(nil)
	check(t, "Close", closeAtOnce(db))
	left := 0
	for _, disk := range crashes {
		before := len(files(t, disk, "db", ".sst"))
		db := mustOpen(t, "db", manual(disk))
		left += before - len(files(t, disk, "db", ".sst"))
		if n := len(dump(t, db, store.Query{})); n != 0 {
			t.Errorf("%d rows are left of a log that was not synced", n)
		}
		apply(t, db, store.Insert(entity("p", "000000", 1, 10)))
		check(t, "Close", closeAtOnce(db))
	}
	if left == 0 {
		t.Errorf("none of %d crashes left files of a flush", len(crashes))
	}
}

// TestNoSyncCheckpointIsProof cuts the power after a checkpoint, which has synced the log, and
// damages the first segment. Open must not take that for a loss of unsynced writes.
func TestNoSyncCheckpointIsProof(t *testing.T) {
	disk := vfs.NewCrashMem()
	o := manual(disk)
	o.NoSync, o.SegmentBytes = true, 64<<10
	db := mustCreate(t, o)
	check(t, "Flush", db.Flush(t.Context()))
	first := len(files(t, disk, "db", ".wal"))
	fill(t, db, "p", 100, 1500)
	check(t, "Checkpoint", db.Checkpoint(t.Context(), "copy"))
	after := disk.Crash(vfs.CrashOptions{Mode: "min"})
	name := files(t, after, "db", ".wal")[first]
	check(t, "Patch", after.Patch("db/"+name, 60<<10, []byte("damage")))
	if _, err := engine.Open("db", manual(after)); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Open: %v, want %v", err, store.ErrCorrupt)
	}
	check(t, "Close", closeAtOnce(db))
}

// TestNoSyncLosesDropWhole drops a table, compacts, and kills the process before the
// drop is on disk. The table must be there with all its rows.
func TestNoSyncLosesDropWhole(t *testing.T) {
	disk := vfs.NewMem()
	o := manual(disk)
	o.NoSync = true
	db := mustCreate(t, o)
	for i := range 6 {
		fill(t, db, fmt.Sprint("p", i), 40, 1000)
		fill(t, db, "p", 1, 1000)
		check(t, "Flush", db.Flush(t.Context()))
	}
	check(t, "DeleteTable", db.DeleteTable(t.Context(), table))
	drain(t, db)
	killed := mustOpen(t, "db", manual(disk.Clone()))
	if n := len(dump(t, killed, store.Query{})); n != 241 {
		t.Errorf("the table is back with %d rows, want 241", n)
	}
	check(t, "Flush", db.Flush(t.Context()))
	check(t, "Compact", db.Compact(t.Context()))
	if names := files(t, disk, "db", ".sst"); len(names) != 1 {
		t.Errorf("files %v are left, want one of the catalog", names)
	}
	if _, err := db.Get(t.Context(), table, edm.Key{}); err != store.ErrTableNotFound {
		t.Errorf("Get: %v", err)
	}
}

// stopped is a clock that always tells the same time.
type stopped struct{ at time.Time }

func (s stopped) Now() time.Time { return s.at }

func (stopped) AfterFunc(time.Duration, func()) func() bool { return func() bool { return true } }

// TestNoSyncTimestampsAreUnique loses acknowledged writes while the clock is stopped or
// set back. No Timestamp may be given out twice, neither before the first sync nor
// between reservations.
func TestNoSyncTimestampsAreUnique(t *testing.T) {
	race.SkipOneGoroutine(t)
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, back := range []time.Duration{0, time.Hour} {
		disk := vfs.NewCrashMem()
		o := manual(disk)
		o.NoSync, o.Testing.Clock = true, stopped{begin}
		db := mustCreate(t, o)
		check(t, "Flush", db.Flush(t.Context()))
		most := edm.Ticks(0)
		for i := range 30 {
			// In the middle the clock advances beyond the reservation.
			o.Testing.Clock = stopped{begin.Add(time.Duration(i/10) * 7 * time.Second)}
			if i%10 == 0 {
				check(t, "Close", closeAtOnce(db))
				db = mustOpen(t, "db", o)
			}
			r := apply(t, db, store.InsertOrReplace(entity("p", "r", int64(i), 10)))
			most = max(most, r[0].Timestamp)
			for seed, mode := range vfs.CrashModes {
				after := disk.Crash(vfs.CrashOptions{Mode: mode, Seed: uint64(seed)})
				o := manual(after)
				o.NoSync, o.Testing.Clock = true, stopped{begin.Add(-back)}
				again := mustOpen(t, "db", o)
				r := apply(t, again, store.InsertOrReplace(entity("p", "other", 0, 10)))
				if r[0].Timestamp <= most {
					t.Errorf("write %d, clock back by %v, %v: Timestamp %v was given out after %v", i, back, mode, r[0].Timestamp, most)
				}
				check(t, "Close", closeAtOnce(again))
			}
		}
		check(t, "Close", closeAtOnce(db))
	}
}

// TestNoSyncReservationFails makes a write whose time stamp cannot be reserved. It must
// be refused, and succeed later.
func TestNoSyncReservationFails(t *testing.T) {
	disk := vfs.NewMem()
	full := false
	o := manual(errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
		if full && op.Kind == "create" {
			return &errorfs.Fault{Err: syscall.ENOSPC}
		}
		return nil
	}))
	o.NoSync, o.Testing.Clock = true, stopped{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	db := mustOpen(t, "db", o)
	full = true
	if err := db.CreateTable(t.Context(), table); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("CreateTable on a full disk: %v, want %v", err, store.ErrNoSpace)
	}
	full = false
	check(t, "CreateTable", db.CreateTable(t.Context(), table))
	apply(t, db, store.Insert(entity("p", "r", 1, 10)))
}

// TestNoSyncCloseReportsLoss requires Close to say that a write is neither in a file nor in the
// log.
func TestNoSyncCloseReportsLoss(t *testing.T) {
	for _, kind := range []string{"create", "write", "sync", "sync-dir"} {
		t.Run(kind, func(t *testing.T) {
			disk := vfs.NewMem()
			fs := errorfs.Wrap(disk, nil)
			o := manual(fs)
			o.NoSync = true
			db := mustCreate(t, o)
			check(t, "Flush", db.Flush(t.Context()))
			apply(t, db, store.InsertOrReplace(entity("p", "r", 1, 10)))
			fs.SetRule(func(op vfs.Op) *errorfs.Fault {
				if op.Kind == kind && (kind == "sync-dir" || strings.HasSuffix(op.Name, ".wal") || strings.HasSuffix(op.Name, ".sst")) {
					return &errorfs.Fault{Err: syscall.EIO}
				}
				return nil
			})
			if err := db.Close(); !errors.Is(err, syscall.EIO) {
				t.Errorf("Close: %v, want %v", err, syscall.EIO)
			}
		})
	}
}
