package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestFewLimit pages through entities of one run, two runs and a memtable with filters of values and
// small limits, which begin row by row. A page whose matches come first examines no other entities.
func TestFewLimit(t *testing.T) {
	const rows = 3000
	db := mustCreate(t, engine.Options{FS: vfs.NewMem(), Testing: engine.TestHooks{Manual: true}, NoSync: true})
	put := func(step int) {
		var ops []store.Op
		for i := 0; i < rows; i += step {
			e := entity("p", fmt.Sprintf("%06d", i), int64(i), 20)
			e.Properties = append(e.Properties, edm.Property{Name: "Text", Value: edm.String(fmt.Sprintf("%03d", i*7919%1000))})
			if ops = append(ops, store.InsertOrReplace(e)); len(ops) == 100 {
				apply(t, db, ops...)
				ops = ops[:0]
			}
		}
		if len(ops) > 0 {
			apply(t, db, ops...)
		}
	}
	put(1)
	for _, layout := range []struct {
		name string
		next func()
	}{
		{"one run", func() { check(t, "Compact", db.Compact(t.Context())) }},
		{"two runs", func() { put(3); check(t, "Flush", db.Flush(t.Context())) }},
		{"two runs and a memtable", func() { put(7) }},
	} {
		layout.next()
		for _, c := range []struct {
			filter string
			first  bool // the first entities match
			match  func(i int) bool
		}{
			{"N ge 0", true, func(int) bool { return true }},
			{"Text ge '000'", true, func(int) bool { return true }},
			{"Text ge '500'", false, func(i int) bool { return i*7919%1000 >= 500 }},
			{"N eq 2500", false, func(i int) bool { return i == 2500 }},
			{"N ge 100 and Text lt '010'", false, func(i int) bool { return i >= 100 && i*7919%1000 < 10 }},
			{"Text eq 'none'", false, func(int) bool { return false }},
		} {
			var want []int64
			for i := range rows {
				if c.match(i) {
					want = append(want, int64(i))
				}
			}
			for _, reverse := range []bool{false, true} {
				for _, limit := range []int{1, 3, 10} {
					if limit == 1 && len(want) > 300 {
						continue // many pages
					}
					q := store.Query{Filter: filter.MustParse(c.filter), Limit: limit, Reverse: reverse}
					pageThrough(t, db, q, layout.name+": "+c.filter, want)
				}
				slices.Reverse(want)
			}
			for _, limit := range []int{1, 3, 10} {
				if n, examined := examine(t, db, store.Query{Filter: filter.MustParse(c.filter), Limit: limit}); c.first && examined > limit {
					t.Errorf("%s: %s with limit %d returns %d and examines %d, want at most %d", layout.name, c.filter, limit, len(n), examined, limit)
				}
			}
		}
	}
}

// pageThrough compares the N of all pages of q with want.
func pageThrough(t *testing.T, db *engine.DB, q store.Query, name string, want []int64) {
	t.Helper()
	var got []int64
	for page := 0; ; page++ {
		c := db.Query(t.Context(), table, q)
		n := 0
		for ; c.Next(); n++ {
			v, _ := c.Row().Lookup("N")
			i, _ := v.Int64()
			got = append(got, i)
		}
		check(t, "Query", c.Err())
		q.From = c.Resume()
		check(t, "Close", c.Close())
		if n > q.Limit || page > len(want) {
			t.Fatalf("%s, limit %d: page %d has %d entities", name, q.Limit, page, n)
		}
		if q.From == nil {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s, limit %d, reverse %v: got %d entities %.5v, want %d %.5v", name, q.Limit, q.Reverse, len(got), got, len(want), want)
	}
}
