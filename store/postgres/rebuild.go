package postgres

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

const (
	// rebuildInterval is how often a Database looks at the index of tr_entities.
	rebuildInterval = 30 * time.Second
	// rebuildRatio is the size of an index that is rebuilt, in relation to a new one. Keys that
	// come in no order fill its pages to 70 %, which is 1.3 times a new index.
	rebuildRatio = 1.6
	// rebuildSlack is the size that does not count: a small index is of no concern.
	rebuildSlack = 1 << 20
	// rebuildMax is the size of the largest index that is rebuilt. A rebuild needs the space
	// of the new index twice, in the tables and in the log.
	rebuildMax = 8 << 30
	// rebuildPause and rebuildShare bound the pause after a rebuild, from below and in
	// relation to its duration.
	rebuildPause = 5 * time.Minute
	rebuildShare = 20
	// rebuildRetry is the pause after a rebuild that failed.
	rebuildRetry = time.Hour
)

// rebuilder rebuilds the index of tr_entities when most of it is free space. VACUUM removes the
// entries of dead rows, but it gives back a page of the index only if no entry is left on it.
type rebuilder struct {
	d *Database
	// c holds the advisory lock, also in the pause after a rebuild, so that the pause is one
	// of all servers. It is nil if this process does not have the lock.
	c    *wire.Conn
	next time.Time // no rebuild before
	// least is the ratio that the last rebuild reached: greater than 1 if the estimate of a
	// new index is too low.
	least float64
	told  bool // that the index is not rebuilt
}

// indexState is what a rebuilder sees.
type indexState struct {
	size, fresh int64 // of the index, and of a new one, estimated
	allowed     bool  // whether the user owns it, and a rebuild by the server is correct
	busy        bool  // a VACUUM, a rebuild, or an old transaction that a rebuild would wait for
	leftovers   []string
}

func (s indexState) ratio() float64 {
	return float64(s.size-rebuildSlack) / float64(max(s.fresh, 1))
}

// lookSQL estimates the size of a new index by the mean size of its tuples: a header of 8 bytes,
// the columns, and a pointer of 4. PostgreSQL rounds a tuple up to 8 bytes, which adds 3.5 in the
// mean, and the width of each column down. Its pages are filled to 90 %. Only a lock of this mode shows
// a VACUUM or a rebuild to every user.
const lookSQL = `SELECT pg_relation_size(i.indexrelid)::bigint,
	(greatest(c.reltuples, s.n_live_tup) * (8 + 8 + w.width + 1 + 3.5 + 4) * b.size / (0.9 * (b.size - 40)))::bigint,
	pg_has_role(c.relowner, 'USAGE') AND current_setting('server_version_num')::int >= 140004,
	EXISTS (SELECT 1 FROM pg_locks AS l WHERE l.locktype = 'relation' AND l.relation = c.oid AND l.mode = 'ShareUpdateExclusiveLock'
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

// rebuildKey is the advisory lock of a rebuild: the bytes of "tr_index".
const rebuildKey = "8390873962172933496"

// look reads the state of the index.
func look(ctx context.Context, c *wire.Conn) (s indexState, err error) {
	rows, err := c.Script(ctx, lookSQL)
	if err != nil {
		return s, err
	}
	if len(rows) != 1 || len(rows[0]) != 4 {
		return s, errNoSchema
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
func (r *rebuilder) bloated(s indexState) bool { return s.ratio() > rebuildRatio*max(1, r.least) }

// run drops what a rebuild has left, and rebuilds the index if it is bloated.
func (r *rebuilder) run(ctx context.Context) error {
	if r.c != nil && !r.d.heart.now().Before(r.next) {
		r.release()
	}
	var s indexState
	err := r.d.read(ctx, func(c *wire.Conn) (err error) {
		s, err = look(ctx, c)
		return err
	})
	if err != nil {
		return err
	}
	r.d.newIndex.Store(s.fresh)
	rebuild := r.bloated(s) && !r.d.heart.now().Before(r.next)
	if rebuild && (!s.allowed || s.size > rebuildMax) {
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
	if r.c.Broken || r.d.heart.now().After(r.next) {
		r.release()
	}
	return err
}

// tell logs once why a bloated index is not rebuilt.
func (r *rebuilder) tell(s indexState) {
	if r.told {
		return
	}
	r.told = true
	why := "it is large, and a rebuild needs its space twice"
	if !s.allowed {
		why = "this user does not own it, or PostgreSQL is older than 14.4, whose rebuilds can be wrong"
	}
	r.d.log.Warn("the index of the entities has much free space and is not rebuilt; run: REINDEX INDEX CONCURRENTLY tr_entities_pkey",
		slog.String("reason", why), slog.Int64("bytes", s.size), slog.Int64("new", s.fresh))
}

// lock takes the advisory lock, over a connection of its own, which REINDEX keeps for long. It reports
// false if another server has the lock.
func (r *rebuilder) lock(ctx context.Context) (bool, error) {
	if r.c != nil && !r.c.Broken && r.d.heart.check(r.c) == nil {
		return true, nil
	}
	r.release()
	c, err := r.d.dialer.Connect(ctx)
	if err != nil {
		return false, err
	}
	r.c = c
	rows, err := c.Script(ctx, "SELECT pg_try_advisory_lock("+rebuildKey+")")
	if err == nil && len(rows) == 1 && slices.Equal(rows[0], []string{"t"}) {
		// A rebuild waits for the transactions that use the table. Its wait stops no
		// write, but each VACUUM.
		_, err = c.Script(ctx, "SET lock_timeout = '1min'; SET max_parallel_maintenance_workers = 0")
		if err == nil {
			return true, nil
		}
	}
	r.release()
	return false, err
}

// release gives the advisory lock back.
func (r *rebuilder) release() {
	if r.c != nil {
		r.c.Close()
		r.c = nil
	}
}

// work does the work over r.c.
func (r *rebuilder) work(ctx context.Context, rebuild bool) error {
	s, err := look(ctx, r.c) // another server may have done it
	if err != nil || s.busy {
		return err
	}
	for _, index := range s.leftovers {
		if _, err := r.c.Script(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+index); err != nil {
			return err
		}
		r.d.log.Info("dropped what a rebuild of an index has left", slog.String("index", index))
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
	start := r.d.heart.now()
	r.next = start.Add(rebuildRetry)
	if _, err := r.c.Script(ctx, "REINDEX INDEX CONCURRENTLY tr_entities_pkey"); err != nil {
		return err
	}
	end := r.d.heart.now()
	took := end.Sub(start)
	r.next = end.Add(max(rebuildPause, rebuildShare*took))
	r.d.rebuilds.Add(1)
	after, err := look(ctx, r.c)
	if err != nil {
		return err
	}
	r.least = after.ratio()
	r.d.log.Info("rebuilt the index of the entities",
		slog.Int64("bytes", s.size), slog.Int64("new", after.size), slog.Duration("took", took.Round(time.Millisecond)))
	return nil
}

// rebuildLoop looks at the index until ctx ends.
func (d *Database) rebuildLoop(ctx context.Context) {
	r := &rebuilder{d: d}
	defer r.release()
	failed := false
	for wait(ctx, rebuildInterval) == nil {
		err := r.run(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			d.log.Warn("the index of the entities cannot be rebuilt", slog.Any("error", err))
		}
		failed = err != nil
	}
}
