package reindex_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/store/postgres/internal/reindex"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// database is a new database with the schema.
type database struct {
	t       *testing.T
	url     string
	figures reindex.Figures
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	b := &database{t: t, url: pgtest.Shared(t).NewDatabase(t)}
	b.must(postgres.Init(t.Context(), b.url, &postgres.Options{AllowAsync: true}))
	return b
}

func (b *database) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// rebuilder returns a Rebuilder for the user of a URL.
func (b *database) rebuilder(url string, log *slog.Logger) *reindex.Rebuilder {
	b.t.Helper()
	d, err := wire.NewDialer(url, true, time.Now)
	b.must(err)
	r := &reindex.Rebuilder{
		Read: func(ctx context.Context, f func(c *wire.Conn) error) error {
			c, err := d.Connect(ctx)
			if err != nil {
				return err
			}
			defer c.Close()
			return f(c)
		},
		Connect: d.Connect, Check: func(*wire.Conn) error { return nil }, Now: time.Now, Log: log, Figures: &b.figures,
	}
	b.t.Cleanup(r.Release)
	return r
}

// server returns a Rebuilder as another server has it.
func (b *database) server() *reindex.Rebuilder {
	b.t.Helper()
	return b.rebuilder(b.url, slog.New(slog.DiscardHandler))
}

// bloat inserts 60,000 rows in no order, and removes nine of ten. PostgreSQL adds the counts of a
// session to its statistics when it ends, so VACUUM has another one.
func (b *database) bloat() {
	b.t.Helper()
	pgtest.Exec(b.t, b.url, "ALTER TABLE tr_entities SET (autovacuum_enabled = off)",
		"INSERT INTO tr_entities SELECT -1, 'p', sha224(n::text::bytea), n, '' FROM generate_series(1, 60000) AS n ON CONFLICT DO NOTHING",
		"DELETE FROM tr_entities WHERE tid = -1 AND ts % 10 > 0")
	pgtest.Exec(b.t, b.url, "VACUUM ANALYZE tr_entities")
}

func (b *database) rows() string {
	b.t.Helper()
	return pgtest.Exec(b.t, b.url, "SELECT count(*) FROM tr_entities")[0]
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

// await calls done until it returns true.
func (b *database) await(what string, done func() bool) {
	b.t.Helper()
	const patience = time.Minute
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			b.t.Fatalf("%s: not after %v", what, patience)
		case <-tick.C:
		}
	}
}

// session returns a connection of its own.
func (b *database) session() *wire.Conn {
	b.t.Helper()
	d, err := wire.NewDialer(b.url, true, time.Now)
	b.must(err)
	c, err := d.Connect(b.t.Context())
	b.must(err)
	b.t.Cleanup(c.Close)
	return c
}

// wantRebuilds compares the number of rebuilds after a run of r.
func (b *database) wantRebuilds(r *reindex.Rebuilder, what string, want uint64) {
	b.t.Helper()
	b.must(r.Run(b.t.Context()))
	if got := b.figures.Rebuilds.Load(); got != want {
		b.t.Errorf("%s: %d rebuilds, want %d", what, got, want)
	}
}

// TestRebuild rebuilds an index, most of which is free.
func TestRebuild(t *testing.T) {
	t.Parallel()
	b := newDatabase(t)
	first, second := b.server(), b.server()
	b.wantRebuilds(first, "a small index", 0)
	b.bloat()
	before := b.indexBytes()
	vacuum := b.session()
	_, err := vacuum.Script(t.Context(), "BEGIN; LOCK TABLE tr_entities IN SHARE UPDATE EXCLUSIVE MODE")
	b.must(err)
	b.wantRebuilds(first, "during a VACUUM", 0)
	vacuum.Close()
	b.await("the end of the session", func() bool {
		b.must(first.Run(t.Context()))
		return b.figures.Rebuilds.Load() == 1
	})
	after := b.indexBytes()
	if after > before/4 {
		t.Errorf("the index had %d bytes and has %d, with a tenth of the rows", before, after)
	}
	if fresh := b.figures.NewBytes.Load(); fresh < after*3/4 || fresh > after*5/4 {
		t.Errorf("a new index was estimated at %d bytes and has %d", fresh, after)
	}
	if got := b.rows(); got != "6000" {
		t.Errorf("there are %s entities, want 6000", got)
	}
	b.bloat()
	b.wantRebuilds(first, "within the pause", 1)
	b.wantRebuilds(second, "while another server has its pause", 1)
	first.Release()
	b.await("the end of the pause", func() bool {
		b.must(second.Run(t.Context()))
		return b.figures.Rebuilds.Load() == 2
	})
}

// TestNewIndexEstimate compares the estimate with a new index, for keys of two lengths.
func TestNewIndexEstimate(t *testing.T) {
	t.Parallel()
	b := newDatabase(t)
	pgtest.Exec(t, b.url, `INSERT INTO tr_entities SELECT 1, (CASE WHEN n % 10 = 0 THEN 'p' ELSE 'w00-000' END)::bytea, lpad(n::text, 8, '0')::bytea, n, ''
		FROM generate_series(1, 20000) AS n`)
	pgtest.Exec(t, b.url, "VACUUM ANALYZE tr_entities", "REINDEX INDEX tr_entities_pkey")
	b.must(b.server().Run(t.Context()))
	if got, want := b.figures.NewBytes.Load(), b.indexBytes(); got < want*9/10 || got > want*11/10 {
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
			b := newDatabase(t)
			pgtest.Exec(t, b.url, "INSERT INTO tr_entities SELECT 1, 'p', n::text::bytea, n, '' FROM generate_series(1, 20) AS n")
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
			b.await("a rebuild that waits", func() bool { return strings.Contains(b.invalid(), c.left) })
			pgtest.Exec(t, b.url, "SELECT pg_terminate_backend("+pid[0][0]+")")
			if err := <-ended; err == nil {
				t.Fatal("the rebuild was not ended")
			}
			blocker.Close()
			if got := b.invalid(); got != c.left {
				t.Fatalf("the rebuild has left %q, want %q", got, c.left)
			}
			r := b.server()
			b.await("no index is left", func() bool {
				b.must(r.Run(t.Context()))
				return b.invalid() == ""
			})
			if rows, rebuilds := b.rows(), b.figures.Rebuilds.Load(); rows != "20" || rebuilds != 0 {
				t.Errorf("%s entities, %d rebuilds; want 20, 0", rows, rebuilds)
			}
		})
	}
}

// TestRebuildBesideAnother runs while somebody else rebuilds the indexes of a table. The new one is not valid yet, and
// is no leftover.
func TestRebuildBesideAnother(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"tr_entities", "tr_long"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			b := newDatabase(t)
			blocker, other := b.session(), b.session()
			_, err := blocker.Script(t.Context(), "BEGIN; DELETE FROM "+table+" WHERE false")
			b.must(err)
			ended := make(chan error, 1)
			go func() {
				_, err := other.Script(context.WithoutCancel(t.Context()), "REINDEX TABLE CONCURRENTLY "+table)
				ended <- err
			}()
			b.await("a rebuild that waits", func() bool { return strings.Contains(b.invalid(), "_ccnew") })
			b.must(b.server().Run(t.Context()))
			blocker.Close()
			if err := <-ended; err != nil {
				t.Errorf("the other rebuild: %v", err)
			}
		})
	}
}

// TestRebuildByAnotherUser does not own the index, and says it once.
func TestRebuildByAnotherUser(t *testing.T) {
	t.Parallel()
	b := newDatabase(t)
	b.bloat()
	const user = "tr_rebuild_test"
	pgtest.Exec(t, b.url, "DROP ROLE IF EXISTS "+user, "CREATE ROLE "+user+" LOGIN",
		"GRANT ALL ON ALL TABLES IN SCHEMA public TO "+user, "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO "+user)
	t.Cleanup(func() { pgtest.Exec(t, b.url, "DROP OWNED BY "+user, "DROP ROLE "+user) })
	u, err := url.Parse(b.url)
	b.must(err)
	u.User = url.User(user)
	var log bytes.Buffer
	r := b.rebuilder(u.String(), slog.New(slog.NewTextHandler(&log, nil)))
	pgtest.Exec(t, b.url, "DELETE FROM pg_statistic WHERE starelid = 'tr_entities'::regclass")
	b.must(r.Run(t.Context()))
	if log.Len() > 0 {
		t.Errorf("without statistics, the log has %s", &log)
	}
	pgtest.Exec(t, b.url, "ANALYZE tr_entities")
	for range 2 {
		b.must(r.Run(t.Context()))
	}
	if n := strings.Count(log.String(), "REINDEX INDEX CONCURRENTLY"); n != 1 {
		t.Errorf("the log has the command %d times, want once:\n%s", n, &log)
	}
	locks := pgtest.Exec(t, b.url, `SELECT 1 FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
		WHERE l.locktype = 'advisory' AND d.datname = current_database()`)
	if len(locks) > 0 {
		t.Error("the lock of a rebuild is taken")
	}
}
