package engine_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

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
	if err := db.Compact(t.Context()); !errors.Is(err, lsm.ErrInDoubt) {
		t.Errorf("Compact: %v, want %v", err, lsm.ErrInDoubt)
	}
	if err := db.Failure(); !errors.Is(err, lsm.ErrInDoubt) || !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Failure: %v, want %v because of %v", err, store.ErrReadOnly, lsm.ErrInDoubt)
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
