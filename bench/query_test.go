package bench_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
)

const queryName = "Telemetry"

// queryLayouts are how the entities are spread over runs.
var queryLayouts = []struct {
	name   string
	runs   int
	random bool // every run has keys of the whole table
	got    bool // gets have arranged the heads by rows
	fresh  bool // a hundredth of the entities is in a memtable too
	shapes int  // if it is not 0, each entity has one property more, one of so many
}{
	{name: "runs=1", runs: 1},
	{name: "runs=1-got", runs: 1, got: true},
	{name: "runs=1-fresh", runs: 1, fresh: true},
	{name: "runs=1-shapes=5", runs: 1, shapes: 5},
	{name: "runs=2-apart", runs: 2},
	{name: "runs=3-overlapping", runs: 3, random: true},
	{name: "runs=8-overlapping", runs: 8, random: true},
}

// queryCases are queries of the whole table. Filters match about 1 % of the entities, or
// none.
var queryCases = []struct {
	name string
	q    store.Query
	read bool // every property of each row
	cols bool // by columns where the cursor has them
	// states is the number of entities whose State the filter accepts.
	states int
}{
	{name: "step=nothing"},
	{name: "step=select", q: store.Query{Select: []string{"Level"}}, read: true},
	{name: "step=all", read: true},
	{name: "step=nothing-columns", cols: true},
	{name: "step=select-columns", q: store.Query{Select: []string{"Level"}}, read: true, cols: true},
	{name: "step=all-columns", read: true, cols: true},
	{name: "step=bytes", q: store.Query{BudgetBytes: 1 << 30}, read: true},
	{name: "step=bytes-columns", q: store.Query{BudgetBytes: 1 << 30}, read: true, cols: true},
	{name: "filter=Int32", q: store.Query{Filter: filter.MustParse("Level eq 50")}},
	{name: "filter=Int32-wide", q: store.Query{Filter: filter.MustParse("Count lt 10486")}},
	{name: "filter=Int64", q: store.Query{Filter: filter.MustParse("Total lt 10995116278L")}},
	{name: "filter=Double", q: store.Query{Filter: filter.MustParse("Temperature gt 99.0")}},
	{name: "filter=DateTime", q: store.Query{Filter: filter.MustParse("When lt datetime'3622-10-02T10:34:10Z'")}},
	{name: "filter=String", q: store.Query{Filter: filter.MustParse("Owner eq 'nobody at all'")}},
	{name: "filter=String-dict", q: store.Query{Filter: filter.MustParse("State eq 'nobody'")}},
	{name: "filter=String-order", q: store.Query{Filter: filter.MustParse("Owner gt 'zonic'")}},
	{name: "filter=String-15", states: 15},
	{name: "filter=none", q: store.Query{Filter: filter.MustParse("Temperature gt 99.999999")}},
	{name: "filter=Int64-eq", q: store.Query{Filter: filter.MustParse("Total eq 549755813888L")}},
	{name: "filter=two", q: store.Query{Filter: filter.MustParse("Level eq 50 and Temperature lt 20.0")}},
	{name: "filter=Double-columns", q: store.Query{Filter: filter.MustParse("Temperature gt 99.0")}, cols: true},
	{name: "filter=Double-all-columns", q: store.Query{Filter: filter.MustParse("Temperature gt 99.0")}, read: true, cols: true},
	{name: "filter=10%", q: store.Query{Filter: filter.MustParse("Temperature gt 90.0")}},
}

// statesOf returns the filter that accepts the States of the first n entities.
func statesOf(data *bench.Dataset, n int) *filter.Expr {
	var e edm.Entity
	var terms []string
	for i := range n {
		data.Fill(i, i, &e)
		terms = append(terms, fmt.Sprintf("State eq '%s'", e.Properties[bench.PropState].Value.Bytes()))
	}
	return filter.MustParse(strings.Join(terms, " or "))
}

// BenchmarkQuery measures queries of a table that is in the cache. Its unit is an entity
// of the table.
func BenchmarkQuery(b *testing.B) {
	shape, err := bench.ShapeOf(bench.Grid, *entities)
	if err != nil {
		b.Fatal(err)
	}
	var data *bench.Dataset
	for _, layout := range queryLayouts {
		var db *engine.DB
		dir := b.TempDir()
		for _, c := range queryCases {
			b.Run(layout.name+"/"+c.name, func(b *testing.B) {
				if data == nil {
					data = bench.NewDataset(shape, *seed)
				}
				if db == nil {
					db = loadRuns(b, dir, data, layout.runs, layout.random, layout.shapes)
					queryTable(b, db, store.Query{}, true)
					for i := 0; layout.got && i < data.Len(); i++ {
						if _, err := db.Get(b.Context(), queryName, data.Key(i)); err != nil {
							b.Fatal(err)
						}
					}
					if layout.fresh {
						refresh(b, db, data)
					}
				}
				if c.states > 0 {
					c.q.Filter = statesOf(data, c.states)
				}
				query := queryTable
				if c.cols {
					query = queryColumns
				}
				query(b, db, c.q, c.read)
				b.ReportAllocs()
				b.ResetTimer()
				cpu, matches, n := bench.CPUTime(), 0, 0
				for ; n < b.N; n += data.Len() {
					matches += query(b, db, c.q, c.read)
				}
				b.ReportMetric(float64(bench.CPUTime()-cpu)/float64(n), "cpu-ns/op")
				b.ReportMetric(100*float64(matches)/float64(n), "%match")
			})
		}
		if db != nil {
			if err := db.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkShortQuery measures queries that begin at a random key and return 1 to 100
// entities, whose properties are all read. With fresh=1%, that share of the entities is in
// a memtable too. Its unit is a query.
func BenchmarkShortQuery(b *testing.B) {
	shape, err := bench.ShapeOf(bench.Grid, *entities)
	if err != nil {
		b.Fatal(err)
	}
	var data *bench.Dataset
	for _, layout := range queryLayouts {
		if layout.got || layout.fresh {
			continue
		}
		var db *engine.DB
		dir := b.TempDir()
		for _, c := range []struct {
			name  string
			fresh bool
			query func(*testing.B, *engine.DB, store.Query, bool) int
		}{
			{"fresh=0%", false, queryTable},
			{"fresh=0%/columns", false, queryColumns},
			{"fresh=1%", true, queryTable},
			{"fresh=1%/columns", true, queryColumns},
		} {
			b.Run(layout.name+"/"+c.name, func(b *testing.B) {
				if data == nil {
					data = bench.NewDataset(shape, *seed)
				}
				if db == nil {
					db = loadRuns(b, dir, data, layout.runs, layout.random, layout.shapes)
					queryTable(b, db, store.Query{}, true)
				}
				if c.fresh {
					refresh(b, db, data)
				}
				rnd := rand.New(rand.NewPCG(*seed, 1))
				b.ReportAllocs()
				b.ResetTimer()
				cpu := bench.CPUTime()
				for range b.N {
					from := data.Key(rnd.IntN(data.Len() - shortLimit))
					c.query(b, db, store.Query{From: &from, Limit: 1 + rnd.IntN(shortLimit)}, true)
				}
				b.ReportMetric(float64(bench.CPUTime()-cpu)/float64(b.N), "cpu-ns/op")
			})
		}
		if db != nil {
			if err := db.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// shortLimit is the greatest limit of a short query.
const shortLimit = 100

// loadRuns returns a database whose entities are in runs of about equal size.
func loadRuns(b *testing.B, dir string, data *bench.Dataset, runs int, random bool, shapes int) *engine.DB {
	b.Helper()
	ctx := context.Background()
	o := engine.Options{CacheBytes: 1 << 30, SegmentBytes: 512 << 20, TierRuns: 16, NoSync: true, Testing: engine.TestHooks{Manual: true}}
	db, err := engine.Open(dir, o)
	if err != nil {
		b.Fatal(err)
	}
	must := func(err error) {
		if err != nil {
			b.Helper()
			b.Fatal(err)
		}
	}
	must(db.CreateTable(ctx, queryName))
	order := data.Order(*seed)
	var e edm.Entity
	for i := range data.Len() {
		at := i
		if random {
			at = int(order[i])
		}
		data.Fill(at, at, &e)
		put := e
		if shapes > 0 {
			put.Properties = append(slices.Clip(e.Properties), edm.Property{Name: fmt.Sprint("Own", at%shapes), Value: edm.Int32(int32(at))})
		}
		_, err := db.Apply(ctx, queryName, store.InsertOrReplace(put))
		must(err)
		if (i+1)*runs/data.Len() != i*runs/data.Len() {
			must(db.Flush(ctx))
		}
	}
	if runs == 1 {
		must(db.Compact(ctx))
	}
	return db
}

// refresh writes a hundredth of the entities again.
func refresh(b *testing.B, db *engine.DB, data *bench.Dataset) {
	b.Helper()
	var e edm.Entity
	for i := 0; i < data.Len(); i += 100 {
		data.Fill(i, i, &e)
		if _, err := db.Apply(b.Context(), queryName, store.InsertOrReplace(e)); err != nil {
			b.Fatal(err)
		}
	}
}

// fold is that of all queries, so that a query does not allocate its memory.
var fold bench.Fold

// queryTable reads all rows of q and returns how many there are.
func queryTable(b *testing.B, db *engine.DB, q store.Query, read bool) (n int) {
	c := db.Query(context.Background(), queryName, q)
	for c.Next() {
		if read {
			fold.Row(c.Row())
		}
		n++
	}
	endQuery(b, c, read, n)
	return n
}

// queryColumns is queryTable by columns.
func queryColumns(b *testing.B, db *engine.DB, q store.Query, read bool) (n int) {
	c := db.Query(context.Background(), queryName, q).(store.ColumnCursor)
	for {
		if rows := c.NextColumns(); rows != nil {
			n += rows.Len()
			if !read {
				continue
			}
			if err := fold.Columns(rows); err != nil {
				b.Fatal(err)
			}
		} else if c.Next() {
			n++
			if read {
				fold.Row(c.Row())
			}
		} else {
			break
		}
	}
	endQuery(b, c, read, n)
	return n
}

// endQuery ends a query that returned n rows.
func endQuery(b *testing.B, c store.Cursor, read bool, n int) {
	b.Helper()
	if err := errors.Join(c.Err(), c.Close()); err != nil {
		b.Fatal(err)
	}
	if read && n == 0 {
		b.Fatal(errors.New("no rows"))
	}
}
