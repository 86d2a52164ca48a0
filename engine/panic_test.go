package engine_test

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

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
