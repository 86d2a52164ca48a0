package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// patience is how long these tests wait for what should happen at once. It only ends a test that hangs.
const patience = 5 * time.Minute

// within returns what comes from c.
func within[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s still waits after %v", what, patience)
	}
	return v
}

// closeBeside calls Close in a goroutine, and returns when that refuses writes.
func closeBeside(db *engine.DB) <-chan error {
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	for {
		// A write with a bad name waits for nothing. A flush could wait for what the test holds.
		if _, err := db.Apply(context.Background(), "no name"); errors.Is(err, store.ErrClosed) {
			return closed
		}
		runtime.Gosched()
	}
}

// TestCallsWhileCloseWaits refuses writes at once while Close waits for a Load whose sequence
// waits.
func TestCallsWhileCloseWaits(t *testing.T) {
	db := mustCreate(t, small(vfs.NewMem()))
	begun, next, loaded := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := db.Load(context.Background(), table, func(yield func(edm.Entity, error) bool) {
			close(begun)
			<-next
			yield(entity("p", "r", 1, 10), nil)
		}, engine.LoadOptions{})
		loaded <- err
	}()
	<-begun
	closed := closeBeside(db)
	for name, call := range map[string]func() error{
		"Apply": func() error {
			_, err := db.Apply(context.Background(), table, store.InsertOrReplace(entity("p", "r2", 1, 10)))
			return err
		},
		"CreateTable": func() error { return db.CreateTable(context.Background(), "Other") },
		"Flush":       func() error { return db.Flush(context.Background()) },
		"Compact":     func() error { return db.Compact(context.Background()) },
		"Checkpoint":  func() error { return db.Checkpoint(context.Background(), "copy") },
	} {
		done := make(chan error, 1)
		go func() { done <- call() }()
		if err := within(t, name, done); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
	close(next)
	if err := within(t, "Load", loaded); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Load: %v, want ErrClosed", err)
	}
	check(t, "Close", within(t, "Close", closed))
}

// TestLoadWritesWhileCloseWaits has a sequence that writes to the database that closes.
func TestLoadWritesWhileCloseWaits(t *testing.T) {
	db := mustCreate(t, small(vfs.NewMem()))
	var closed <-chan error
	loaded := make(chan error, 1)
	go func() {
		_, err := db.Load(context.Background(), table, func(yield func(edm.Entity, error) bool) {
			closed = closeBeside(db)
			_, err := db.Apply(context.Background(), table, store.InsertOrReplace(entity("progress", "r", 1, 1)))
			yield(entity("p", "r", 1, 1), err)
		}, engine.LoadOptions{})
		loaded <- err
	}()
	if err := within(t, "Load", loaded); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Load: %v, want ErrClosed", err)
	}
	check(t, "Close", within(t, "Close", closed))
}

// TestSlowLoadEnds ends Loads of sequences that are slow, long before the first install. A
// goroutine of its own passes the begin of Close on, so some entities may come before.
func TestSlowLoadEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(db *engine.DB, cancel context.CancelFunc) <-chan error
		want error
	}{
		{"Close", func(db *engine.DB, _ context.CancelFunc) <-chan error { return closeBeside(db) }, store.ErrClosed},
		{"cancel", func(_ *engine.DB, cancel context.CancelFunc) <-chan error {
			cancel()
			return nil
		}, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := mustCreate(t, small(vfs.NewMem()))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var closed <-chan error
			var installed atomic.Bool
			n := 0
			result, err := db.Load(ctx, table, func(yield func(edm.Entity, error) bool) {
				for ; !installed.Load(); n++ {
					if n == 10 {
						closed = c.end(db, cancel)
					}
					if !yield(entity("p", fmt.Sprintf("%09d", n), int64(n), 10), nil) {
						return
					}
				}
			}, engine.LoadOptions{Installed: func(engine.LoadResult) { installed.Store(true) }})
			if !errors.Is(err, c.want) || result.Installs > 0 {
				t.Errorf("the Load ended at entity %d with %v after %d installs, want %v before the first", n, err, result.Installs, c.want)
			}
			if closed != nil {
				check(t, "Close", within(t, "Close", closed))
			}
		})
	}
}

// parentCtx signals ended when a context that package context derived from it has ended.
type parentCtx struct {
	context.Context
	ended chan struct{}
}

// Value hides what package context would use in place of AfterFunc.
func (*parentCtx) Value(any) any { return nil }

func (c *parentCtx) AfterFunc(func()) (stop func() bool) {
	return func() bool { c.ended <- struct{}{}; return true }
}

// TestCloseEndsCompact closes the database while it is compacted.
func TestCloseEndsCompact(t *testing.T) {
	fs := newGatedFS()
	db := mustCreate(t, manual(fs))
	const rows = 1000
	for range 2 {
		fill(t, db, "p", rows, 500)
		check(t, "Flush", db.Flush(t.Context()))
	}
	gate := fs.shut()
	ctx := &parentCtx{t.Context(), make(chan struct{}, 1)}
	compacted := make(chan error, 1)
	go func() { compacted <- db.Compact(ctx) }()
	within(t, "the compaction", fs.waiting)
	closed := closeBeside(db)
	within(t, "the end of the ctx", ctx.ended)
	close(gate)
	if err := within(t, "Compact", compacted); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Compact: %v, want ErrClosed", err)
	}
	check(t, "Close", within(t, "Close", closed))
	db = mustOpen(t, "db", manual(fs))
	if n := len(dump(t, db, store.Query{})); n != rows {
		t.Errorf("%d rows, want %d", n, rows)
	}
	check(t, "Close", db.Close())
}

// gatedFS lets no sstable be created while its gate is closed.
type gatedFS struct {
	vfs.FS
	gate    atomic.Pointer[chan struct{}]
	waiting chan struct{} // of some calls that wait
}

func newGatedFS() *gatedFS { return &gatedFS{FS: vfs.NewMem(), waiting: make(chan struct{}, 1)} }

func (f *gatedFS) Create(name string) (vfs.File, error) {
	if gate := f.gate.Load(); gate != nil && strings.HasSuffix(name, ".sst") {
		select {
		case f.waiting <- struct{}{}:
		default:
		}
		<-*gate
	}
	return f.FS.Create(name)
}

// shut closes the gate. Close the channel to open it.
func (f *gatedFS) shut() (gate chan struct{}) {
	gate = make(chan struct{})
	f.gate.Store(&gate)
	return gate
}

// TestCloseEndsStall closes the database while a writer waits for a flush that does not end.
func TestCloseEndsStall(t *testing.T) {
	fs := newGatedFS()
	db := mustCreate(t, small(fs))
	gate := fs.shut()
	openGate := sync.OnceFunc(func() { close(gate) })
	defer openGate()
	refused := make(chan error, 1)
	go func() {
		for n := int64(0); ; n++ {
			if _, err := db.Apply(context.Background(), table, store.InsertOrReplace(entity("p", "r", n, 8000))); err != nil {
				refused <- err
				return
			}
		}
	}()
	for {
		s, err := db.Stats()
		check(t, "Stats", err)
		if s.Stalls > 0 && len(s.Memtables) > 3 {
			break
		}
		runtime.Gosched()
	}
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	if err := within(t, "Apply", refused); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Apply: %v, want ErrClosed", err)
	}
	openGate()
	check(t, "Close", within(t, "Close", closed))
}

// TestCompactWaitsForCompact ends the ctx of a Compact that waits for another one.
func TestCompactWaitsForCompact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newGatedFS()
		db := mustCreate(t, manual(fs))
		fill(t, db, "p", 100, 10)
		check(t, "Flush", db.Flush(t.Context()))
		gate := fs.shut()
		first, second := make(chan error, 1), make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { first <- db.Compact(t.Context()) }()
		<-fs.waiting
		go func() { second <- db.Compact(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("the second Compact: %v, want %v", err, context.Canceled)
		}
		close(gate)
		check(t, "the first Compact", <-first)
		check(t, "Close", db.Close())
	})
}

// TestOtherDatabaseClosed ends ctx with the cause that another database is closed. This one is open
// and must not say that it is closed.
func TestOtherDatabaseClosed(t *testing.T) {
	db := mustCreate(t, manual(vfs.NewMem()))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(store.ErrClosed)
	for name, err := range map[string]error{"Compact": db.Compact(ctx), "Checkpoint": db.Checkpoint(ctx, "copy")} {
		if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: %v, want %v", name, err, context.Canceled)
		}
	}
}
