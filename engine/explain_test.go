package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// explain returns the plan of a query, and the numbers of rows that it examines and returns.
func explain(t *testing.T, s store.Store, text string, q store.Query) (p store.Plan, examined, returned int) {
	t.Helper()
	q.Filter = filter.MustParse(text)
	c := s.Query(t.Context(), table, q)
	defer c.Close()
	p, err := c.(store.Explainer).Explain()
	check(t, "Explain", err)
	for c.Next() {
		returned++
	}
	check(t, "Next", c.Err())
	return p, c.(store.Examiner).Examined(), returned
}

// TestExplain explains queries of two partitions whose property N ascends with the keys.
func TestExplain(t *testing.T) {
	o := manual(vfs.NewMem())
	o.NoSync, o.SegmentBytes = true, 16<<20
	db := mustCreate(t, o)
	fill(t, db, "p", 5000, 100)
	fill(t, db, "q", 5000, 100)
	if p, examined, returned := explain(t, db, "N ge 4990", store.Query{}); p != (store.Plan{}) || examined != 10000 || returned != 20 {
		t.Errorf("in memory: %+v, %d examined, %d returned; want no groups, 10000 and 20", p, examined, returned)
	}
	check(t, "Compact", db.Compact(t.Context()))
	all, _, _ := explain(t, db, "", store.Query{})
	if all.Groups < 20 || all.InRanges != all.Groups || all.Excluded != 0 {
		t.Fatalf("without a filter: %+v, want at least 20 groups and all in ranges", all)
	}
	for _, c := range []struct {
		filter                     string
		leastRanges, mostRanges    int
		mostRead, returned, bounds int
		mostExamined               int
	}{
		{"PartitionKey eq 'p' and RowKey eq '000001'", 1, 1, 1, 1, 0, 1},
		{"PartitionKey eq 'p'", all.Groups / 3, all.Groups/2 + 2, all.Groups/2 + 2, 5000, 0, 5000},
		{"PartitionKey eq 'p' and N ge 4990", all.Groups / 3, all.Groups/2 + 2, 2, 10, all.Groups / 4, 5000},
		{"N ge 4990", all.Groups, all.Groups, 4, 20, all.Groups / 2, 10000},
		{"N ge 5000", all.Groups, all.Groups, 0, 0, all.Groups, 0},
		{"PartitionKey eq 'r'", 0, 1, 1, 0, 0, 0},
		{"PartitionKey eq 'p' and RowKey eq '000001' or PartitionKey eq 'p' and RowKey eq '000003'", 1, 1, 1, 2, 0, 2},
		{"PartitionKey gt 'p' and PartitionKey lt 'p'", 0, 0, 0, 0, 0, 0},
	} {
		for _, reverse := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/reverse=%t", c.filter, reverse), func(t *testing.T) {
				p, examined, returned := explain(t, db, c.filter, store.Query{Reverse: reverse})
				read := p.InRanges - p.Excluded
				if p.Groups != all.Groups || p.InRanges < c.leastRanges || p.InRanges > c.mostRanges || p.Excluded < c.bounds || read > c.mostRead {
					t.Errorf("%+v of %+v, want %+v", p, all, c)
				}
				if returned != c.returned || examined < returned || examined > c.mostExamined || read == 0 && examined > 0 {
					t.Errorf("%d examined and %d returned of %+v, want %d", examined, returned, p, c.returned)
				}
			})
		}
	}
}

// TestExplainFewRows filters a file that is hardly longer than its bounds.
func TestExplainFewRows(t *testing.T) {
	for rows := 1; rows <= 20; rows++ {
		db := mustCreate(t, manual(vfs.NewMem()))
		fill(t, db, "p", rows, 0)
		check(t, "Flush", db.Flush(t.Context()))
		p, examined, _ := explain(t, db, fmt.Sprintf("N ge %dL", rows), store.Query{})
		if want := (store.Plan{Groups: 1, InRanges: 1, Excluded: 1}); p != want || examined != 0 {
			t.Errorf("%d rows: %+v and %d examined, want %+v and none", rows, p, examined, want)
		}
	}
}

// TestExaminedOnce filters a table whose keys are within the span of small files of the tables
// before and behind it. All entities of the middle third match, so a walk reads them and ends in a
// group behind them, and none of the others does, which bounds do not show. No entity counts
// twice: not those of that group that the walk has passed.
func TestExaminedOnce(t *testing.T) {
	o := manual(vfs.NewMem())
	o.NoSync, o.SegmentBytes, o.FileBytes = true, 16<<20, 16<<20
	db := mustOpen(t, "db", o)
	for _, name := range []string{"Before", table, "Behind"} {
		check(t, "CreateTable", db.CreateTable(t.Context(), name))
	}
	const third = 7000
	_, err := db.Load(t.Context(), table, func(yield func(edm.Entity, error) bool) {
		for i := range 3 * third {
			n := 1
			if i/third != 1 {
				n = 2 * (i % 2)
			}
			if !yield(entity("p", fmt.Sprintf("%06d", i), int64(n), 50), nil) {
				return
			}
		}
	}, engine.LoadOptions{})
	check(t, "Load", err)
	for i := range 2 {
		for _, name := range []string{"Before", "Behind"} {
			_, err := db.Apply(t.Context(), name, store.InsertOrReplace(entity("p", fmt.Sprint(i), 1, 50)))
			check(t, "Apply", err)
		}
		check(t, "Flush", db.Flush(t.Context()))
	}
	for _, reverse := range []bool{false, true} {
		if _, examined, returned := explain(t, db, "N eq 1L", store.Query{Reverse: reverse}); examined != 3*third || returned != third {
			t.Errorf("reverse=%t: %d entities examined and %d returned, want %d and %d", reverse, examined, returned, 3*third, third)
		}
	}
}

// TestExaminedBesideWalk filters a table by columns, but for a walk inside a row group: a fifth of the
// entities of a large file match, and all of a small file whose keys are within one of its groups.
// Of that group the entities that the walk begins with, and those behind it, count twice, not those
// before it.
func TestExaminedBesideWalk(t *testing.T) {
	o := manual(vfs.NewMem())
	o.NoSync, o.SegmentBytes, o.FileBytes = true, 16<<20, 16<<20
	db := mustCreate(t, o)
	const large, small = 10_000, 500
	_, err := db.Load(t.Context(), table, func(yield func(edm.Entity, error) bool) {
		for i := range large {
			if !yield(entity("p", fmt.Sprintf("%06d", i), int64(i%5), 50), nil) {
				return
			}
		}
	}, engine.LoadOptions{})
	check(t, "Load", err)
	for i := range small {
		apply(t, db, store.Insert(entity("p", fmt.Sprintf("%06d-%03d", large/2, i), 1, 50)))
	}
	check(t, "Flush", db.Flush(t.Context()))
	for _, reverse := range []bool{false, true} {
		for range 2 { // the second query finds the columns in the cache
			p, examined, returned := explain(t, db, "N eq 1L", store.Query{Reverse: reverse})
			if most := large + small + large/(p.Groups-2); examined < large+small || examined > most || returned != large/5+small {
				t.Errorf("reverse=%t: %d entities examined and %d returned, want at most %d and %d", reverse, examined, returned, most, large/5+small)
			}
		}
	}
}

// TestExplainErrors explains a query that has failed, and queries of a file that is damaged.
func TestExplainErrors(t *testing.T) {
	db := mustCreate(t, manual(vfs.NewMem()))
	missing := db.Query(t.Context(), "Missing", store.Query{})
	if _, err := missing.(store.Explainer).Explain(); err != store.ErrTableNotFound {
		t.Errorf("a missing table: error %v, want %v", err, store.ErrTableNotFound)
	}
	check(t, "Close", missing.Close())
	disk, name := twoFiles(t)
	b := readFile(t, disk, "db/"+name)
	check(t, "Patch", disk.Patch("db/"+name, int64(len(b)-1), []byte{b[len(b)-1] ^ 4}))
	for _, text := range []string{"", "PartitionKey eq 'q'", "N ge 0L"} {
		db := mustOpen(t, "db", manual(disk))
		c := db.Query(t.Context(), table, store.Query{Filter: filter.MustParse(text)})
		if p, err := c.(store.Explainer).Explain(); !errors.Is(err, store.ErrCorrupt) || strings.Count(err.Error(), "wrong sum") != 1 {
			t.Errorf("filter %q of a damaged file: %+v, %v, want %v once", text, p, err, store.ErrCorrupt)
		}
		_ = c.Close() // the same error
		check(t, "Close", closeAtOnce(db))
	}
}
