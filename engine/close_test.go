package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// unflushed returns a database with entities in sstables, in a frozen segment and in the
// active one, and what a query of all entities returns.
func unflushed(t *testing.T, o engine.Options) (db *engine.DB, want []string) {
	t.Helper()
	db = mustCreate(t, o)
	fill(t, db, "flushed", 20, 500)
	check(t, "Flush", db.Flush(t.Context()))
	fill(t, db, "frozen", 80, 1000)
	fill(t, db, "active", 10, 100)
	if stats, err := db.Stats(); err != nil || stats.WALBytes < 64<<10 {
		t.Fatalf("log of %d bytes, %v: want two segments", stats.WALBytes, err)
	}
	return db, dump(t, db, store.Query{})
}

// reopened opens the database and compares its entities. It returns the bytes in the log.
func reopened(t *testing.T, o engine.Options, want []string) (walBytes int64) {
	t.Helper()
	db := mustOpen(t, "db", o)
	if diff := cmp.Diff(want, dump(t, db, store.Query{})); diff != "" {
		t.Errorf("entities after the reopen (-want +got):\n%s", diff)
	}
	stats, err := db.Stats()
	check(t, "Stats", err)
	check(t, "Close", closeAtOnce(db))
	return stats.WALBytes
}

// TestCloseFlushes closes a database with entities in its log. The next Open has nothing
// to replay.
func TestCloseFlushes(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		t.Run(fmt.Sprintf("nosync=%v", noSync), func(t *testing.T) {
			disk := vfs.NewCrashMem()
			o := manual(disk)
			o.NoSync = noSync
			db, want := unflushed(t, o)
			check(t, "Close", db.Close())
			check(t, "second Close", db.Close())
			if left := files(t, disk, "db", ".wal"); len(left) > 0 {
				t.Errorf("Close leaves the segments %v", left)
			}
			o.FS = disk.Crash(vfs.CrashOptions{Mode: vfs.CrashModes[0]})
			if n := reopened(t, o, want); n != 0 {
				t.Errorf("log of %d bytes after the reopen, want none", n)
			}
			// Nothing was written since: Close changes nothing.
			before := readFile(t, disk, "db/MANIFEST")
			check(t, "Close again", mustOpen(t, "db", o).Close())
			if !slices.Equal(before, readFile(t, disk, "db/MANIFEST")) {
				t.Error("opening and closing changed the manifest")
			}
		})
	}
}

// TestCloseContextEnds ends the context before and in the middle of the flush. Close
// leaves the rest in the log and removes unfinished files.
func TestCloseContextEnds(t *testing.T) {
	for _, at := range []string{"", "create", "write", "sync"} {
		t.Run("at="+at, func(t *testing.T) {
			fsys := errorfs.Wrap(vfs.NewCrashMem(), nil)
			o := manual(fsys)
			db, want := unflushed(t, o)
			before := files(t, fsys, "db", ".sst")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if at == "" {
				cancel()
			}
			fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
				if op.Kind == at && strings.HasSuffix(op.Name, ".sst") {
					cancel()
				}
				return nil
			})
			check(t, "CloseContext", db.CloseContext(ctx))
			fsys.SetRule(nil)
			if ctx.Err() == nil {
				t.Fatal("the context has not ended: the test proves nothing")
			}
			if after := files(t, fsys, "db", ".sst"); !slices.Equal(before, after) {
				t.Errorf("sstables are %v, were %v", after, before)
			}
			if n := reopened(t, o, want); n < 64<<10 {
				t.Errorf("log of %d bytes after the reopen, want all of it", n)
			}
		})
	}
}

// limitClock keeps the function of the last timer.
type limitClock struct {
	after time.Duration
	fire  func()
}

func (*limitClock) Now() time.Time { return time.Now() }

func (c *limitClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.after, c.fire = d, f
	return func() bool { return true }
}

// TestCloseLimit exceeds the time limit of Close in the middle of the flush.
func TestCloseLimit(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewCrashMem(), nil)
	clock := &limitClock{}
	o := manual(fsys)
	o.Testing.Clock = clock
	db, want := unflushed(t, o)
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "create" && strings.HasSuffix(op.Name, ".sst") && clock.fire != nil {
			clock.fire()
		}
		return nil
	})
	check(t, "Close", db.Close())
	fsys.SetRule(nil)
	if clock.after != 10*time.Second {
		t.Errorf("the limit is %v, want 10 seconds", clock.after)
	}
	if n := reopened(t, o, want); n < 64<<10 {
		t.Errorf("log of %d bytes after the reopen, want all of it", n)
	}
}

// TestCloseOnFullDisk closes a database when the disk has no space for sstables. The log
// is complete, so that Close succeeds.
func TestCloseOnFullDisk(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewCrashMem(), nil)
	o := manual(fsys)
	db, want := unflushed(t, o)
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "write" && strings.HasSuffix(op.Name, ".sst") {
			return &errorfs.Fault{Err: syscall.ENOSPC}
		}
		return nil
	})
	check(t, "Close", db.Close())
	fsys.SetRule(nil)
	if n := reopened(t, o, want); n < 64<<10 {
		t.Errorf("log of %d bytes after the reopen, want all of it", n)
	}
}

// TestCloseAfterFailedLog closes a database whose log has failed. Close flushes nothing,
// because it is unknown which records are durable.
func TestCloseAfterFailedLog(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewCrashMem(), nil)
	o := manual(fsys)
	db, want := unflushed(t, o)
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "sync" && strings.HasSuffix(op.Name, ".wal") {
			return &errorfs.Fault{Err: syscall.EIO, Sync: errorfs.SyncForgets}
		}
		return nil
	})
	if _, err := db.Apply(t.Context(), table, store.Insert(entity("lost", "", 1, 10))); err == nil {
		t.Fatal("a write succeeded without a sync")
	}
	before := files(t, fsys, "db", ".sst")
	_ = db.Close() // its error is that of the log
	fsys.SetRule(nil)
	if after := files(t, fsys, "db", ".sst"); !slices.Equal(before, after) {
		t.Errorf("sstables are %v, were %v", after, before)
	}
	db = mustOpen(t, "db", o)
	got := slices.DeleteFunc(dump(t, db, store.Query{}), func(e string) bool { return strings.HasPrefix(e, "lost/") })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entities after the reopen (-want +got):\n%s", diff)
	}
}

// TestCloseFaults fails each operation of Close, and cuts the power after it. Close ends,
// and no entity is lost.
func TestCloseFaults(t *testing.T) {
	race.SkipOneGoroutine(t)
	for at := 1; ; at += stride(5) {
		disk := vfs.NewCrashMem()
		fsys := errorfs.Wrap(disk, nil)
		o := manual(fsys)
		db, want := unflushed(t, o)
		n := 0
		fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
			if n++; n == at {
				return &errorfs.Fault{Err: syscall.EIO, Short: int(op.Len / 2), Sync: errorfs.SyncForgets}
			}
			return nil
		})
		err := db.Close()
		fsys.SetRule(nil)
		for _, mode := range vfs.CrashModes {
			after := manual(disk.Crash(vfs.CrashOptions{Mode: mode, Seed: uint64(at)}))
			if reopened(t, after, want); t.Failed() {
				t.Fatalf("operation %d of Close failed, Close returned %v, crash mode %v", at, err, mode)
			}
		}
		if n < at {
			check(t, "Close", err)
			t.Logf("%d operations", n)
			return
		}
	}
}

// TestCloseCrash cuts the power at each operation of Close.
func TestCloseCrash(t *testing.T) {
	race.SkipOneGoroutine(t)
	disk := vfs.NewCrashMem()
	db, want := unflushed(t, manual(disk))
	states := 0
	disk.OnOp(func(op vfs.Op) {
		for after := range disk.CrashStates(16 / stride(4)) {
			states++
			if reopened(t, manual(after), want); t.Failed() {
				t.Fatalf("power lost at %v", op)
			}
		}
	})
	check(t, "Close", db.Close())
	disk.OnOp(nil)
	t.Logf("%d states", states)
}

// TestStateBeforeArguments gives illegal arguments to a closed database and to one for reading. The
// state of the database is the error, as it is for legal ones.
func TestStateBeforeArguments(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	check(t, "Close", db.Close())
	ctx, bad, long := t.Context(), "no name", make([]byte, 64<<10+1)
	for _, at := range []struct {
		db   *engine.DB
		want error
	}{{db, store.ErrClosed}, {mustOpen(t, "db", readOnly(disk)), store.ErrReadOnly}} {
		for name, call := range map[string]func() error{
			"Apply":          func() error { _, err := at.db.Apply(ctx, bad); return err },
			"ApplyBatches":   func() error { _, err := at.db.ApplyBatches(ctx, bad, make([][]store.Op, 1)); return err },
			"no batches":     func() error { _, err := at.db.ApplyBatches(ctx, bad, nil); return err },
			"Load":           func() error { _, err := at.db.Load(ctx, bad, sequence(nil), engine.LoadOptions{}); return err },
			"CreateTable":    func() error { return at.db.CreateTable(ctx, bad) },
			"DeleteTable":    func() error { return at.db.DeleteTable(ctx, bad) },
			"SetTableMeta":   func() error { return at.db.SetTableMeta(ctx, table, long) },
			"SetAccountMeta": func() error { return at.db.SetAccountMeta(ctx, long) },
		} {
			if err := call(); !errors.Is(err, at.want) {
				t.Errorf("%s: %v, want %v", name, err, at.want)
			}
		}
	}
}
