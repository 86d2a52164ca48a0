package postgres

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// bloat inserts 60,000 rows in no order, and removes nine of ten. PostgreSQL adds the counts of a
// session to its statistics when it ends, so VACUUM has another one.
func (b *database) bloat() {
	b.t.Helper()
	pgtest.Exec(b.t, b.url, "ALTER TABLE tr_entities SET (autovacuum_enabled = off)",
		"INSERT INTO tr_entities SELECT -1, 'p', sha224(n::text::bytea), n, '' FROM generate_series(1, 60000) AS n ON CONFLICT DO NOTHING",
		"DELETE FROM tr_entities WHERE tid = -1 AND ts % 10 > 0")
	pgtest.Exec(b.t, b.url, "VACUUM ANALYZE tr_entities")
}

func (b *database) indexBytes() int64 {
	b.t.Helper()
	n, err := strconv.ParseInt(pgtest.Exec(b.t, b.url, "SELECT pg_relation_size('tr_entities_pkey')")[0], 10, 64)
	b.must(err)
	return n
}

// invalid returns the names of the indexes that are not valid.
func (b *database) invalid() string {
	b.t.Helper()
	return strings.Join(pgtest.Exec(b.t, b.url, "SELECT relname FROM pg_index JOIN pg_class ON oid = indexrelid WHERE NOT indisvalid"), " ")
}

// session returns a connection of its own.
func (b *database) session() *wire.Conn {
	b.t.Helper()
	c, err := b.d.dialer.Connect(b.t.Context())
	b.must(err)
	b.t.Cleanup(c.Close)
	return c
}

func (b *database) rebuilder() *rebuilder {
	r := &rebuilder{d: b.d}
	b.t.Cleanup(r.release)
	return r
}

// wantRebuilds compares the number of rebuilds after a run of r.
func (b *database) wantRebuilds(r *rebuilder, what string, want uint64) {
	b.t.Helper()
	b.must(r.run(b.t.Context()))
	if got := b.d.Stats().Rebuilds; got != want {
		b.t.Errorf("%s: %d rebuilds, want %d", what, got, want)
	}
}

// TestRebuild rebuilds an index, most of which is free.
func TestRebuild(t *testing.T) {
	t.Parallel()
	b := openDatabase(t)
	b.fill(20)
	first, second := b.rebuilder(), b.rebuilder()
	b.wantRebuilds(first, "a small index", 0)
	b.bloat()
	before := b.indexBytes()
	vacuum := b.session()
	_, err := vacuum.Script(t.Context(), "BEGIN; LOCK TABLE tr_entities IN SHARE UPDATE EXCLUSIVE MODE")
	b.must(err)
	b.wantRebuilds(first, "during a VACUUM", 0)
	vacuum.Close()
	await(t, "the end of the session", func() bool {
		b.must(first.run(t.Context()))
		return b.d.Stats().Rebuilds == 1
	})
	after := b.indexBytes()
	if after > before/4 {
		t.Errorf("the index had %d bytes and has %d, with a tenth of the rows", before, after)
	}
	if fresh := b.d.Stats().NewIndexBytes; fresh < after*3/4 || fresh > after*5/4 {
		t.Errorf("a new index was estimated at %d bytes and has %d", fresh, after)
	}
	if !b.s.holds(t, "1") {
		t.Error("an entity is missing")
	}
	b.bloat()
	b.wantRebuilds(first, "within the pause", 1)
	b.wantRebuilds(second, "while another server has its pause", 1)
	first.release()
	await(t, "the end of the pause", func() bool {
		b.must(second.run(t.Context()))
		return b.d.Stats().Rebuilds == 2
	})
}

// TestNewIndexEstimate compares the estimate with a new index, for keys of two lengths.
func TestNewIndexEstimate(t *testing.T) {
	t.Parallel()
	b := openDatabase(t)
	pgtest.Exec(t, b.url, `INSERT INTO tr_entities SELECT 1, (CASE WHEN n % 10 = 0 THEN 'p' ELSE 'w00-000' END)::bytea, lpad(n::text, 8, '0')::bytea, n, ''
		FROM generate_series(1, 20000) AS n`)
	pgtest.Exec(t, b.url, "VACUUM ANALYZE tr_entities", "REINDEX INDEX tr_entities_pkey")
	b.must(b.rebuilder().run(t.Context()))
	if got, want := b.d.Stats().NewIndexBytes, b.indexBytes(); got < want*9/10 || got > want*11/10 {
		t.Errorf("a new index was estimated at %d bytes and has %d", got, want)
	}
}

// TestRebuildLeftovers ends the session of a rebuild, which leaves the new index that it has
// not filled, or the old one that it has replaced.
func TestRebuildLeftovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, blocker, left string }{
		{"new", "BEGIN; DELETE FROM tr_entities WHERE false", "tr_entities_pkey_ccnew"},
		{"old", "BEGIN; SELECT 1 FROM tr_entities LIMIT 0", "tr_entities_pkey_ccold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := openDatabase(t)
			b.fill(20)
			blocker, killed := b.session(), b.session()
			_, err := blocker.Script(t.Context(), c.blocker)
			b.must(err)
			pid, err := killed.Script(t.Context(), "SELECT pg_backend_pid()")
			b.must(err)
			ended := make(chan error, 1)
			go func() {
				_, err := killed.Script(context.WithoutCancel(t.Context()), "REINDEX INDEX CONCURRENTLY tr_entities_pkey")
				ended <- err
			}()
			await(t, "a rebuild that waits", func() bool { return strings.Contains(b.invalid(), c.left) })
			pgtest.Exec(t, b.url, "SELECT pg_terminate_backend("+pid[0][0]+")")
			if err := <-ended; err == nil {
				t.Fatal("the rebuild was not ended")
			}
			blocker.Close()
			if got := b.invalid(); got != c.left {
				t.Fatalf("the rebuild has left %q, want %q", got, c.left)
			}
			r := b.rebuilder()
			await(t, "no index is left", func() bool {
				b.must(r.run(t.Context()))
				return b.invalid() == ""
			})
			if !b.s.holds(t, "1") || b.d.Stats().Rebuilds != 0 {
				t.Error("an entity is missing, or the index was rebuilt")
			}
		})
	}
}

// TestRebuildUnderWrites writes to a few keys during rebuilds. While there are two indexes,
// PostgreSQL can report the loser of a race as a violation of the other one.
func TestRebuildUnderWrites(t *testing.T) {
	t.Parallel()
	b := openDatabase(t)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
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
	c := b.session()
	for range 20 {
		_, err := c.Script(t.Context(), "REINDEX INDEX CONCURRENTLY tr_entities_pkey")
		if err != nil {
			t.Error(err)
			break
		}
	}
	cancel()
	group.Wait()
}

// TestRebuildByAnotherUser does not own the index, and says it once.
func TestRebuildByAnotherUser(t *testing.T) {
	t.Parallel()
	b := openDatabase(t)
	b.bloat()
	const user = "tr_rebuild_test"
	pgtest.Exec(t, b.url, "DROP ROLE IF EXISTS "+user, "CREATE ROLE "+user+" LOGIN",
		"GRANT ALL ON ALL TABLES IN SCHEMA public TO "+user, "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO "+user)
	t.Cleanup(func() { pgtest.Exec(t, b.url, "DROP OWNED BY "+user, "DROP ROLE "+user) })
	u, err := url.Parse(b.url)
	b.must(err)
	u.User = url.User(user)
	var log bytes.Buffer
	d, err := Connect(t.Context(), u.String(), &Options{AllowAsync: true, manual: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
	b.must(err)
	t.Cleanup(func() { b.must(d.Close()) })
	r := &rebuilder{d: d}
	pgtest.Exec(t, b.url, "DELETE FROM pg_statistic WHERE starelid = 'tr_entities'::regclass")
	b.must(r.run(t.Context()))
	if log.Len() > 0 {
		t.Errorf("without statistics, the log has %s", &log)
	}
	pgtest.Exec(t, b.url, "ANALYZE tr_entities")
	for range 2 {
		b.must(r.run(t.Context()))
	}
	if n := strings.Count(log.String(), "REINDEX INDEX CONCURRENTLY"); n != 1 || r.c != nil {
		t.Errorf("the log has the command %d times, want once:\n%s", n, &log)
	}
}
