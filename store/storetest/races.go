package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

var raceTests = []subtest{
	{"RaceInsert", testRaceInsert},
	{"RaceETag", testRaceETag},
	{"RaceCounter", testRaceCounter},
	{"RaceTimestamps", testRaceTimestamps},
	{"RaceTables", testRaceTables},
	{"RaceWholeBatches", testRaceWholeBatches},
	{"RaceSnapshot", testRaceSnapshot},
}

const racers = 8

// race runs n calls of f concurrently and waits for all.
func (t *tester) race(n int, f func(i int)) {
	t.Helper()
	t.within("a race", func() {
		var all sync.WaitGroup
		start := make(chan struct{})
		for i := range n {
			all.Go(func() {
				<-start
				f(i)
			})
		}
		close(start)
		all.Wait()
	})
}

func testRaceInsert(t *tester) {
	s := t.openPeople()
	for round := range 20 {
		row := fmt.Sprint(round)
		var won atomic.Int32
		var winner atomic.Int32
		t.race(racers, func(i int) {
			_, err := s.Apply(t.ctx, people, store.Insert(number("p", row, i)))
			if err == nil {
				won.Add(1)
				winner.Store(int32(i))
				return
			}
			t.wantFailure("Insert", err, failure{Executed: true, Err: store.ErrEntityExists})
		})
		e, err := s.Get(t.ctx, people, key("p", row))
		if won.Load() != 1 || err != nil || numberOf(e) != winner.Load() {
			t.Errorf("round %d: %d inserts of one key won, the last by %d; stored: %s, %v", round, won.Load(), winner.Load(), show(e), err)
		}
	}
}

func testRaceETag(t *tester) {
	s := t.openPeople()
	e := t.insert(s, number("p", "r", -1))
	for round := range 20 {
		var won atomic.Int32
		var results [racers]store.Result
		t.race(racers, func(i int) {
			op := store.Replace(number("p", "r", i), e.Timestamp.ETag())
			if i%2 == 0 {
				op.Kind = store.OpMerge
			}
			r, err := s.Apply(t.ctx, people, op)
			if err == nil {
				won.Add(1)
				results[i] = r[0]
				return
			}
			t.wantFailure("conditional write", err, failure{Executed: true, Err: store.ErrPrecondition})
		})
		if won.Load() != 1 {
			t.Fatalf("round %d: %d writes with one ETag won", round, won.Load())
		}
		for i, r := range results {
			if r.ETag != "" {
				e = number("p", "r", i)
				e.Timestamp = r.Timestamp
			}
		}
		t.wantEntity("after the race", s, e)
	}
}

// testRaceCounter increments a counter by reads and conditional writes, in two
// entities of one batch that must always be equal.
func testRaceCounter(t *tester) {
	s := t.openPeople()
	t.fill(s, []edm.Entity{number("p", "1", 0), number("p", "2", 0)})
	const each = 20
	t.race(racers, func(int) {
		for done := 0; done < each; {
			rows := t.drain(s.Query(t.ctx, people, store.Query{})).Rows
			if len(rows) != 2 || t.backend.Snapshot && numberOf(rows[0]) != numberOf(rows[1]) {
				t.Errorf("a query returns a part of a batch: %s", show(rows))
				return
			}
			n := int(numberOf(rows[0])) + 1
			_, err := s.Apply(t.ctx, people, store.Replace(number("p", "1", n), rows[0].Timestamp.ETag()),
				store.Merge(number("p", "2", n), rows[1].Timestamp.ETag()))
			switch {
			case err == nil && numberOf(rows[0]) != numberOf(rows[1]):
				t.Errorf("a batch succeeds on the ETags of different batches: %s", show(rows))
				return
			case err == nil:
				done++
			case !errors.Is(err, store.ErrPrecondition):
				t.Errorf("Apply: %v", err)
				return
			}
		}
	})
	for _, e := range t.page(s, store.Query{}).Rows {
		if n := numberOf(e); n != racers*each {
			t.Errorf("%q counts %d, want %d", e.Key, n, racers*each)
		}
	}
}

// testRaceTimestamps inserts, overwrites and deletes one entity concurrently. No two
// contents of a key have the same Timestamp.
func testRaceTimestamps(t *tester) {
	s := t.openPeople()
	const rounds = 30
	var all [racers][]edm.Ticks
	t.race(racers, func(i int) {
		e := number("p", "r", i)
		for n := range rounds {
			op := []store.Op{store.Insert(e), store.Delete(e.Key, store.Any), store.InsertOrReplace(e), store.InsertOrMerge(e)}[(i+n)%4]
			r, err := s.Apply(t.ctx, people, op)
			switch {
			case err == nil && op.Kind != store.OpDelete:
				all[i] = append(all[i], r[0].Timestamp)
			case err != nil && !errors.Is(err, store.ErrEntityExists) && !errors.Is(err, store.ErrEntityNotFound):
				t.Errorf("Apply: %v", err)
				return
			}
		}
	})
	by := map[edm.Ticks]int{}
	for i, list := range all {
		for n, ts := range list {
			if n > 0 && ts <= list[n-1] {
				t.Errorf("writer %d: Timestamp %d after %d", i, ts, list[n-1])
			}
			if other, ok := by[ts]; ok {
				t.Errorf("writers %d and %d both wrote the Timestamp %d", other, i, ts)
			}
			by[ts] = i
		}
	}
}

func testRaceTables(t *tester) {
	s := t.open()
	for round := range 10 {
		var created, deleted atomic.Int32
		t.race(racers, func(i int) {
			err := s.CreateTable(t.ctx, []string{"Table", "tABLE"}[i%2])
			if err == nil {
				created.Add(1)
			} else {
				t.wantErr("CreateTable", err, store.ErrTableExists)
			}
		})
		t.race(racers, func(i int) {
			if i%2 == 0 {
				// A write during the deletion may be lost, but is never in the next table.
				_, err := s.Apply(t.ctx, "table", store.InsertOrReplace(number("p", fmt.Sprint(i), round)))
				if err != nil {
					t.wantFailure("Apply", err, failure{Err: store.ErrTableNotFound})
				}
				return
			}
			err := s.DeleteTable(t.ctx, "TABLE")
			if err == nil {
				deleted.Add(1)
			} else {
				t.wantErr("DeleteTable", err, store.ErrTableNotFound)
			}
		})
		if created.Load() != 1 || deleted.Load() != 1 {
			t.Fatalf("round %d: created %d times, deleted %d times", round, created.Load(), deleted.Load())
		}
	}
	t.noErr("CreateTable", s.CreateTable(t.ctx, "table"))
	if p := t.drain(s.Query(t.ctx, "table", store.Query{})); len(p.Rows) != 0 || p.Err != nil {
		t.Errorf("a new table has %s, %v", show(p.Rows), p.Err)
	}
}

// testRaceWholeBatches has each writer set all entities of its partition to one
// number repeatedly, while readers check that no number is older than those that were
// written or read before, and in a snapshot that a partition has one number.
func testRaceWholeBatches(t *tester) {
	s := t.openPeople()
	const rows, rounds = 20, 5
	reads := 100
	if testing.Short() {
		reads = 30
	}
	batch := func(w, n int) (ops []store.Op) {
		for i := range rows {
			ops = append(ops, store.InsertOrReplace(number(fmt.Sprint(w), fmt.Sprintf("%02d", i), n)))
		}
		return ops
	}
	var last [racers]atomic.Int32
	var reading atomic.Int32
	reading.Store(racers)
	for w := range racers {
		t.apply(s, batch(w, 0)...)
	}
	t.race(2*racers, func(i int) {
		if i < racers {
			for n := int32(1); n <= rounds || reading.Load() > 0; n++ {
				if _, err := s.Apply(t.ctx, people, batch(i, int(n))...); err != nil {
					t.Errorf("Apply: %v", err)
					return
				}
				last[i].Store(n)
			}
			return
		}
		defer reading.Add(-1)
		from, seen := key(fmt.Sprint(i%racers), ""), int32(0)
		for range reads {
			seen = max(seen, last[i%racers].Load())
			list := t.drain(s.Query(t.ctx, people, store.Query{From: &from, Limit: rows})).Rows
			newest := seen
			for _, e := range list {
				n := numberOf(e)
				if len(list) != rows || t.backend.Snapshot && n != numberOf(list[0]) || n < seen {
					t.Errorf("a reader that had read round %d, or read after it was written, reads %s", seen, show(list))
					return
				}
				newest = max(newest, n)
			}
			seen = newest
		}
	})
	for w := range racers {
		from := key(fmt.Sprint(w), "")
		if list := t.page(s, store.Query{From: &from, Limit: 1}).Rows; len(list) != 1 || numberOf(list[0]) != last[w].Load() {
			t.Errorf("partition %d ends with %s, want %d", w, show(list), last[w].Load())
		}
	}
}

// testRaceSnapshot has one writer set partitions to a number, one after the other in
// the order of their keys, while readers check that each query is a snapshot.
func testRaceSnapshot(t *tester) {
	t.needSnapshot()
	s := t.openPeople()
	const rounds = 40
	partitions := []string{"a", "b", "c", "d"}
	set := func(n int) {
		for _, p := range partitions {
			if _, err := s.Apply(t.ctx, people, store.InsertOrReplace(number(p, "r", n))); err != nil {
				t.Errorf("Apply: %v", err)
			}
		}
	}
	set(0)
	var done atomic.Bool
	t.race(5, func(i int) {
		if i == 0 {
			defer done.Store(true)
			for n := range rounds {
				set(n + 1)
			}
			return
		}
		for !done.Load() {
			list := t.drain(s.Query(t.ctx, people, store.Query{Reverse: i%2 == 0})).Rows
			if i%2 == 0 {
				slices.Reverse(list)
			}
			if len(list) != len(partitions) {
				t.Errorf("a query returns %s, want one entity of each partition", show(list))
				return
			}
			first, last := numberOf(list[0]), int32(0)
			for i, e := range list {
				n := numberOf(e)
				if i > 0 && n > last || n < first-1 {
					t.Errorf("a query returns entities that never existed together: %s", show(list))
					return
				}
				last = n
			}
		}
	})
}
