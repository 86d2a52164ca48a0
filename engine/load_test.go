package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// load is a database in which every batch sets N of all rows of a partition to the
// same, rising number, while everything else runs.
type load struct {
	t     *testing.T
	db    *engine.DB
	disk  *vfs.Mem
	acked [loadPartitions]atomic.Int64
	ended atomic.Bool
	wg    sync.WaitGroup
}

const (
	loadPartitions = 4
	loadRows       = 5
)

func partition(p int) string { return fmt.Sprint("part", p) }

// expected reports whether err is nil, or due to the end of the database.
func (l *load) expected(what string, err error) bool {
	switch {
	case err == nil:
		return true
	case l.ended.Load() && errors.Is(err, store.ErrClosed):
	case l.ended.Load() && errors.Is(err, context.Canceled):
	default:
		l.t.Errorf("%s: %v", what, err)
	}
	return false
}

// run repeats work until the database is closed.
func (l *load) run(seed uint64, work func(ctx context.Context, r *rand.Rand) bool) {
	l.wg.Go(func() {
		r := rand.New(rand.NewPCG(seed, 1))
		for work(l.t.Context(), r) && !l.t.Failed() {
		}
	})
}

func (l *load) write(p int) func(context.Context, *rand.Rand) bool {
	n := int64(0)
	return func(ctx context.Context, r *rand.Rand) bool {
		n++
		var ops []store.Op
		for i := range loadRows {
			ops = append(ops, store.InsertOrReplace(entity(partition(p), fmt.Sprint(i), n, r.IntN(3000))))
		}
		if _, err := l.db.Apply(ctx, table, ops...); !l.expected("Apply", err) {
			return false
		}
		l.acked[p].Store(n)
		return true
	}
}

// verify compares the rows of a query over whole partitions with the invariants.
func (l *load) verify(what string, rows []edm.Entity, least [loadPartitions]int64, exact bool) {
	byPartition := map[string][]int64{}
	for _, e := range rows {
		n, _ := e.Properties.Get("N").Int64()
		byPartition[e.Key.Partition] = append(byPartition[e.Key.Partition], n)
	}
	for p := range loadPartitions {
		ns := byPartition[partition(p)]
		if len(ns) != loadRows && (len(ns) > 0 || least[p] > 0) {
			l.t.Errorf("%s: %d rows of %s, want %d", what, len(ns), partition(p), loadRows)
			continue
		}
		for _, n := range ns {
			if n != ns[0] || n < least[p] || exact && n != least[p] {
				l.t.Errorf("%s: %s has %v, %d was acknowledged before", what, partition(p), ns, least[p])
				break
			}
		}
	}
}

func (l *load) least() (n [loadPartitions]int64) {
	for p := range n {
		n[p] = l.acked[p].Load()
	}
	return n
}

func (l *load) walk(ctx context.Context, s querier, q store.Query) ([]edm.Entity, error) {
	var rows []edm.Entity
	for e, err := range store.Entities(s.Query(ctx, table, q)) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, e)
	}
	return rows, nil
}

func (l *load) query(ctx context.Context, r *rand.Rand) bool {
	least := l.least()
	q := store.Query{Reverse: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		q.Filter = filter.MustParse("N ge 0")
	}
	rows, err := l.walk(ctx, l.db, q)
	if l.expected("Query", err) {
		l.verify("query", rows, least, false)
	}
	return err == nil
}

func (l *load) view(ctx context.Context, r *rand.Rand) bool {
	p := r.IntN(loadPartitions)
	least := l.acked[p].Load()
	if least == 0 {
		return true
	}
	err := l.db.View(ctx, table, edm.Key{Partition: partition(p), Row: "3"}, func(row edm.Row) error {
		v, _ := row.Lookup("N")
		if n, ok := v.Int64(); !ok || n < least {
			l.t.Errorf("View of %s returns %v, %d was acknowledged before", partition(p), v, least)
		}
		return nil
	})
	return l.expected("View", err)
}

// snapshot reads one snapshot several times.
func (l *load) snapshot(ctx context.Context, r *rand.Rand) bool {
	least := l.least()
	s, err := l.db.Snapshot()
	if !l.expected("Snapshot", err) {
		return false
	}
	defer s.Close()
	first, err := l.walk(ctx, s, store.Query{})
	if !l.expected("Query of a snapshot", err) {
		return false
	}
	l.verify("snapshot", first, least, false)
	for i := range 3 {
		rows, err := l.walk(ctx, s, store.Query{Reverse: i%2 == 0})
		if !l.expected("Query of a snapshot", err) {
			return false
		}
		if i%2 == 0 {
			slices.Reverse(rows)
		}
		if len(rows) != len(first) {
			l.t.Errorf("a snapshot has %d rows, and had %d before", len(rows), len(first))
			return false
		}
		for j := range rows {
			if rows[j].Key != first[j].Key || rows[j].Timestamp != first[j].Timestamp {
				l.t.Errorf("a snapshot has %v, and had %v before", rows[j].Key, first[j].Key)
			}
		}
		if len(rows) == 0 {
			continue
		}
		e, err := s.Get(ctx, table, rows[0].Key)
		if !l.expected("Get of a snapshot", err) {
			return false
		}
		if e.Timestamp != rows[0].Timestamp {
			l.t.Errorf("Get of a snapshot returns %v, its query %v", e.Timestamp, rows[0].Timestamp)
		}
	}
	return true
}

// tables creates and drops a table.
func (l *load) tables(ctx context.Context, r *rand.Rand) bool {
	name := "Short"
	if !l.expected("CreateTable", l.db.CreateTable(ctx, name)) {
		return false
	}
	for i := range r.IntN(20) {
		_, err := l.db.Apply(ctx, name, store.Insert(entity("p", fmt.Sprint(i), 1, 1000)))
		if !l.expected("Apply", err) {
			return false
		}
	}
	return l.expected("DeleteTable", l.db.DeleteTable(ctx, name))
}

func (l *load) chores(ctx context.Context, r *rand.Rand) bool {
	switch r.IntN(5) {
	case 0:
		return l.expected("Flush", l.db.Flush(ctx))
	case 1:
		return l.expected("Compact", l.db.Compact(ctx))
	case 2:
		report, err := l.db.Verify(ctx)
		if len(report.Findings)+len(report.Unknown) > 0 {
			l.t.Errorf("Verify: %+v", report)
		}
		return l.expected("Verify", err)
	case 3:
		s, err := l.db.Stats()
		if s.Entities < 0 || s.RunsMax < 0 || s.SpaceAmp < 1 && err == nil {
			l.t.Errorf("Stats: %+v", s)
		}
		return l.expected("Stats", err)
	}
	least := l.least()
	dest := fmt.Sprint("copy", r.Uint64())
	if !l.expected("Checkpoint", l.db.Checkpoint(ctx, dest)) {
		return false
	}
	c, err := engine.Open(dest, manual(l.disk))
	if err != nil {
		l.t.Errorf("Open of a checkpoint: %v", err)
		return false
	}
	defer c.Close()
	rows, err := l.walk(ctx, c, store.Query{})
	if err != nil {
		l.t.Errorf("Query of a checkpoint: %v", err)
	}
	l.verify("checkpoint", rows, least, false)
	return true
}

// TestLoad does everything concurrently and closes the database meanwhile. No reader
// may see part of a batch, or a state before an acknowledged one, and all acknowledged
// writes must be there afterwards.
func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name   string
		noSync bool
	}{{"sync", false}, {"nosync", true}} {
		t.Run(c.name, func(t *testing.T) {
			l := &load{t: t, disk: vfs.NewMem()}
			handles := newCounting(l.disk)
			o := small(handles)
			o.NoSync = c.noSync
			l.db = mustCreate(t, o)
			// A snapshot and a cursor can be used after Close of the database.
			fill(t, l.db, "old", 10, 100)
			cur := l.db.Query(t.Context(), table, store.Query{})
			snap, err := l.db.Snapshot()
			check(t, "Snapshot", err)

			for p := range loadPartitions {
				l.run(uint64(p), l.write(p))
			}
			for seed := range uint64(2) {
				l.run(10+seed, l.view)
				l.run(20+seed, l.query)
				l.run(30+seed, l.snapshot)
			}
			l.run(40, l.tables)
			l.run(50, l.chores)
			l.run(51, l.chores)
			for l.acked[0].Load() < 40 && !t.Failed() {
				l.view(t.Context(), rand.New(rand.NewPCG(1, 1)))
			}
			l.ended.Store(true)
			check(t, "Close", l.db.Close())
			l.wg.Wait()

			n := 0
			for cur.Next() {
				n++
			}
			if err := cur.Err(); err != nil && !errors.Is(err, store.ErrClosed) || err == nil && n != 10 {
				t.Errorf("after Close of the database, a cursor returned %d rows, %v", n, err)
			}
			check(t, "Close of a cursor", cur.Close())
			if _, err := snap.Get(t.Context(), table, edm.Key{Partition: "old", Row: "000001"}); err != nil && !errors.Is(err, store.ErrClosed) {
				t.Errorf("after Close of the database, Get of a snapshot: %v", err)
			}
			check(t, "Close of a snapshot", snap.Close())
			if left := handles.left(); len(left) > 0 {
				t.Errorf("%v are open after Close", left)
			}
			db := mustOpen(t, "db", manual(l.disk))
			rows, err := l.walk(t.Context(), db, store.Query{})
			check(t, "Query after reopening", err)
			l.verify("reopened", rows, l.least(), false)
			if r, err := db.Verify(t.Context()); err != nil || len(r.Findings)+len(r.Unknown) > 0 {
				t.Errorf("Verify after reopening: %+v, %v", r, err)
			}
		})
	}
}
