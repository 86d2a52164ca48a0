package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestPanicOfLeader panics in each kind of operation of the writer that syncs the log for its group. Its goroutine may go on, as
// that of a request does. The other writers of the group and later ones must not wait for ever: the log has failed.
func TestPanicOfLeader(t *testing.T) {
	for _, kind := range []string{"write", "sync"} {
		synctest.Test(t, func(t *testing.T) {
			held, release := make(chan struct{}), make(chan struct{})
			fsys := errorfs.Wrap(vfs.NewMem(), nil)
			db := mustCreate(t, manual(fsys))
			apply(t, db, store.InsertOrReplace(entity("p", "before", 1, 1)))
			fsys.SetRule(func(op vfs.Op) *errorfs.Fault {
				if op.Kind != kind {
					return nil
				}
				close(held)
				<-release
				panic("injected")
			})
			write := func(row string) (err error, panicked bool) {
				defer func() { panicked = recover() != nil }()
				_, err = db.Apply(t.Context(), table, store.InsertOrReplace(entity("p", row, 1, 1)))
				return err, false
			}
			leader, follower := make(chan bool, 1), make(chan error, 1)
			go func() {
				_, panicked := write("leader")
				leader <- panicked
			}()
			<-held
			go func() {
				err, _ := write("follower")
				follower <- err
			}()
			synctest.Wait()
			close(release)
			if !<-leader {
				t.Errorf("%s: the writer did not panic", kind)
			}
			fsys.SetRule(nil)
			if err := <-follower; !errors.Is(err, store.ErrOutcomeUnknown) {
				t.Errorf("%s: another writer gets %v, want %v", kind, err, store.ErrOutcomeUnknown)
			}
			if err, _ := write("later"); !errors.Is(err, store.ErrReadOnly) {
				t.Errorf("%s: a later writer gets %v, want %v", kind, err, store.ErrReadOnly)
			}
			if _, err := db.Get(t.Context(), table, entity("p", "before", 1, 1).Key); err != nil {
				t.Errorf("%s: Get: %v", kind, err)
			}
			if err := db.Close(); err != nil {
				t.Errorf("%s: Close: %v", kind, err)
			}
		})
	}
}

// TestPanicOfOpen panics at each call that Open makes of the file system, the logger and the clock. A program that recovers can
// open the database again: the lock is released.
func TestPanicOfOpen(t *testing.T) {
	for _, source := range []string{"fs", "logger", "clock"} {
		panics := 0
		for n := 1; n <= panics+1; n++ {
			calls := 0
			call := func(from string) {
				if from == source {
					if calls++; calls == n {
						panic("injected")
					}
				}
			}
			disk := vfs.NewMem()
			o := manual(errorfs.Wrap(disk, func(vfs.Op) *errorfs.Fault { call("fs"); return nil }))
			o.Logger = slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) { call("logger"); return len(p), nil }), nil))
			o.Testing.Clock = panickingClock{func() { call("clock") }}
			func() {
				defer func() {
					if recover() != nil {
						panics = n
					}
				}()
				db, err := engine.Open("db", o)
				if err != nil {
					t.Fatal(err)
				}
				calls = n // no more panics
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			}()
			db, err := engine.Open("db", manual(disk))
			if err != nil {
				t.Errorf("%s: after a panic in call %d: %v", source, n, err)
				continue
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
		if panics == 0 {
			t.Errorf("%s: nothing panicked", source)
		}
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

type panickingClock struct{ call func() }

func (c panickingClock) Now() time.Time {
	c.call()
	return time.Now()
}

func (c panickingClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// TestPanicOfWork panics at each call that Flush, Compact, Checkpoint and Close make of the file system, the logger and the clock.
// After a program recovers, the calls that follow do not hang, and Close releases the lock. The next Open finds each entity.
func TestPanicOfWork(t *testing.T) {
	for _, work := range []struct {
		name string
		do   func(*engine.DB, context.Context) error
	}{
		{"Flush", (*engine.DB).Flush},
		{"Compact", (*engine.DB).Compact},
		{"Checkpoint", func(db *engine.DB, ctx context.Context) error { return db.Checkpoint(ctx, "checkpoint") }},
		{"Close", (*engine.DB).CloseContext},
	} {
		for _, noSync := range []bool{false, true} {
			for _, source := range []string{"fs", "logger", "clock"} {
				t.Run(fmt.Sprintf("%s/nosync=%t/%s", work.name, noSync, source), func(t *testing.T) {
					for n := 1; panicOfWork(t, noSync, source, n, work.do); n += stride(3) {
					}
				})
			}
		}
	}
}

// panicOfWork panics at call n of the source that do makes, and reports whether do makes so many.
func panicOfWork(t *testing.T, noSync bool, source string, n int, do func(*engine.DB, context.Context) error) (panicked bool) {
	calls := math.MinInt // no panic before do
	call := func(from string) {
		if from == source {
			if calls++; calls == n {
				panic("injected")
			}
		}
	}
	disk := vfs.NewMem()
	o := manual(errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
		if op.Name != "db/LOCK" { // nothing else can release it
			call("fs")
		}
		return nil
	}))
	write := writerFunc(func(p []byte) (int, error) { call("logger"); return len(p), nil })
	o.Logger = slog.New(slog.NewTextHandler(write, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.Testing.Clock = panickingClock{func() { call("clock") }}
	o.NoSync = noSync
	db := mustCreate(t, o)
	var keys []edm.Key
	for i := range 4 { // two sstables and a memtable
		e := entity("p", fmt.Sprint("row", i), int64(i), 100)
		keys = append(keys, e.Key)
		apply(t, db, store.InsertOrReplace(e))
		if i%2 == 0 {
			if err := db.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	calls = 0
	func() {
		defer func() { panicked = recover() != nil }()
		if err := do(db, t.Context()); err != nil {
			t.Errorf("without a panic: %v", err)
		}
	}()
	calls = math.MinInt
	for _, key := range keys {
		if _, err := db.Get(t.Context(), table, key); err != nil && !errors.Is(err, store.ErrClosed) {
			t.Errorf("Get after a panic in call %d: %v", n, err)
		}
	}
	later := entity("p", "later", 1, 1)
	_, err := db.Apply(t.Context(), table, store.InsertOrReplace(later))
	if err == nil {
		keys = append(keys, later.Key)
	}
	_ = db.Checkpoint(t.Context(), "later") // must not hang
	for name, err := range map[string]error{"Apply": err, "Flush": db.Flush(t.Context()), "Compact": db.Compact(t.Context())} {
		if err != nil && !errors.Is(err, store.ErrReadOnly) && !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s after a panic in call %d: %v", name, n, err)
		}
	}
	if err := db.Close(); err != nil && !noSync {
		t.Errorf("Close after a panic in call %d: %v", n, err)
	}
	if panicked && noSync {
		keys = nil // not durable
	}
	checkReopened(t, manual(disk), keys, n)
	return panicked
}

// checkReopened opens a database and reads keys, after a panic in call n.
func checkReopened(t *testing.T, o engine.Options, keys []edm.Key, n int) {
	db, err := engine.Open("db", o)
	if err != nil {
		t.Errorf("Open after a panic in call %d: %v", n, err)
		return
	}
	for _, key := range keys {
		if _, err := db.Get(t.Context(), table, key); err != nil {
			t.Errorf("Get after a panic in call %d and Open: %v", n, err)
		}
	}
	report, err := db.Verify(t.Context())
	if err != nil || len(report.Findings) > 0 {
		t.Errorf("Verify after a panic in call %d and Open: %v, %v", n, report.Findings, err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
