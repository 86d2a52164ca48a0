package postgres

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// awaitWaiting returns when n sessions of the database wait for a lock.
func (o *other) awaitWaiting(n int) {
	o.t.Helper()
	await(o.t, fmt.Sprintf("%d calls wait for a lock", n), func() bool {
		o.exec("SELECT pg_stat_clear_snapshot()") // else a transaction sees no session that began after its first look
		return o.value("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted AND pid IN "+
			"(SELECT pid FROM pg_stat_activity WHERE datname = current_database())") == int64(n)
	})
}

// value returns the number that a statement returns.
func (o *other) value(sql string) int64 {
	o.t.Helper()
	rows, err := o.c.Exec(o.t.Context(), sql).ReadAll()
	if err != nil {
		o.t.Fatal(sql, err)
	}
	n, err := strconv.ParseInt(string(rows[0].Rows[0][0]), 10, 64)
	if err != nil {
		o.t.Fatal(sql, err)
	}
	return n
}

// start calls Apply in the background.
func (s *Store) start(t *testing.T, ops ...store.Op) (results func() []store.Result) {
	t.Helper()
	done := make(chan struct{})
	var got []store.Result
	var err error
	go func() {
		defer close(done)
		got, err = s.Apply(context.WithoutCancel(t.Context()), people, ops...)
	}()
	return func() []store.Result {
		t.Helper()
		if <-done; err != nil {
			t.Fatal(err)
		}
		return got
	}
}

// TestTimestampAfterWait lets a write wait for a lock, while another key of it, or the key
// itself, is written and deleted. The Timestamp of the write must be above that of the deleted entity.
func TestTimestampAfterWait(t *testing.T) {
	t.Parallel()
	long := func(r string) edm.Entity {
		e := longPartition("p")
		e.Key.Row = r
		return e
	}
	inserts := []store.Op{store.Insert(one("a", 1)), store.Insert(one("b", 1))}
	upserts := []store.Op{store.InsertOrReplace(one("a", 1)), store.InsertOrReplace(one("b", 1))}
	merges := []store.Op{store.InsertOrMerge(one("a", 1)), store.InsertOrMerge(one("b", 1))}
	longs := []store.Op{store.Insert(long("a")), store.Insert(long("b"))}
	for _, c := range []struct {
		name string
		ops  []store.Op // on two keys, the first of which is locked
		base bool       // the base is raised meanwhile
	}{
		{"inserts", inserts, false},
		{"inserts, another base", inserts, true},
		{"upserts", upserts, false},
		{"upserts, another base", upserts, true},
		{"merges", merges, false},
		{"merges, another base", merges, true},
		{"long keys", longs, false},
		{"long keys, another base", longs, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := pgtest.Shared(t).NewDatabase(t)
			s := openURL(t, url, &Options{AllowAsync: true})
			s.makeTable(t)
			first, second := c.ops[0].Entity, c.ops[1].Entity
			if len(first.Key.Partition) > 1 { // the order of its rows is that of hashes
				if s.newBatch(people, c.ops).long[0] == 1 {
					first, second = second, first
				}
			}
			s.apply(t, store.Insert(first))
			o := newOther(t, url)
			table := "tr_entities"
			if len(first.Key.Partition) > 1 {
				table = "tr_long"
			}
			// The key is free again after this transaction.
			o.exec(fmt.Sprintf(`CREATE TABLE kept AS SELECT * FROM %s; DELETE FROM %[1]s`, table))
			o.exec(fmt.Sprintf(`BEGIN; INSERT INTO %s SELECT * FROM kept`, table))
			results := s.start(t, c.ops...)
			o.awaitWaiting(1)
			if c.base {
				s.run(t, "UPDATE tr_clock SET base = base + 5000000")
			}
			deleted := s.apply(t, store.Insert(second))[0].Timestamp
			s.apply(t, store.Delete(second.Key, store.Any))
			o.exec("ROLLBACK")
			results()
			got, err := s.Get(t.Context(), people, second.Key)
			if err != nil {
				t.Fatal(err)
			}
			if got.Timestamp <= deleted {
				t.Errorf("the Timestamp is %d after %d of a deleted entity", got.Timestamp, deleted)
			}
		})
	}
	for _, c := range []struct {
		name string
		ops  []store.Op
	}{
		{"upsert", []store.Op{store.InsertOrReplace(one("a", 1))}},
		{"upserts", upserts},
	} {
		t.Run(c.name+" after an update and a deletion", func(t *testing.T) {
			url := pgtest.Shared(t).NewDatabase(t)
			s := openURL(t, url, &Options{AllowAsync: true})
			s.makeTable(t)
			s.apply(t, store.Insert(one("a", 1)))
			o := newOther(t, url)
			o.exec("BEGIN; SELECT FROM tr_entities FOR UPDATE")
			deletion := s.start(t, store.Delete(one("a", 1).Key, store.Any))
			o.awaitWaiting(1)
			results := s.start(t, c.ops...)
			o.awaitWaiting(2)
			deleted := edm.Ticks(o.value("UPDATE tr_entities SET ts = (SELECT base FROM tr_clock) + nextval('tr_tick') RETURNING ts"))
			o.exec("COMMIT")
			deletion()
			if got := results()[0].Timestamp; got <= deleted {
				t.Errorf("the Timestamp is %d after %d of a deleted entity", got, deleted)
			}
		})
	}
	t.Run("insert after a deletion", func(t *testing.T) {
		url := pgtest.Shared(t).NewDatabase(t)
		s := openURL(t, url, &Options{AllowAsync: true})
		s.makeTable(t)
		s.apply(t, store.Insert(one("a", 1)))
		o := newOther(t, url)
		o.exec("BEGIN; CREATE TABLE kept AS SELECT * FROM tr_entities; DELETE FROM tr_entities")
		results := s.start(t, store.Insert(one("a", 2)))
		o.awaitWaiting(1)
		o.exec("INSERT INTO tr_entities SELECT tid, p, r, (SELECT base FROM tr_clock) + nextval('tr_tick'), v FROM kept")
		deleted := edm.Ticks(o.value("DELETE FROM tr_entities RETURNING ts"))
		o.exec("COMMIT")
		if got := results()[0].Timestamp; got <= deleted {
			t.Errorf("the Timestamp is %d after %d of a deleted entity", got, deleted)
		}
	})
}
