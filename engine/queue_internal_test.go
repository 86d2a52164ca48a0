package engine

import (
	"fmt"
	"slices"
	"sort"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestQueueFromStart reads pages from the start of a partition, or from its end, and deletes their
// rows. A page must not read the tombstones of all pages before it: either it begins behind them, or, if others
// write during each query, so that no range is known to be empty, the tombstones are compacted.
func TestQueueFromStart(t *testing.T) {
	if testing.Short() {
		t.Skip("a bound of a count, which the race detector does not change")
	}
	for _, reverse := range []bool{false, true} {
		for _, page := range []int{100, 400} { // the cursor walks, or looks for windows first
			for _, beside := range []bool{false, true} {
				t.Run(fmt.Sprintf("reverse=%t/page=%d/beside=%t", reverse, page, beside), func(t *testing.T) { testQueue(t, reverse, page, 0, beside) })
			}
		}
		t.Run(fmt.Sprintf("reverse=%t/stuck", reverse), func(t *testing.T) { testQueue(t, reverse, 100, 3, false) })
	}
}

// testQueue reads pages and deletes their rows but for the first ones, stuck, which all pages have. If beside is set, others
// write during each query.
func testQueue(t *testing.T, reverse bool, page, stuck int, beside bool) {
	const rows = 120_000
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
	must("CreateTable", db.CreateTable(ctx, "Other"))
	_, err = db.Load(ctx, table, func(yield func(edm.Entity, error) bool) {
		for i := range rows {
			if !yield(edm.Entity{Key: edm.Key{Partition: "q", Row: fmt.Sprintf("%08d", i)}, Properties: edm.Properties{{Name: "N", Value: edm.Int64(int64(i))}}}, nil) {
				return
			}
		}
	}, LoadOptions{})
	must("Load", err)
	most, limit := 0, page+64
	if beside {
		limit = rows / 1000 * page
	}
	if stuck > 0 {
		limit = page + 256 + 64
	}
	for deleted := 0; deleted < rows-stuck; deleted += page - stuck {
		if !beside {
			most = max(most, deleted-known(t, db, table, rows, stuck, reverse))
		}
		c := db.Query(ctx, table, store.Query{Limit: page, Reverse: reverse})
		if beside {
			_, err := db.Apply(ctx, "Other", store.InsertOrReplace(edm.Entity{}))
			must("Apply", err)
		}
		var ops []store.Op
		for c.Next() {
			ops = append(ops, store.Delete(c.Row().Key(), store.Any))
		}
		must("Query", c.Err())
		must("Close", c.Close())
		ops = ops[stuck:]
		for some := range slices.Chunk(ops, 100) {
			_, err := db.Apply(ctx, table, some...)
			must("Apply", err)
		}
		for worked := true; worked; {
			worked, err = db.Step(ctx)
			must("Step", err)
		}
		if beside {
			most = max(most, tombstones(db))
		}
	}
	t.Logf("up to %d tombstones", most)
	if most == 0 || most > limit {
		t.Errorf("up to %d tombstones for a page to read, want at most %d of %d rows", most, limit, rows)
	}
}

// tombstones returns how many tombstones a query can pass.
func tombstones(db *DB) int {
	s := db.state.Load()
	n := int(s.Version.Stats().Tombstones)
	for _, seg := range s.Mems {
		n += seg.Table.Len()
	}
	return n
}

// known returns how many of the deleted rows are in the empty range that begins behind the stuck rows and some tombstones of
// the queue, at its start or with reverse at its end.
func known(t *testing.T, db *DB, table string, rows, stuck int, reverse bool) int {
	t.Helper()
	s := db.newSnapshot()
	defer s.release()
	id := s.catalog.Lookup(table).ID
	key := func(i int) []byte {
		if reverse {
			i = rows - 1 - i
		}
		return codec.AppendKey(nil, id, "q", fmt.Sprintf("%08d", i))
	}
	in := func(i int) bool { _, _, ok := s.Empty().Around(key(i)); return ok }
	first := stuck
	for ; !in(first); first++ {
		if first == min(rows-1, stuck+64) {
			return 0
		}
	}
	if stuck == 0 && first > 0 {
		t.Fatalf("the empty range begins at row %d", first)
	}
	return sort.Search(rows-first, func(i int) bool { return !in(first + i) })
}
