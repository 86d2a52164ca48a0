package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// patience is how long these tests wait for what should happen at once.
const patience = 10 * time.Second

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
	for !errors.Is(db.Flush(context.Background()), store.ErrClosed) {
		runtime.Gosched()
	}
	return closed
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

// TestSlowLoadEnds ends Loads of sequences that are slow, long before the next install. A
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
			const entities = 100_000
			n := 0
			_, err := db.Load(ctx, table, func(yield func(edm.Entity, error) bool) {
				for ; n < entities; n++ {
					if n == 10 {
						closed = c.end(db, cancel)
					}
					if !yield(entity("p", fmt.Sprintf("%09d", n), int64(n), 10), nil) {
						return
					}
				}
			}, engine.LoadOptions{})
			if !errors.Is(err, c.want) || n == entities {
				t.Errorf("the Load ended at entity %d with %v, want %v before %d", n, err, c.want, entities)
			}
			if closed != nil {
				check(t, "Close", within(t, "Close", closed))
			}
		})
	}
}

// TestCloseEndsCompact closes the database while it is compacted.
func TestCloseEndsCompact(t *testing.T) {
	o := small(vfs.NewMem())
	o.Testing.Manual = true
	db := mustCreate(t, o)
	for v := range int64(2) {
		_, err := db.Load(t.Context(), table, func(yield func(edm.Entity, error) bool) {
			for i := range 20_000 {
				if !yield(entity("p", fmt.Sprintf("%09d", i), v, 500), nil) {
					return
				}
			}
		}, engine.LoadOptions{})
		check(t, "Load", err)
	}
	before, err := db.Stats()
	check(t, "Stats", err)
	compacted := make(chan error, 1)
	go func() { compacted <- db.Compact(context.Background()) }()
	for {
		s, err := db.Stats()
		check(t, "Stats", err)
		if s.CompactionBytesWritten > before.CompactionBytesWritten {
			break
		}
	}
	check(t, "Close", within(t, "Close", closeBeside(db)))
	if err := within(t, "Compact", compacted); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Compact: %v, want ErrClosed", err)
	}
	db = mustOpen(t, "db", o)
	if rows := dump(t, db, store.Query{}); len(rows) != 20_000 {
		t.Errorf("%d rows", len(rows))
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

// TestCloseEndsStall closes the database while a writer waits for a flush that does not end.
func TestCloseEndsStall(t *testing.T) {
	fs := newGatedFS()
	db := mustCreate(t, small(fs))
	gate := make(chan struct{})
	fs.gate.Store(&gate)
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

// TestCloseEndsFlush closes the database while the worker flushes. The limit of Close ends the
// flush, and the next Open replays what is left.
func TestCloseEndsFlush(t *testing.T) {
	fs := newGatedFS()
	o := small(fs)
	o.SegmentBytes = 4 << 20
	db := mustCreate(t, o)
	check(t, "Flush", db.Flush(t.Context())) // the catalog has a file of its own
	gate := make(chan struct{})
	fs.gate.Store(&gate)
	r := rand.New(rand.NewPCG(1, 2))
	rows := 0
	memtables := func() int {
		s, err := db.Stats()
		check(t, "Stats", err)
		return len(s.Memtables)
	}
	for n := memtables(); memtables() == n; rows++ { // and one row is in the next segment
		_, err := db.Apply(t.Context(), table, store.Insert(big(r, fmt.Sprintf("%06d", rows), "A", 100_000)))
		check(t, "Apply", err)
	}
	within(t, "the flush", fs.waiting)
	// By its end Close waits to flush that row.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- db.CloseContext(ctx) }()
	<-ctx.Done()
	close(gate)
	check(t, "CloseContext", within(t, "CloseContext", closed))
	if names := files(t, fs, "db", ".sst"); len(names) != 1 {
		t.Errorf("the sstables are %v, want that of the catalog", names)
	}
	db = mustOpen(t, "db", o)
	if got := dump(t, db, store.Query{}); len(got) != rows {
		t.Errorf("%d rows, want %d", len(got), rows)
	}
	check(t, "Close", db.Close())
}

// TestCompactWaitsForCompact ends the ctx of a Compact that waits for another one.
func TestCompactWaitsForCompact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := newGatedFS()
		db := mustCreate(t, manual(fs))
		fill(t, db, "p", 100, 10)
		check(t, "Flush", db.Flush(t.Context()))
		gate := make(chan struct{})
		fs.gate.Store(&gate)
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
