package engine

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestEmptyRanges deletes ranges of rows, puts rows into them by every way of writing, and compares the results of
// queries, also over snapshots of the past, with a model: a range that a query has found empty must hide no row.
func TestEmptyRanges(t *testing.T) {
	race.SkipOneGoroutine(t)
	for seed := range uint64(6) {
		noSync := seed%2 == 1
		t.Run(fmt.Sprintf("seed=%d,noSync=%t", seed, noSync), func(t *testing.T) {
			m := newEmptyModel(t, Options{FS: vfs.NewMem(), NoSync: noSync, Testing: TestHooks{Manual: true}}, seed)
			for row := range emptyRows {
				_, err := m.db.Apply(t.Context(), emptyTable, store.Insert(m.entity(emptyKey(0, row))))
				m.must(err)
			}
			for range 1000 {
				m.step()
			}
			if m.skips == 0 {
				t.Error("no query knew of an empty range")
			}
		})
	}
}

const (
	emptyTable      = "Queue"
	emptyPartitions = 3
	emptyRows       = 300
)

type emptyModel struct {
	t     *testing.T
	r     *rand.Rand
	db    *DB
	rows  map[edm.Key]int64 // the value of N
	next  int64
	held  []emptySnapshot
	skips int // snapshots with empty ranges that queries have read
}

type emptySnapshot struct {
	s    *Snapshot
	rows map[edm.Key]int64
}

func newEmptyModel(t *testing.T, o Options, seed uint64) *emptyModel {
	db, err := Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	m := &emptyModel{t: t, r: rand.New(rand.NewPCG(seed, 0)), db: db, rows: map[edm.Key]int64{}}
	t.Cleanup(func() {
		for _, h := range m.held {
			_ = h.s.Close()
		}
		m.must(db.Close())
	})
	m.must(db.CreateTable(t.Context(), emptyTable))
	return m
}

func (m *emptyModel) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *emptyModel) key() edm.Key {
	return emptyKey(m.r.IntN(emptyPartitions), m.r.IntN(emptyRows))
}

func emptyKey(partition, row int) edm.Key {
	return edm.Key{Partition: string(rune('a' + partition)), Row: fmt.Sprintf("%03d", row)}
}

// entity returns an entity with a new value, which the model has then.
func (m *emptyModel) entity(key edm.Key) edm.Entity {
	m.next++
	m.rows[key] = m.next
	return edm.Entity{Key: key, Properties: edm.Properties{{Name: "N", Value: edm.Int64(m.next)}}}
}

func (m *emptyModel) step() {
	ctx := m.t.Context()
	switch n := m.r.IntN(100); {
	case n < 20:
		m.deleteRange()
	case n < 30:
		_, err := m.db.Apply(ctx, emptyTable, store.InsertOrReplace(m.entity(m.key())))
		m.must(err)
	case n < 35:
		_, err := m.db.Apply(ctx, emptyTable, m.batch()...)
		m.must(err)
	case n < 40:
		_, err := m.db.ApplyBatches(ctx, emptyTable, [][]store.Op{{store.InsertOrMerge(m.entity(m.key()))}, {store.InsertOrReplace(m.entity(m.key()))}})
		m.must(err)
	case n < 43:
		m.load()
	case n < 47:
		m.must(m.db.Flush(ctx))
	case n < 48:
		m.must(m.db.Compact(ctx))
	case n < 49:
		m.must(m.db.DeleteTable(ctx, emptyTable))
		m.must(m.db.CreateTable(ctx, emptyTable))
		clear(m.rows)
	case n < 55:
		m.hold()
	case n < 65 && len(m.held) > 0:
		h := m.held[m.r.IntN(len(m.held))]
		m.query(func(q store.Query) store.Cursor { return h.s.Query(ctx, emptyTable, q) }, h.rows)
	default:
		m.query(func(q store.Query) store.Cursor { return m.db.Query(ctx, emptyTable, q) }, m.rows)
	}
}

// batch returns deletes of up to four rows of a partition, in any order, and puts of others.
func (m *emptyModel) batch() (ops []store.Op) {
	partition := m.r.IntN(emptyPartitions)
	for _, row := range m.r.Perm(emptyRows)[:1+m.r.IntN(4)] {
		key := emptyKey(partition, row)
		if _, ok := m.rows[key]; ok && m.r.IntN(2) == 0 {
			ops = append(ops, store.Delete(key, store.Any))
			delete(m.rows, key)
		} else {
			ops = append(ops, store.InsertOrReplace(m.entity(key)))
		}
	}
	return ops
}

// deleteRange deletes the rows of a range of keys, which may be all.
func (m *emptyModel) deleteRange() {
	from, to := m.r.IntN(emptyPartitions), m.r.IntN(emptyPartitions)
	if m.r.IntN(2) == 0 {
		from, to = 0, emptyPartitions-1
	}
	for p := from; p <= to; p++ {
		first, last := m.r.IntN(emptyRows/2), m.r.IntN(emptyRows)
		for row := range emptyRows {
			key := emptyKey(p, row)
			if _, ok := m.rows[key]; !ok || row < first && p == from || row > last && p == to {
				continue
			}
			_, err := m.db.Apply(m.t.Context(), emptyTable, store.Delete(key, store.Any))
			m.must(err)
			delete(m.rows, key)
		}
	}
}

// load loads few rows, or as many as a query passes tombstones.
func (m *emptyModel) load() {
	n := 1 + m.r.IntN(3)
	if m.r.IntN(2) == 0 {
		n = emptyPartitions * emptyRows
	}
	_, err := m.db.Load(m.t.Context(), emptyTable, func(yield func(edm.Entity, error) bool) {
		for range n {
			if !yield(m.entity(m.key()), nil) {
				return
			}
		}
	}, LoadOptions{})
	m.must(err)
}

func (m *emptyModel) hold() {
	s, err := m.db.Snapshot()
	m.must(err)
	m.held = append(m.held, emptySnapshot{s, maps.Clone(m.rows)})
	if len(m.held) > 4 {
		m.must(m.held[0].s.Close())
		m.held = m.held[1:]
	}
}

// query compares a random query, most of them of the start or end of a range, with the model.
func (m *emptyModel) query(query func(store.Query) store.Cursor, rows map[edm.Key]int64) {
	m.t.Helper()
	partition := string(rune('a' + m.r.IntN(emptyPartitions)))
	least := int64(m.r.IntN(int(m.next) + 2))
	texts := []string{
		"", "", "PartitionKey eq 'P'", "PartitionKey eq 'P' and N ge X", "N ge X", "N lt X", "PartitionKey ge 'P'",
		"PartitionKey eq 'P' and RowKey lt '250'", "PartitionKey eq 'a' and RowKey ge '050' or PartitionKey eq 'c'",
	}
	text := strings.NewReplacer("'P'", "'"+partition+"'", "X", fmt.Sprint(least)).Replace(texts[m.r.IntN(len(texts))])
	q := store.Query{Limit: []int{0, 1, 3, 100}[m.r.IntN(4)], Reverse: m.r.IntN(2) == 0}
	if text != "" {
		q.Filter = filter.MustParse(text)
	}
	if m.r.IntN(4) == 0 {
		key := m.key()
		q.From = &key
	}

	var want []edm.Key
	for key, n := range rows {
		e := edm.Entity{Key: key, Properties: edm.Properties{{Name: "N", Value: edm.Int64(n)}}}
		beyond := q.From != nil && (key.Compare(*q.From) < 0) != q.Reverse && key != *q.From
		if !beyond && (q.Filter == nil || q.Filter.Match(e.View())) {
			want = append(want, key)
		}
	}
	slices.SortFunc(want, edm.Key.Compare)
	if q.Reverse {
		slices.Reverse(want)
	}
	if q.Limit > 0 && len(want) > q.Limit {
		want = want[:q.Limit]
	}

	now := m.db.newSnapshot()
	if !now.Empty().Empty() {
		m.skips++
	}
	now.release()
	if q.Limit == 0 {
		q.Budget = []int{0, 1, 30, 300}[m.r.IntN(4)]
	}
	var got []edm.Key
	for page := q; ; {
		c := query(page)
		for c.Next() {
			key := c.Row().Key()
			if v, _ := c.Row().Lookup("N"); !v.Equal(edm.Int64(rows[key])) {
				m.t.Fatalf("%+v, filter %q: %v has %v, want %d", page, text, key, v, rows[key])
			}
			got = append(got, edm.Key{Partition: strings.Clone(key.Partition), Row: strings.Clone(key.Row)})
		}
		m.must(c.Err())
		next := c.Resume()
		m.must(c.Close())
		if next == nil || q.Limit > 0 {
			break
		}
		if page.From != nil && (next.Compare(*page.From) > 0) == q.Reverse {
			m.t.Fatalf("%+v, filter %q, from %v: the next page is from %v", page, text, page.From, next)
		}
		page.From = next
	}
	if !slices.Equal(got, want) {
		m.t.Fatalf("%+v, filter %q, from %v:\ngot  %v\nwant %v", q, text, q.From, got, want)
	}
}

// TestEmptyRangesBesideWriters has goroutines that put and delete rows of their own in a partition whose rows are
// deleted, and query it. Each must see its row from the return of the put to the delete.
func TestEmptyRangesBesideWriters(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		t.Run(fmt.Sprintf("noSync=%t", noSync), func(t *testing.T) { testEmptyRangesBesideWriters(t, noSync) })
	}
}

func testEmptyRangesBesideWriters(t *testing.T, noSync bool) {
	ctx := t.Context()
	db, err := Open("db", Options{FS: vfs.NewMem(), NoSync: noSync})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.CreateTable(ctx, emptyTable); err != nil {
		t.Fatal(err)
	}
	const rows, workers, cycles = 1000, 4, 300
	key := func(i int) edm.Key { return edm.Key{Partition: "q", Row: fmt.Sprintf("%06d", i)} }
	for _, op := range []func(i int) store.Op{
		func(i int) store.Op { return store.Insert(edm.Entity{Key: key(i)}) },
		func(i int) store.Op { return store.Delete(key(i), store.Any) },
	} {
		for i := range rows {
			if _, err := db.Apply(ctx, emptyTable, op(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var skips atomic.Int64
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 0))
			for range cycles {
				own := key(workers*r.IntN(rows/workers) + w)
				if err := putAndTake(ctx, db, own, &skips); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	t.Logf("%d queries began behind an empty range", skips.Load())
}

// putAndTake puts a row, finds it or one before it from the start of the table, finds it as the last one up to its key,
// and deletes it.
func putAndTake(ctx context.Context, db *DB, own edm.Key, skips *atomic.Int64) error {
	if _, err := db.Apply(ctx, emptyTable, store.InsertOrReplace(edm.Entity{Key: own})); err != nil {
		return err
	}
	if s := db.newSnapshot(); s != nil {
		if !s.Empty().Empty() {
			skips.Add(1)
		}
		s.release()
	}
	for _, q := range []store.Query{{Limit: 1}, {Limit: 1, Reverse: true, From: &own}} {
		found := false
		for e, err := range db.Entities(ctx, emptyTable, q) {
			if err != nil {
				return err
			}
			found = e.Key == own || !q.Reverse && e.Key.Compare(own) < 0
		}
		if !found {
			return fmt.Errorf("%+v does not find %v", q, own)
		}
	}
	_, err := db.Apply(ctx, emptyTable, store.Delete(own, store.Any))
	return err
}
