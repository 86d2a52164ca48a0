package engine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestCursorsReuseMemory opens and closes cursors of different queries in random order, from
// several goroutines. Each returns its own rows, also when other cursors have the memory of
// closed ones, and a closed cursor keeps its error and its resume key and has no row.
func TestCursorsReuseMemory(t *testing.T) {
	db := mustCreate(t, engine.Options{FS: vfs.NewMem(), Testing: engine.TestHooks{Manual: true}, SegmentBytes: 1 << 20, CacheBytes: 4 << 20})
	const rows = 600
	for part := range 3 { // a run, a run that overlaps it, and a memtable
		for i := part; i < rows; i += 1 + part {
			apply(t, db, store.InsertOrReplace(entity("p", fmt.Sprintf("%06d", i), int64(i), 20)))
		}
		if part < 2 {
			check(t, "Flush", db.Flush(t.Context()))
		}
	}
	const seed = 1
	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(worker)))
			var open []*checkedCursor
			for step := range 2000 {
				if len(open) < 4 {
					open = append(open, openChecked(t, db, r, rows))
				}
				i := r.IntN(len(open))
				if err := open[i].move(1 + r.IntN(40)); err != nil {
					t.Errorf("seed %d, worker %d, step %d: %v", seed, worker, step, err)
					return
				}
				if open[i].closed {
					open = slices.Delete(open, i, i+1)
				}
			}
			for _, c := range open {
				check(t, "Close", c.Close())
			}
		})
	}
	workers.Wait()
}

// TestQueryAfterFailedQuery fails each read of a query in turn. The next query has the
// memory of the failed one, and returns all rows.
func TestQueryAfterFailedQuery(t *testing.T) {
	bad := errors.New("bad sector")
	fsys := errorfs.Wrap(vfs.NewMem(), nil)
	o := manual(fsys)
	o.CacheBytes = 1
	db := mustCreate(t, o)
	fill(t, db, "p", 500, 200)
	check(t, "Flush", db.Flush(t.Context()))
	queries := []store.Query{{}, {Reverse: true}, {Limit: 200}, {Filter: filter.MustParse("N ge 0")}, {Filter: filter.MustParse("N ge 0"), Reverse: true}}
	rows := func(q store.Query) (n int, err error) {
		c := db.Query(t.Context(), table, q)
		for c.Next() {
			n++
		}
		return n, errors.Join(c.Err(), c.Close())
	}
	failed := 0
	for i, q := range queries {
		for n := uint64(1); ; n++ {
			sst := func(op vfs.Op) bool { return op.Kind == "read" && strings.HasSuffix(op.Name, ".sst") }
			fsys.SetRule(errorfs.FailNth(n, sst, errorfs.Fault{Err: bad}, true))
			_, err := rows(q)
			fsys.SetRule(nil)
			if err == nil {
				break
			}
			if failed++; !errors.Is(err, bad) {
				t.Fatalf("%+v, read %d: %v, want %v", q, n, err, bad)
			}
			next := queries[(i+int(n))%len(queries)]
			want := 500
			if next.Limit > 0 {
				want = next.Limit
			}
			if got, err := rows(next); got != want || err != nil {
				t.Fatalf("%+v after read %d of %+v has failed: %d rows, error %v, want %d", next, n, q, got, err, want)
			}
		}
	}
	if failed < 2*len(queries) {
		t.Errorf("%d queries failed", failed)
	}
}

// checkedCursor is a cursor with the numbers of the rows that it must return.
type checkedCursor struct {
	store.Cursor
	q      store.Query
	want   []int
	follow int // the number of a row that follows the last one, or -1
	closed bool
}

func openChecked(t *testing.T, db *engine.DB, r *rand.Rand, rows int) *checkedCursor {
	from := r.IntN(rows)
	c := &checkedCursor{follow: -1, q: store.Query{
		From: &edm.Key{Partition: "p", Row: fmt.Sprintf("%06d", from)}, Reverse: r.IntN(3) == 0, Limit: r.IntN(400),
	}}
	step := 1
	if c.q.Reverse {
		step = -1
	}
	third := r.IntN(3) == 0
	if third {
		c.q.Filter = filter.MustParse("N lt 200")
	}
	for i := from; i >= 0 && i < rows; i += step {
		if third && i >= 200 {
			continue
		}
		if c.q.Limit > 0 && len(c.want) == c.q.Limit {
			c.follow = i
			break
		}
		c.want = append(c.want, i)
	}
	c.Cursor = db.Query(t.Context(), table, c.q)
	return c
}

// move reads n rows. At the end it closes the cursor.
func (c *checkedCursor) move(n int) error {
	for ; n > 0 && len(c.want) > 0; n-- {
		if !c.Next() {
			return fmt.Errorf("%+v has ended before row %d: %v", c.q, c.want[0], c.Err())
		}
		row := c.Row()
		v, _ := row.Lookup("N")
		if got, _ := v.Int64(); got != int64(c.want[0]) || row.Key().Row != fmt.Sprintf("%06d", c.want[0]) {
			return fmt.Errorf("%+v returned row %v with %d, want %d", c.q, row.Key(), got, c.want[0])
		}
		c.want = c.want[1:]
	}
	if len(c.want) > 0 {
		return nil
	}
	more := c.Next()
	c.closed = true
	if err := c.Close(); more || err != nil || c.Err() != nil || c.Close() != nil || c.Next() || c.Row() != nil {
		return fmt.Errorf("%+v: after the last row, Next returns %v, errors %v and %v, row %v", c.q, more, err, c.Err(), c.Row())
	}
	if at := c.Resume(); c.follow >= 0 && (at == nil || at.Row != fmt.Sprintf("%06d", c.follow)) {
		return fmt.Errorf("%+v resumes at %v, want row %d", c.q, at, c.follow)
	}
	return nil
}
