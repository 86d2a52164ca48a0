// Package reindex rebuilds the index of the entities when most of it is free space.
package reindex

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

// Interval is how often to look at the index.
const Interval = 30 * time.Second

const (
	// maxRatio is the size of an index that is rebuilt, in relation to a new one. Keys that
	// come in no order fill its pages to 70 %, which is 1.3 times a new index.
	maxRatio = 1.6
	// slackBytes is the size that does not count: a small index is of no concern.
	slackBytes = 1 << 20
	// maxBytes is the size of the largest index that is rebuilt. A rebuild needs the space
	// of the new index twice, in the tables and in the log.
	maxBytes = 8 << 30
	// leastPause and pauseShare bound the pause after a rebuild, from below and in
	// relation to its duration.
	leastPause = 5 * time.Minute
	pauseShare = 20
	// retryPause is the pause after a rebuild that failed.
	retryPause = time.Hour
)

// Rebuilder rebuilds the index of tr_entities when most of it is free space. VACUUM removes the
// entries of dead rows, but it gives back a page of the index only if no entry is left on it.
type Rebuilder struct {
	// Read calls a function with a connection to the primary, and again if the connection is lost.
	Read func(ctx context.Context, f func(c *wire.Conn) error) error
	// Connect returns a new connection.
	Connect func(ctx context.Context) (*wire.Conn, error)
	// Check returns an error unless a connection is to the primary.
	Check   func(c *wire.Conn) error
	Now     func() time.Time
	Log     *slog.Logger
	Figures *Figures

	// c holds the advisory lock, also in the pause after a rebuild, so that the pause is one
	// of all servers. It is nil if this process does not have the lock.
	c    *wire.Conn
	next time.Time // no rebuild before
	// least is the ratio that the last rebuild reached: greater than 1 if the estimate of a
	// new index is too low.
	least float64
	told  bool // that the index is not rebuilt
}

// Figures are what a Rebuilder has found and done. They may be read while it runs.
type Figures struct {
	NewBytes atomic.Int64 // of the index if it were new, estimated; 0 until it is known
	Rebuilds atomic.Uint64
}

var errNoIndex = errors.New("tr_entities has no index of its keys")

// indexState is what a Rebuilder sees.
type indexState struct {
	size, fresh int64 // of the index, and of a new one, estimated
	allowed     bool  // whether the user owns it, and a rebuild by the server is correct
	busy        bool  // a VACUUM, a rebuild, whose index is no leftover, or an old transaction that a rebuild would wait for
	leftovers   []string
}

func (s indexState) ratio() float64 {
	return float64(s.size-slackBytes) / float64(max(s.fresh, 1))
}

// lookSQL estimates the size of a new index by the mean size of its tuples: a header of 8 bytes,
// the columns, and a pointer of 4. PostgreSQL rounds a tuple up to 8 bytes, which adds 3.5 in the
// mean, and the width of each column down. Its pages are filled to 90 %. Only a lock of this mode shows
// a VACUUM or a rebuild to every user.
const lookSQL = `SELECT pg_relation_size(i.indexrelid)::bigint,
	(greatest(c.reltuples, s.n_live_tup) * (8 + 8 + w.width + 1 + 3.5 + 4) * b.size / (0.9 * (b.size - 40)))::bigint,
	pg_has_role(c.relowner, 'USAGE') AND current_setting('server_version_num')::int >= 140004,
	EXISTS (SELECT 1 FROM pg_locks AS l WHERE l.locktype = 'relation' AND l.relation IN (c.oid, 'tr_long'::regclass) AND l.mode = 'ShareUpdateExclusiveLock'
		AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))
	OR EXISTS (SELECT 1 FROM pg_stat_activity AS a WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
		AND a.xact_start < clock_timestamp() - interval '10 s')
	FROM pg_class AS c JOIN pg_index AS i ON i.indrelid = c.oid AND i.indisprimary
	JOIN pg_stat_user_tables AS s ON s.relid = c.oid,
	(SELECT current_setting('block_size')::bigint AS size) AS b,
	LATERAL (SELECT sum(avg_width) AS width FROM pg_stats AS t WHERE t.schemaname = s.schemaname AND t.tablename = s.relname
		AND t.attname IN ('p', 'r')) AS w
	WHERE c.oid = 'tr_entities'::regclass`

// leftoverSQL names the indexes that a rebuild leaves if its session or the server ends before it.
// They are of no use to a query, and cost each write as much as a valid one.
const leftoverSQL = `SELECT i.indexrelid::regclass::text FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
	WHERE i.indrelid IN ('tr_entities'::regclass, 'tr_long'::regclass) AND NOT i.indisvalid AND c.relname ~ '_cc(new|old)[0-9]*$'`

// lockKey is the advisory lock of a rebuild: the bytes of "tr_index".
const lockKey = "8390873962172933496"

// look reads the state of the index.
func look(ctx context.Context, c *wire.Conn) (s indexState, err error) {
	rows, err := c.Script(ctx, lookSQL)
	if err != nil {
		return s, err
	}
	if len(rows) != 1 || len(rows[0]) != 4 {
		return s, errNoIndex
	}
	row := rows[0]
	s.allowed, s.busy = row[2] == "t", row[3] == "t"
	if s.size, err = strconv.ParseInt(row[0], 10, 64); err != nil {
		return s, err
	}
	// There are no statistics before the first ANALYZE.
	if row[1] != "" {
		if s.fresh, err = strconv.ParseInt(row[1], 10, 64); err != nil {
			return s, err
		}
	}
	rows, err = c.Script(ctx, leftoverSQL)
	for _, row := range rows {
		s.leftovers = append(s.leftovers, row...)
	}
	return s, err
}

// bloated reports whether the index is to be rebuilt.
func (r *Rebuilder) bloated(s indexState) bool { return s.ratio() > maxRatio*max(1, r.least) }

// Run drops what a rebuild has left, and rebuilds the index if it is bloated.
func (r *Rebuilder) Run(ctx context.Context) error {
	if r.c != nil && !r.Now().Before(r.next) {
		r.Release()
	}
	var s indexState
	err := r.Read(ctx, func(c *wire.Conn) (err error) {
		s, err = look(ctx, c)
		return err
	})
	if err != nil {
		return err
	}
	r.Figures.NewBytes.Store(s.fresh)
	rebuild := r.bloated(s) && !r.Now().Before(r.next)
	if rebuild && (!s.allowed || s.size > maxBytes) {
		if s.fresh > 0 { // else there are no statistics yet
			r.tell(s)
		}
		rebuild = false
	}
	if s.busy || !s.allowed || !rebuild && len(s.leftovers) == 0 {
		return nil
	}
	if ok, err := r.lock(ctx); err != nil || !ok {
		return err
	}
	err = r.work(ctx, rebuild)
	if r.c.Broken || r.Now().After(r.next) {
		r.Release()
	}
	return err
}

// tell logs once why a bloated index is not rebuilt.
func (r *Rebuilder) tell(s indexState) {
	if r.told {
		return
	}
	r.told = true
	why := "it is large, and a rebuild needs its space twice"
	if !s.allowed {
		why = "this user does not own it, or PostgreSQL is older than 14.4, whose rebuilds can be wrong"
	}
	r.Log.Warn("the index of the entities has much free space and is not rebuilt; run: REINDEX INDEX CONCURRENTLY tr_entities_pkey",
		slog.String("reason", why), slog.Int64("bytes", s.size), slog.Int64("new", s.fresh))
}

// lock takes the advisory lock, over a connection of its own, which REINDEX keeps for long. It reports
// false if another server has the lock.
func (r *Rebuilder) lock(ctx context.Context) (bool, error) {
	if r.c != nil && !r.c.Broken && r.Check(r.c) == nil {
		return true, nil
	}
	r.Release()
	c, err := r.Connect(ctx)
	if err != nil {
		return false, err
	}
	r.c = c
	rows, err := c.Script(ctx, "SELECT pg_try_advisory_lock("+lockKey+")")
	if err == nil && len(rows) == 1 && slices.Equal(rows[0], []string{"t"}) {
		// A rebuild waits for the transactions that use the table. Its wait stops no
		// write, but each VACUUM.
		_, err = c.Script(ctx, "SET lock_timeout = '1min'; SET max_parallel_maintenance_workers = 0")
		if err == nil {
			return true, nil
		}
	}
	r.Release()
	return false, err
}

// Release gives the advisory lock back.
func (r *Rebuilder) Release() {
	if r.c != nil {
		r.c.Close()
		r.c = nil
	}
}

// work does the work over r.c.
func (r *Rebuilder) work(ctx context.Context, rebuild bool) error {
	s, err := look(ctx, r.c) // another server may have done it
	if err != nil || s.busy {
		return err
	}
	for _, index := range s.leftovers {
		if _, err := r.c.Script(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+index); err != nil {
			return err
		}
		r.Log.Info("dropped what a rebuild of an index has left", slog.String("index", index))
	}
	if !rebuild {
		return nil
	}
	// The estimate may be older than most of the rows.
	if _, err := r.c.Script(ctx, "ANALYZE tr_entities"); err != nil {
		return err
	}
	if s, err = look(ctx, r.c); err != nil || s.busy || !r.bloated(s) {
		return err
	}
	start := r.Now()
	r.next = start.Add(retryPause)
	if _, err := r.c.Script(ctx, "REINDEX INDEX CONCURRENTLY tr_entities_pkey"); err != nil {
		return err
	}
	end := r.Now()
	took := end.Sub(start)
	r.next = end.Add(max(leastPause, pauseShare*took))
	r.Figures.Rebuilds.Add(1)
	after, err := look(ctx, r.c)
	if err != nil {
		return err
	}
	r.least = after.ratio()
	r.Log.Info("rebuilt the index of the entities",
		slog.Int64("bytes", s.size), slog.Int64("new", after.size), slog.Duration("took", took.Round(time.Millisecond)))
	return nil
}
