package engine

import (
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestQueueFromStart reads pages from the start of a partition, or from its end, and deletes their
// rows. A page must not read the tombstones of all pages before it.
func TestQueueFromStart(t *testing.T) {
	if testing.Short() {
		t.Skip("a bound of a count, which the race detector does not change")
	}
	for _, reverse := range []bool{false, true} {
		t.Run(fmt.Sprintf("reverse=%t", reverse), func(t *testing.T) { testQueue(t, reverse) })
	}
}

func testQueue(t *testing.T, reverse bool) {
	const rows, page = 120_000, 100
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	ctx := t.Context()
	db, err := Open("db", Options{FS: vfs.NewMem(), NoSync: true, Testing: TestHooks{Manual: true}, CacheBytes: 8 << 20})
	must("Open", err)
	defer func() { must("Close", db.Close()) }()
	const table = "Queue"
	must("CreateTable", db.CreateTable(ctx, table))
	_, err = db.Load(ctx, table, func(yield func(edm.Entity, error) bool) {
		for i := range rows {
			if !yield(edm.Entity{Key: edm.Key{Partition: "q", Row: fmt.Sprintf("%08d", i)}, Properties: edm.Properties{{Name: "N", Value: edm.Int64(int64(i))}}}, nil) {
				return
			}
		}
	}, LoadOptions{})
	must("Load", err)
	most := 0
	for range rows / page {
		c := db.Query(ctx, table, store.Query{Limit: page, Reverse: reverse})
		var ops []store.Op
		for c.Next() {
			ops = append(ops, store.Delete(c.Row().Key(), store.Any))
		}
		must("Query", c.Err())
		must("Close", c.Close())
		_, err := db.Apply(ctx, table, ops...)
		must("Apply", err)
		for worked := true; worked; {
			worked, err = db.Step(ctx)
			must("Step", err)
		}
		s := db.state.Load()
		tombstones := int(s.Version.Stats().Tombstones)
		for _, seg := range s.Mems {
			tombstones += seg.Table.Len()
		}
		most = max(most, tombstones)
	}
	t.Logf("up to %d tombstones", most)
	if limit := rows / 10; most == 0 || most > limit {
		t.Errorf("up to %d tombstones for a page to read, want at most %d of %d rows", most, limit, rows)
	}
}
