package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestLoadReturnsErrorOfSequence ends sequences by errors that have another meaning if the database
// has them. The database must not take them for its own.
func TestLoadReturnsErrorOfSequence(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, lsm.ErrInDoubt, &store.OpError{Index: 7, Err: store.ErrEntityExists}} {
		db := mustCreate(t, manual(vfs.NewMem()))
		want := fmt.Errorf("read the source: %w", cause)
		_, err := db.Load(t.Context(), table, func(yield func(edm.Entity, error) bool) {
			if yield(entity("p", "r", 1, 1), nil) {
				yield(edm.Entity{}, want)
			}
		}, engine.LoadOptions{})
		if err != want {
			t.Errorf("Load returned %v, want %v", err, want)
		}
		if s, err := db.Stats(); err != nil || s.DiskFull {
			t.Errorf("after %v: the disk is full: %v; error %v", want, s.DiskFull, err)
		}
	}
}

// TestLoadReturnsErrorOfContext ends ctx with a cause of its own. Load must return the error of ctx, as
// Apply does, and not ask for another entity.
func TestLoadReturnsErrorOfContext(t *testing.T) {
	db := mustCreate(t, manual(vfs.NewMem()))
	ctx, cancel := context.WithCancelCause(t.Context())
	n := 0
	_, err := db.Load(ctx, table, func(yield func(edm.Entity, error) bool) {
		cancel(syscall.ENOSPC)
		for more := true; more; n++ {
			more = yield(entity("p", "r", 1, 1), nil)
		}
	}, engine.LoadOptions{})
	if err != context.Canceled || n != 1 {
		t.Errorf("Load returned %v after %d entities, want %v after the first", err, n, context.Canceled)
	}
	if s, err := db.Stats(); err != nil || s.DiskFull {
		t.Errorf("the disk is full: %v; error %v", s.DiskFull, err)
	}
}

// TestLoadEndsWithinPart ends ctx when the first file of an install is created, whose entities are all
// collected. The other files are not written.
func TestLoadEndsWithinPart(t *testing.T) {
	fsys, files := errorfs.Wrap(vfs.NewMem(), nil), 0
	db := mustCreate(t, manual(fsys))
	ctx, cancel := context.WithCancel(t.Context())
	fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
		if op.Kind == "create" && strings.HasSuffix(op.Name, ".sst") {
			files++
			cancel()
		}
		return nil
	})
	random, list := rand.NewChaCha8([32]byte{}), make([]edm.Entity, 1000) // of 16 files
	for i := range list {
		value := make([]byte, 1000)
		_, _ = random.Read(value)
		list[i] = edm.Entity{
			Key:        edm.Key{Partition: "p", Row: fmt.Sprintf("%06d", len(list)-i)},
			Properties: edm.Properties{{Name: "B", Value: edm.Binary(value)}},
		}
	}
	result, err := db.Load(ctx, table, sequence(list), engine.LoadOptions{})
	if !errors.Is(err, context.Canceled) || result.Entities != 0 || files != 1 {
		t.Errorf("%d entities, %v, %d files, want none, %v and one file", result.Entities, err, files, context.Canceled)
	}
}

// hookedContext counts what has to be called when it ends.
type hookedContext struct {
	context.Context
	done  chan struct{}
	hooks atomic.Int64
}

func (c *hookedContext) Done() <-chan struct{} { return c.done }

// AfterFunc is called by package context.
func (c *hookedContext) AfterFunc(func()) (stop func() bool) {
	c.hooks.Add(1)
	return func() bool { return c.hooks.Add(-1) >= 0 }
}

// TestLoadPanicsWithoutLeak ends a Load by a panic of its sequence. Nothing of it may be left in a
// ctx that lives on.
func TestLoadPanicsWithoutLeak(t *testing.T) {
	db := mustCreate(t, manual(vfs.NewMem()))
	ctx := &hookedContext{Context: t.Context(), done: make(chan struct{})}
	for range 3 {
		func() {
			defer func() { _ = recover() }()
			_, _ = db.Load(ctx, table, func(func(edm.Entity, error) bool) { panic("sequence") }, engine.LoadOptions{})
		}()
	}
	if n := ctx.hooks.Load(); n != 0 {
		t.Errorf("%d hooks are left in the ctx", n)
	}
}
