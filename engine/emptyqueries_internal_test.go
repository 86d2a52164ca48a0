package engine

import (
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

type leaveOutCase struct {
	name    string
	filter  string
	stuck   int // first rows that are not deleted
	limit   int
	reverse bool
	most    int // tombstones a query
}

// TestQueriesLeaveOutDeleted counts the tombstones of a memtable that queries pass after the first ones, which have found
// the range that has no entity.
func TestQueriesLeaveOutDeleted(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, c := range []leaveOutCase{
		{"from the start", "", 0, 1, false, 1},
		{"from the end", "", 0, 1, true, 1},
		{"large pages", "", 0, 1000, false, 1},
		{"behind rows", "", 3, 4, false, 64},
		{"behind rows, from the end", "", 3, 4, true, 64},
		{"with a filter", " and N ge 0", 0, 1, false, 1},
		{"with a filter, from the end", " and N ge 0", 0, 1, true, 1},
		{"with a filter, behind rows that do not match", " and N ge 3", 3, 1, false, 64},
		{"with a filter, behind rows that do not match, from the end", " and N ge 3", 3, 1, true, 64},
	} {
		for _, files := range []string{"none", "deleted rows", "other rows"} {
			t.Run(c.name+"/"+files, func(t *testing.T) { testLeaveOutDeleted(t, c, files) })
		}
	}
}

// testLeaveOutDeleted deletes the first half of the rows of a partition but the stuck ones. files says which rows are in
// files then.
func testLeaveOutDeleted(t *testing.T, c leaveOutCase, files string) {
	const rows, queries = 2000, 50
	db, err := Open("db", Options{FS: vfs.NewMem(), Testing: TestHooks{Manual: true}})
	must(t, "Open", err)
	defer func() { must(t, "Close", db.Close()) }()
	must(t, "CreateTable", db.CreateTable(t.Context(), emptyTable))
	key := func(i int) edm.Key { // of the i-th row in the order of the query
		if c.reverse {
			i = rows - 1 - i
		}
		return edm.Key{Partition: "q", Row: fmt.Sprintf("%06d", i)}
	}
	if files == "other rows" {
		for i := range rows {
			_, err := db.Apply(t.Context(), emptyTable, store.Insert(edm.Entity{Key: edm.Key{Partition: "pr"[i%2 : i%2+1], Row: fmt.Sprint(i)}}))
			must(t, "Insert", err)
		}
		must(t, "Flush", db.Flush(t.Context()))
	}
	for i := range rows {
		_, err := db.Apply(t.Context(), emptyTable, store.Insert(edm.Entity{Key: key(i), Properties: edm.Properties{{Name: "N", Value: edm.Int64(int64(i))}}}))
		must(t, "Insert", err)
	}
	if files == "deleted rows" {
		must(t, "Flush", db.Flush(t.Context()))
	}
	for i := c.stuck; i < rows/2; i++ {
		_, err := db.Apply(t.Context(), emptyTable, store.Delete(key(i), store.Any))
		must(t, "Delete", err)
	}
	q := store.Query{Filter: filter.MustParse("PartitionKey eq 'q'" + c.filter), Limit: c.limit, Reverse: c.reverse}
	page := func() {
		t.Helper()
		cur := db.Query(t.Context(), emptyTable, q)
		found := false
		for cur.Next() {
			found = found || cur.Row().Key() == key(rows/2)
		}
		if cur.Err() != nil || !found {
			t.Fatalf("row %d is found: %t, %v", rows/2, found, cur.Err())
		}
		must(t, "Close", cur.Close())
	}
	page()
	page()
	before := db.state.Load().Mems[0].Table.Passed()
	for range queries {
		page()
	}
	if n := db.state.Load().Mems[0].Table.Passed() - before; n > int64(c.most*queries) {
		t.Errorf("%d queries passed %d tombstones, want at most %d", queries, n, c.most*queries)
	}
	if before == 0 {
		t.Error("the first queries passed no tombstone")
	}
}

// TestEmptyRangesOfLongQueries reads a whole table, of which the query returns one half by columns. Then it walks and
// begins among tombstones: the empty range that it finds has no row that was returned before.
func TestEmptyRangesOfLongQueries(t *testing.T) {
	const rows, deleted = 1000, 400
	for _, reverse := range []bool{false, true} {
		db, err := Open("db", Options{FS: vfs.NewMem(), Testing: TestHooks{Manual: true}})
		must(t, "Open", err)
		must(t, "CreateTable", db.CreateTable(t.Context(), emptyTable))
		key := func(i int) edm.Key { // of the i-th row in the order of the query
			if reverse {
				i = rows - 1 - i
			}
			return edm.Key{Partition: "q", Row: fmt.Sprintf("%06d", i)}
		}
		for i := range rows {
			_, err := db.Apply(t.Context(), emptyTable, store.Insert(edm.Entity{Key: key(i)}))
			must(t, "Insert", err)
			if i == rows/2-1 || i == rows-1 {
				must(t, "Flush", db.Flush(t.Context()))
			}
		}
		for i := range deleted {
			_, err := db.Apply(t.Context(), emptyTable, store.Delete(key(rows/2+i), store.Any))
			must(t, "Delete", err)
		}
		for range 2 {
			cur := db.Query(t.Context(), emptyTable, store.Query{Reverse: reverse})
			n := 0
			for cur.Next() {
				n++
			}
			must(t, "Err", cur.Err())
			must(t, "Close", cur.Close())
			if n != rows-deleted {
				t.Errorf("reverse %t: %d rows, want %d", reverse, n, rows-deleted)
			}
		}
		if db.state.Load().Mems[0].Table.Passed() == 0 {
			t.Error("no query passed a tombstone")
		}
		must(t, "Close", db.Close())
	}
}
