package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"

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
