package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// other is a session that holds locks in a transaction of its own.
type other struct {
	t *testing.T
	c *pgconn.PgConn
}

func newOther(t *testing.T, url string) *other {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return &other{t, c}
}

func (o *other) exec(sql string) {
	o.t.Helper()
	if _, err := o.c.Exec(o.t.Context(), sql).ReadAll(); err != nil {
		o.t.Fatal(sql, err)
	}
}

// commitWhenWaiting calls f, and commits the transaction of o when f waits for it.
func (o *other) commitWhenWaiting(f func()) {
	o.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	o.awaitWaiting(1)
	o.exec("COMMIT")
	<-done
}

// TestWaitingCalls compares what a call answers that waited for a transaction with the
// states before and after it. PostgreSQL shows such a call the locked rows as they are
// after the transaction, and absent rows as of before.
func TestWaitingCalls(t *testing.T) {
	t.Parallel()
	const (
		begin    = "BEGIN ISOLATION LEVEL READ COMMITTED;"
		deleteA  = `DELETE FROM tr_entities WHERE r = 'a';`
		insertB  = `INSERT INTO tr_entities SELECT id, 'p', 'b', 1, '\x000000' FROM tr_tables;`
		insertA  = `INSERT INTO tr_entities SELECT id, 'p', 'a', 1, '\x000000' FROM tr_tables;`
		touchA   = `UPDATE tr_entities SET ts = ts + 1 WHERE r = 'a';`
		again    = `WITH d AS (DELETE FROM tr_tables RETURNING *) INSERT INTO tr_dead SELECT id, 1, 1 FROM d;`
		recreate = `INSERT INTO tr_tables (account, folded, name, created, meta, long) VALUES ('acme', 'people', 'People', 1, '', false);`
		oldTS    = edm.ETag(`W/"datetime'2001-01-01T00%3A00%3A00Z'"`)
		oldTicks = 126227808000000000
		setTicks = `UPDATE tr_entities SET ts = %d WHERE r = 'a'`
	)
	a, b := one("a", 7), one("b", 7)
	for _, c := range []struct {
		name  string
		other string
		ops   []store.Op
		want  error
	}{
		{"batch: insert what goes, delete what comes", deleteA + insertB, []store.Op{store.Insert(a), store.Delete(b.Key, store.Any)}, nil},
		{"batch: overwrite what is inserted again", deleteA + insertA, []store.Op{store.Replace(a, store.Any), store.Insert(b)}, nil},
		{"batch: merge what is inserted again", deleteA + insertA, []store.Op{store.InsertOrMerge(a), store.Insert(b)}, nil},
		{"batch: overwrite what goes", deleteA, []store.Op{store.Replace(a, store.Any), store.Insert(b)}, store.ErrEntityNotFound},
		{"batch: insert what comes", touchA + insertB, []store.Op{store.Merge(a, store.Any), store.Insert(b)}, store.ErrEntityExists},
		{"batch: an ETag that goes", touchA, []store.Op{store.Replace(a, oldTS), store.Insert(b)}, store.ErrPrecondition},
		{"replace what is inserted again", deleteA + insertA, []store.Op{store.Replace(a, store.Any)}, nil},
		{"delete what is inserted again", deleteA + insertA, []store.Op{store.Delete(a.Key, store.Any)}, nil},
		{"replace an ETag that goes", touchA, []store.Op{store.Replace(a, oldTS)}, store.ErrPrecondition},
		{"replace what goes", deleteA, []store.Op{store.Replace(a, store.Any)}, store.ErrEntityNotFound},
		{"insert what goes", deleteA, []store.Op{store.Insert(a)}, nil},
		{"upsert what goes", deleteA, []store.Op{store.InsertOrReplace(a)}, nil},
		{"upserts of what goes", deleteA, []store.Op{store.InsertOrReplace(a), store.InsertOrReplace(b)}, nil},
		{"insert what comes", insertB, []store.Op{store.Insert(b)}, store.ErrEntityExists},
		{"inserts of what comes", insertB, []store.Op{store.Insert(b), store.Insert(one("c", 7))}, store.ErrEntityExists},
		{"batch in a table that goes", touchA + again, []store.Op{store.Merge(a, store.Any), store.Insert(b)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := pgtest.Shared(t).NewDatabase(t)
			s := openURL(t, url, &Options{AllowAsync: true})
			s.makeTable(t)
			s.apply(t, store.Insert(a))
			s.run(t, fmt.Sprintf(setTicks, oldTicks))
			o := newOther(t, url)
			o.exec(begin + c.other)
			var err error
			o.commitWhenWaiting(func() { _, err = s.Apply(t.Context(), people, c.ops...) })
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	t.Run("a table that is created again", func(t *testing.T) {
		url := pgtest.Shared(t).NewDatabase(t)
		s := openURL(t, url, &Options{AllowAsync: true})
		s.makeTable(t)
		s.apply(t, store.Insert(a))
		o := newOther(t, url)
		o.exec(begin + touchA + again + recreate)
		var err error
		o.commitWhenWaiting(func() { _, err = s.Apply(t.Context(), people, store.Merge(a, store.Any), store.Insert(b)) })
		if err != nil && !errors.Is(err, store.ErrEntityNotFound) {
			t.Errorf("Apply: %v", err)
		}
		if s.holds(t, "a") || s.holds(t, "b") {
			t.Error("the new table has an entity of the old one")
		}
	})
}

// TestContention checks that a batch that always loses a race is refused in the end.
func TestContention(t *testing.T) {
	t.Parallel()
	s := openOne(t)
	s.makeTable(t)
	s.run(t, `CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE unique_violation; END';
		CREATE TRIGGER lose BEFORE INSERT ON tr_entities FOR EACH ROW EXECUTE FUNCTION lose()`)
	before := s.db.Stats().Retries
	_, err := s.Apply(t.Context(), people, store.Insert(one("a", 1)), store.Insert(one("b", 1)))
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Apply: %v, want %v", err, store.ErrUnavailable)
	}
	if n := s.db.Stats().Retries - before; n != maxTries {
		t.Errorf("%d retries, want %d", n, maxTries)
	}
}

// TestRebuildUnderWrites writes to a few keys during rebuilds. While there are two indexes,
// PostgreSQL can report the loser of a race as a violation of the other one.
func TestRebuildUnderWrites(t *testing.T) {
	t.Parallel()
	b := openDatabase(t)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	for i := range 8 {
		group.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				e := one(strconv.Itoa(n%3), int32(n))
				ops := []store.Op{store.InsertOrReplace(e), store.InsertOrMerge(e), store.Insert(e), store.Delete(e.Key, store.Any)}
				_, err := b.s.Apply(t.Context(), people, ops[n/3%len(ops)])
				if err != nil && !errors.Is(err, store.ErrEntityExists) && !errors.Is(err, store.ErrEntityNotFound) {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 20 {
		pgtest.Exec(t, b.url, "REINDEX INDEX CONCURRENTLY tr_entities_pkey")
	}
}
