package fuzz

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

const filterTable = "Things"

// filterData is a database with several row groups in sstables and some rows in memory, and
// all its entities in order.
var filterData = sync.OnceValues(func() (*engine.DB, []edm.Entity) {
	ctx := context.Background()
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem(), SegmentBytes: 4 << 20, Testing: repeatable(make([]byte, 16))})
	if err == nil {
		err = db.CreateTable(ctx, filterTable)
	}
	const rows = 600
	for i := 0; i < rows && err == nil; i++ {
		if i == rows*3/4 {
			err = db.Compact(ctx) // one run, so that row groups can be pruned
		}
		if i == rows*9/10 {
			err = db.Flush(ctx)
		}
		if err == nil {
			_, err = db.Apply(ctx, filterTable, store.InsertOrReplace(thing(i*37%rows)))
		}
	}
	var all []edm.Entity
	for e, scanErr := range store.Entities(db.Query(ctx, filterTable, store.Query{})) {
		if err == nil {
			err = scanErr
		}
		all = append(all, e)
	}
	if err != nil {
		panic(err)
	}
	return db, all
})

// thing returns an entity. The types of its properties differ from row to row, and some rows
// lack some properties.
func thing(i int) edm.Entity {
	pk := []string{"", "a", "a\U0001F600", "a\uE000", "b", "it's"}[i/100]
	props := edm.Properties{
		{Name: "n", Value: edm.Int32(int32(i))},
		{Name: "t", Value: edm.DateTime(edm.Ticks(133_500_000_000_000_000 + i*36_000_000_000))},
		{Name: "s", Value: edm.String(fmt.Sprintf("s%03d", i%50))},
	}
	for _, p := range []edm.Property{
		{Name: "a", Value: edm.Int64(int64(i) - 300)},
		{Name: "a", Value: edm.Double(float64(i) / 4)},
		{Name: "a", Value: edm.String(strings.Repeat("x", i%7))},
		{Name: "b", Value: edm.Boolean(i%3 == 0)},
		{Name: "g", Value: edm.GuidWords(0xa455c695df985678, uint64(i)<<56)},
		{Name: "x", Value: edm.Binary([]byte{byte(i), 0x23})},
	} {
		if i%7 == int(p.Value.Type())%7 {
			props = append(props, p)
		}
	}
	props = append(props, edm.Property{Name: "pad", Value: edm.String(strings.Repeat("pad ", i%200))})
	return edm.Entity{Key: edm.Key{Partition: pk, Row: fmt.Sprintf("%04d", i)}, Properties: props}
}

// FuzzFilter queries a database with a filter, in pages and in both directions, and compares
// the result with the filter on each entity: key ranges and the bounds of row groups must
// not hide a row, and pages must not lose or repeat one.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{
		"", "PartitionKey eq 'a'", "PartitionKey ge 'a' and PartitionKey lt 'b' and n gt 150", "RowKey ge '0100' and RowKey lt '0200'",
		"PartitionKey eq 'it''s' or PartitionKey eq '' and RowKey le '0005'", "not (PartitionKey eq 'a' or n lt 550)",
		"n ge 100 and n lt 120L", "a gt 10.5", "a eq 'xxx' or b eq true", "t ge datetime'2024-02-01T00:00:00Z' and t lt datetime'2024-02-02T00:00:00Z'",
		"g eq guid'a455c695-df98-5678-0500-000000000000'", "x eq X'0723'", "s eq 's007' and not (n eq 7)", "missing ne 1", "not (missing eq 1)",
		"PartitionKey gt 'a\U0001F600' and PartitionKey lt 'b'", "Timestamp gt datetime'2020-01-01T00:00:00Z'", "n ne 5 and PartitionKey ne 'b'",
	} {
		f.Add(text, uint16(0), uint16(0), false)
		f.Add(text, uint16(7), uint16(0), true)
		f.Add(text, uint16(0), uint16(50), false)
	}
	f.Fuzz(func(t *testing.T, text string, limit, budget uint16, reverse bool) {
		if len(text) > 2048 || !utf8.ValidString(text) {
			return
		}
		e, err := filter.Parse(text)
		if err != nil {
			return
		}
		db, all := filterData()
		var want []edm.Entity
		for i := range all {
			if e.Match(all[i].View()) {
				want = append(want, all[i])
			}
		}
		if reverse {
			slices.Reverse(want)
		}
		q := store.Query{Filter: e, Limit: int(limit), Budget: int(budget), Reverse: reverse}
		if limit > 0 {
			q.Limit = max(q.Limit, 3)
		}
		if budget > 0 {
			q.Budget = max(q.Budget, 20)
		}
		got := pages(t, db, q, len(all))
		if len(got) != len(want) {
			t.Fatalf("%q returns %d entities, want %d; %+v", text, len(got), len(want), q)
		}
		for i := range got {
			if !sameEntity(got[i], want[i]) {
				t.Fatalf("%q: entity %d is %v, want %v; %+v", text, i, got[i].Key, want[i].Key, q)
			}
		}
	})
}

// pages follows a query from page to page.
func pages(t *testing.T, db store.Store, q store.Query, most int) (got []edm.Entity) {
	for n := 0; ; n++ {
		if n > 2*most {
			t.Fatalf("more than %d pages; %+v", n, q)
		}
		c := db.Query(t.Context(), filterTable, q)
		page := 0
		for c.Next() {
			got = append(got, edm.EntityOf(c.Row()))
			page++
		}
		from := c.Resume()
		if err := c.Err(); err != nil {
			t.Fatalf("%v; %+v", err, q)
		}
		if err := c.Close(); err != nil {
			t.Fatalf("close: %v; %+v", err, q)
		}
		if q.Limit > 0 && page > q.Limit {
			t.Fatalf("a page of %d; %+v", page, q)
		}
		if from == nil {
			return got
		}
		q.From = from
	}
}
