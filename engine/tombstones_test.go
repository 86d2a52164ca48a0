package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// endingContext ends after a number of calls of Err.
type endingContext struct {
	context.Context
	left int
}

func (c *endingContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestContextEndsAmongTombstones ends the ctx of a query over tombstones only, and
// continues with the resume key.
func TestContextEndsAmongTombstones(t *testing.T) {
	race.SkipOneGoroutine(t)
	db := mustCreate(t, engine.Options{FS: vfs.NewMem(), Testing: engine.TestHooks{Manual: true}, SegmentBytes: 8 << 20, CacheBytes: 1 << 20})
	const n = 20_000
	for _, op := range []func(edm.Key) store.Op{
		func(k edm.Key) store.Op { return store.InsertOrReplace(edm.Entity{Key: k}) },
		func(k edm.Key) store.Op { return store.Delete(k, store.Any) },
	} {
		for i := 0; i < n; i += 100 {
			ops := make([]store.Op, 100)
			for j := range ops {
				ops[j] = op(edm.Key{Partition: "p", Row: fmt.Sprintf("%06d", i+j)})
			}
			apply(t, db, ops...)
		}
	}
	last := entity("p", "last", 1, 1)
	apply(t, db, store.Insert(last))

	c := db.Query(&endingContext{t.Context(), 3}, table, store.Query{})
	defer c.Close()
	if c.Next() {
		t.Fatalf("Next: got %v, want the end of ctx", c.Row().Key())
	}
	if !errors.Is(c.Err(), context.Canceled) || c.Resume() == nil || c.Resume().Row >= fmt.Sprintf("%06d", n/2) {
		t.Fatalf("got error %v and resume key %v, want an early stop", c.Err(), c.Resume())
	}
	rest := db.Query(t.Context(), table, store.Query{From: c.Resume()})
	defer rest.Close()
	if !rest.Next() || rest.Row().Key() != last.Key || rest.Next() {
		t.Errorf("the page from %v does not consist of %v", c.Resume(), last.Key)
	}
}
