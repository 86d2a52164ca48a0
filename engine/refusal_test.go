package engine_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestRefusalInNewTable refuses writes of a table whose creation is not durable. The refusals say that the table exists, and so
// does a Load that writes nothing: they wait for the sync, and have an unknown outcome if it fails.
func TestRefusalInNewTable(t *testing.T) {
	large := entity("p", "large", 1, 0)
	for i := range edm.MaxProperties {
		large.Properties = append(large.Properties, edm.Property{Name: string(rune('a'+i%26)) + string(rune('a'+i/26)), Value: edm.Boolean(true)})
	}
	for _, op := range []store.Op{
		store.Merge(entity("p", "missing", 1, 0), store.Any), store.Insert(large), store.InsertOrReplace(large), store.InsertOrMerge(large),
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			shut, held, release := false, make(chan struct{}), make(chan struct{})
			o := manual(errorfs.Wrap(vfs.NewMem(), func(op vfs.Op) *errorfs.Fault {
				mu.Lock()
				block := shut && op.Kind == "sync"
				mu.Unlock()
				if !block {
					return nil
				}
				close(held)
				<-release
				return &errorfs.Fault{Err: errKilled}
			}))
			db := mustCreate(t, o)
			mu.Lock()
			shut = true
			mu.Unlock()
			created, single, several := make(chan error, 1), make(chan error, 1), make(chan error, 1)
			load, nothing, failing := make(chan error, 1), make(chan error, 1), make(chan error, 1)
			go func() { created <- db.CreateTable(t.Context(), "Fresh") }()
			<-held
			go func() {
				_, err := db.Apply(t.Context(), "Fresh", op)
				single <- err
			}()
			go func() {
				_, err := db.ApplyBatches(t.Context(), "Fresh", [][]store.Op{{op}})
				several <- err
			}()
			go func() {
				_, err := db.Load(t.Context(), "Fresh", sequence([]edm.Entity{large}), engine.LoadOptions{})
				load <- err
			}()
			go func() {
				_, err := db.Load(t.Context(), "Fresh", sequence(nil), engine.LoadOptions{})
				nothing <- err
			}()
			go func() {
				_, err := db.Load(t.Context(), "Fresh", func(yield func(edm.Entity, error) bool) { yield(edm.Entity{}, errKilled) }, engine.LoadOptions{})
				failing <- err
			}()
			synctest.Wait()
			mu.Lock()
			shut = false
			mu.Unlock()
			close(release)
			if err := <-created; !errors.Is(err, store.ErrOutcomeUnknown) {
				t.Errorf("CreateTable: %v, want %v", err, store.ErrOutcomeUnknown)
			}
			for what, got := range map[string]chan error{
				"Apply": single, "ApplyBatches": several, "Load": load, "Load of nothing beside": nothing, "Load of a failing sequence beside": failing,
			} {
				if err := <-got; !errors.Is(err, store.ErrOutcomeUnknown) {
					t.Errorf("%s of %v: %v, want %v", what, op.Kind, err, store.ErrOutcomeUnknown)
				}
			}
			_ = db.Close() // fails, because the log has failed
		})
	}
}
