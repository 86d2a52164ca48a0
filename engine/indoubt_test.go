package engine_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestInDoubtStays makes it unknown whether a compaction is durable. Every later step
// must return that error, or writers that stall would wait forever.
func TestInDoubtStays(t *testing.T) {
	bad := errors.New("injected")
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	db := mustCreate(t, manual(fsys))
	for range 2 {
		fill(t, db, "p", 10, 100)
		check(t, "Flush", db.Flush(t.Context()))
	}
	renamed := false
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		renamed = renamed || op.Kind == "rename" && strings.HasSuffix(op.NewName, "MANIFEST")
		if renamed && op.Kind == "sync-dir" {
			return &errorfs.Fault{Err: bad}
		}
		return nil
	})
	var err error
	for worked := true; worked && err == nil; {
		worked, err = db.Step(t.Context())
	}
	fsys.SetRule(nil)
	if !errors.Is(err, lsm.ErrInDoubt) {
		t.Fatalf("Step: %v, want %v", err, lsm.ErrInDoubt)
	}
	if worked, err := db.Step(t.Context()); !errors.Is(err, lsm.ErrInDoubt) {
		t.Errorf("the next Step: %v, %v, want %v", worked, err, lsm.ErrInDoubt)
	}
	fill(t, db, "q", 1, 100)
	for name, call := range map[string]func(context.Context) error{"Compact": db.Compact, "Flush": db.Flush} {
		if err := call(t.Context()); !errors.Is(err, lsm.ErrInDoubt) || !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("%s: %v, want %v because of %v", name, err, store.ErrReadOnly, lsm.ErrInDoubt)
		}
	}
	if err := db.Failure(); !errors.Is(err, lsm.ErrInDoubt) || !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Failure: %v, want %v because of %v", err, store.ErrReadOnly, lsm.ErrInDoubt)
	}
}

// TestJobsOnFullDisk has no space for an sstable: Flush and Compact say that the disk is full.
func TestJobsOnFullDisk(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	db := mustCreate(t, manual(fsys))
	fill(t, db, "p", 10, 100)
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "write" && strings.HasSuffix(op.Name, ".sst") {
			return &errorfs.Fault{Err: syscall.ENOSPC}
		}
		return nil
	})
	for name, call := range map[string]func(context.Context) error{"Compact": db.Compact, "Flush": db.Flush} {
		if err := call(t.Context()); !errors.Is(err, store.ErrNoSpace) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v, want %v because of ENOSPC", name, err, store.ErrNoSpace)
		}
	}
	fsys.SetRule(nil)
	check(t, "Compact", db.Compact(t.Context()))
	check(t, "Close", db.Close())
}

// TestInDoubtOnFullDisk has no space for the end of a manifest. That lasts until the next Open,
// unlike a full disk, on which deletes are accepted: they too must be refused, or memtables
// without end would wait for a flush.
func TestInDoubtOnFullDisk(t *testing.T) {
	for _, call := range []string{"Flush", "Load"} {
		fsys := errorfs.Wrap(vfs.NewMem(), nil)
		db := mustCreate(t, manual(fsys))
		check(t, "Flush", db.Flush(t.Context()))
		manifests := 0
		fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
			if op.Kind == "rename" && strings.HasSuffix(op.NewName, "MANIFEST") {
				manifests++
			}
			if op.Kind == "sync-dir" && (call == "Flush" && manifests == 1 || manifests == 2) {
				return &errorfs.Fault{Err: syscall.ENOSPC}
			}
			return nil
		})
		var err error
		if call == "Flush" {
			fill(t, db, "p", 3, 10)
			err = db.Flush(t.Context())
		} else {
			_, err = db.Load(t.Context(), table, sequence([]edm.Entity{entity("p", "r", 1, 10)}), engine.LoadOptions{})
		}
		fsys.SetRule(nil)
		if !errors.Is(err, lsm.ErrInDoubt) || errors.Is(err, store.ErrNoSpace) || call == "Load" && !errors.Is(err, store.ErrOutcomeUnknown) {
			t.Errorf("%s: %v, want %v", call, err, lsm.ErrInDoubt)
		}
		for err = nil; err == nil; {
			_, err = db.Apply(t.Context(), table, store.InsertOrReplace(entity("q", "r", 1, 4000)))
		}
		if !errors.Is(err, store.ErrReadOnly) || errors.Is(err, store.ErrNoSpace) {
			t.Errorf("after %s, a write: %v, want %v", call, err, store.ErrReadOnly)
		}
		_, err = db.Apply(t.Context(), table, store.Delete(edm.Key{Partition: "q", Row: "r"}, store.Any))
		if !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("after %s, a delete: %v, want %v", call, err, store.ErrReadOnly)
		}
		if stats, err := db.Stats(); err != nil || stats.DiskFull {
			t.Errorf("after %s: the disk is full, %v", call, err)
		}
	}
}

// TestLoadBesideFailedLog fails the log during a Load for want of space. The database accepts
// nothing until the next Open, so the disk does not count as full.
func TestLoadBesideFailedLog(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	db := mustCreate(t, manual(fsys))
	_, err := db.Load(t.Context(), table, func(yield func(edm.Entity, error) bool) {
		fsys.SetRule(errorfs.FailNth(1, func(op vfs.Op) bool { return op.Kind == "sync" }, errorfs.Fault{Err: syscall.ENOSPC}, false))
		_, err := db.Apply(t.Context(), table, store.Insert(entity("p", "r", 1, 10)))
		if !errors.Is(err, store.ErrOutcomeUnknown) {
			t.Errorf("Apply: %v, want %v", err, store.ErrOutcomeUnknown)
		}
		yield(entity("q", "r", 1, 10), nil)
	}, engine.LoadOptions{})
	if !errors.Is(err, store.ErrReadOnly) || errors.Is(err, store.ErrNoSpace) {
		t.Errorf("Load: %v, want %v", err, store.ErrReadOnly)
	}
	if stats, err := db.Stats(); err != nil || stats.DiskFull {
		t.Errorf("the disk is full, %v", err)
	}
}

// TestFailure compares Failure after failed operations.
func TestFailure(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  string
		cause error
		want  error
	}{
		{"a sync of the log", "sync", syscall.EIO, store.ErrReadOnly},
		{"nothing", "stat", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := errorfs.Wrap(vfs.NewMem(), nil)
			db := mustCreate(t, manual(fsys))
			check(t, "Failure before any", db.Failure())
			fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
				if op.Kind == c.kind {
					return &errorfs.Fault{Err: c.cause}
				}
				return nil
			})
			_, err := db.Apply(t.Context(), table, store.Insert(entity("p", "r", 1, 10)))
			if (err == nil) != (c.want == nil) {
				t.Errorf("Apply: %v", err)
			}
			fsys.SetRule(nil)
			if got := db.Failure(); !errors.Is(got, c.want) || !errors.Is(got, c.cause) {
				t.Errorf("Failure: %v, want %v because of %v", got, c.want, c.cause)
			}
		})
	}
}

// TestFailureDoesNotWait calls Failure while each file is written, the manifest among
// them. A slow disk must not block the caller.
func TestFailureDoesNotWait(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	db := mustCreate(t, manual(fsys))
	fill(t, db, "p", 10, 100)
	renamed := false
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		renamed = renamed || op.Kind == "rename"
		check(t, "Failure", db.Failure())
		return nil
	})
	check(t, "Flush", db.Flush(t.Context()))
	fsys.SetRule(nil)
	if !renamed {
		t.Error("no manifest was written")
	}
}

// TestCancelledStep ends the context of a writer that does background work in place of
// stalling. That is not a failure of the background work.
func TestCancelledStep(t *testing.T) {
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	db := mustCreate(t, manual(fsys))
	ctx, cancel := context.WithCancel(t.Context())
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "create" && strings.HasSuffix(op.Name, ".sst") {
			cancel()
		}
		return nil
	})
	var err error
	for i := int64(0); err == nil; i++ {
		_, err = db.Apply(ctx, table, store.InsertOrReplace(entity("p", "r", i, 30<<10)))
	}
	if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Apply: %v, want %v alone", err, context.Canceled)
	}
}
