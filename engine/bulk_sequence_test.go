package engine_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
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
