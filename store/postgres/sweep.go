package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

const (
	// sweepRows is the number of rows that a transaction of the sweeper removes: few, so that
	// it is short.
	sweepRows = 1000
	// sweepInterval is how often a Database looks for dropped tables.
	sweepInterval = 5 * time.Second
	// hiddenAge is the age at which no transaction of another user is older than a drop, if
	// this user must not see when it began.
	hiddenAge = time.Hour
	// foreignAge is that age for a server that does not show transactions as PostgreSQL does.
	foreignAge = 24 * time.Hour
)

// sweeper removes the entities of dropped tables. Several may work at the same time.
type sweeper struct {
	d *Database
	// seen is the clock of the server, in ticks, when the sweeper first saw a drop. Every
	// transaction that can still add an entity to the table began before.
	seen map[int64]int64
	// swept has the tables of which a search found no row. The next search waits until no transaction can add one: a
	// transaction that stays open, as that of pg_dump, keeps all dead rows, which each search passes.
	swept map[int64]bool
	// paused is called after each transaction with the time that it took.
	paused func(ctx context.Context, took time.Duration) error
	rows   func(n int64) // is called after each transaction with its number of rows
}

var (
	deadTables = wire.NewStatement("dead", 4, "SELECT id, xid, dropped, "+clockSQL+" FROM tr_dead ORDER BY id")

	// The last key of the next sweepRows rows of a table. A join with these rows could be a
	// loop over the whole table for each of them.
	edgeEntities = wire.NewStatement("edge", 2, `SELECT p, r FROM tr_entities WHERE tid = $1 AND (p, r) >= ($2, $3)
		ORDER BY p, r OFFSET $4 LIMIT 1`, wire.OIDInt8, wire.OIDBytea, wire.OIDBytea, wire.OIDInt8)
	edgeLong = wire.NewStatement("edge_long", 1, "SELECT h FROM tr_long WHERE tid = $1 AND h >= $2 ORDER BY h OFFSET $3 LIMIT 1",
		wire.OIDInt8, wire.OIDBytea, wire.OIDInt8)

	// A statement that finds the row of tr_dead locked removes nothing: another sweeper works
	// on this table.
	sweepEntities = wire.NewStatement("sweep", 0, `WITH l AS (SELECT id FROM tr_dead WHERE id = $1 FOR UPDATE SKIP LOCKED)
		DELETE FROM tr_entities WHERE tid = (SELECT id FROM l) AND (p, r) >= ($2, $3) AND (p, r) <= ($4, $5)`,
		wire.OIDInt8, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea)
	sweepLong = wire.NewStatement("sweep_long", 0, `WITH l AS (SELECT id FROM tr_dead WHERE id = $1 FOR UPDATE SKIP LOCKED)
		DELETE FROM tr_long WHERE tid = (SELECT id FROM l) AND h >= $2 AND h <= $3`, wire.OIDInt8, wire.OIDBytea, wire.OIDBytea)

	// olderHere counts the transactions that began before a time, and the sessions that do
	// not show it. It says whether a transaction that is not newer than a number can still run. That is so of no
	// number that this cluster has not reached: it is of another one, whose dump was restored here.
	olderHere = wire.NewStatement("older", 3, `SELECT (pg_snapshot_xmin(pg_current_snapshot())::text::bigint <= $2
			AND $2 < pg_snapshot_xmax(pg_current_snapshot())::text::bigint)::int::bigint,
		count(*) FILTER (WHERE (extract(epoch FROM xact_start) * 10000000)::bigint + 116444736000000000 <= $1),
		count(*) FILTER (WHERE query = '<insufficient privilege>' OR state = 'disabled')
		FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`, wire.OIDInt8, wire.OIDInt8)

	// forgetTable removes a table from tr_dead if nothing of it is left.
	forgetTable = wire.NewStatement("forget", 0, `DELETE FROM tr_dead WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM tr_entities WHERE tid = $1)
		AND NOT EXISTS (SELECT 1 FROM tr_long WHERE tid = $1)`, wire.OIDInt8)
)

// deadTable is a row of tr_dead.
type deadTable struct{ id, xid, dropped, seen int64 }

// run removes the entities of all dropped tables. It forgets those to which no transaction
// can add an entity any more.
func (s *sweeper) run(ctx context.Context) error {
	var dead []deadTable
	err := s.d.read(ctx, func(c *wire.Conn) error {
		dead = dead[:0]
		c.Queue(deadTables)
		_, err := c.RoundTrip(ctx, func(_ int, values [][]byte) error {
			var t deadTable
			for i, v := range []*int64{&t.id, &t.xid, &t.dropped, &t.seen} {
				n, err := wire.Int8Of(values[i])
				if err != nil {
					return err
				}
				*v = n
			}
			dead = append(dead, t)
			return nil
		})
		return err
	})
	if err != nil {
		return err
	}
	before, swept := s.seen, s.swept
	s.seen, s.swept = make(map[int64]int64, len(dead)), make(map[int64]bool, len(dead))
	for i, t := range dead {
		if first, ok := before[t.id]; ok {
			dead[i].seen = first
		}
		s.seen[t.id], s.swept[t.id] = dead[i].seen, swept[t.id]
	}
	for _, t := range dead {
		if err := s.sweep(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes the entities of one table.
func (s *sweeper) sweep(ctx context.Context, t deadTable) error {
	if s.swept[t.id] {
		if old, err := s.hasWriters(ctx, t); err != nil || old {
			return err
		}
	}
	id := wire.Int8Arg(t.id)
	found, err := s.remove(ctx, edgeEntities, sweepEntities, id, 2)
	if err != nil {
		return err
	}
	foundLong, err := s.remove(ctx, edgeLong, sweepLong, id, 1)
	if err != nil {
		return err
	}
	s.swept[t.id] = !found && !foundLong
	if old, err := s.hasWriters(ctx, t); err != nil || old {
		return err
	}
	return s.d.transact(ctx, func(c *wire.Conn) error {
		c.Queue(forgetTable, id)
		_, err := c.Commit(nil)
		return err
	})
}

// remove removes all rows of a table, in the order of a key of some columns: edge finds the
// end of the next ones and sweep removes those up to it. Each transaction begins where the one
// before ended, since index entries of rows that it removed are still there. It reports whether there were rows, which another
// sweeper can have removed.
func (s *sweeper) remove(ctx context.Context, edge, sweep *wire.Statement, id []byte, columns int) (found bool, err error) {
	from := make([][]byte, columns)
	for i := range from {
		from[i] = []byte{}
	}
	for last := false; !last; {
		start := s.d.heart.now()
		to, err := s.edge(ctx, edge, id, from)
		if err != nil {
			return false, err
		}
		if last = to == nil; last {
			to = slices.Repeat([][]byte{bytes.Repeat([]byte{0xFF}, sha256.Size+1)}, columns) // after every key
		}
		var rows []int64
		err = s.d.transact(ctx, func(c *wire.Conn) (err error) {
			c.Queue(sweep, slices.Concat([][]byte{id}, from, to)...)
			rows, err = c.Commit(nil)
			return err
		})
		if err != nil {
			return false, err
		}
		found = found || !last || rows[0] > 0
		if rows[0] > 0 {
			s.rows(rows[0])
			if err := s.paused(ctx, s.d.heart.now().Sub(start)); err != nil {
				return false, err
			}
		}
		from = to
	}
	return found, nil
}

// edge returns the key of the last of the next sweepRows rows, nil if there are fewer.
func (s *sweeper) edge(ctx context.Context, st *wire.Statement, id []byte, from [][]byte) (key [][]byte, err error) {
	err = s.d.read(ctx, func(c *wire.Conn) error {
		key = nil
		c.Queue(st, slices.Concat([][]byte{id}, from, [][]byte{wire.Int8Arg(sweepRows - 1)})...)
		_, err := c.RoundTrip(ctx, func(_ int, values [][]byte) error {
			for _, v := range values {
				key = append(key, append([]byte{}, v...))
			}
			return nil
		})
		return err
	})
	return key, err
}

// hasWriters reports whether a transaction can add an entity to a dropped table: one that read
// the id of the table before the drop.
func (s *sweeper) hasWriters(ctx context.Context, t deadTable) (bool, error) {
	if s.d.kind != wire.PostgreSQL {
		return s.youngerThan(ctx, t, foreignAge)
	}
	var running, older, hidden int64
	err := s.d.read(ctx, func(c *wire.Conn) error {
		c.Queue(olderHere, wire.Int8Arg(t.seen), wire.Int8Arg(t.xid))
		_, err := c.RoundTrip(ctx, func(_ int, values [][]byte) (err error) {
			for i, v := range []*int64{&running, &older, &hidden} {
				var bad error
				*v, bad = wire.Int8Of(values[i])
				err = errors.Join(err, bad)
			}
			return err
		})
		return err
	})
	if err != nil || running > 0 || older > 0 {
		return true, err
	}
	if hidden > 0 {
		return s.youngerThan(ctx, t, hiddenAge)
	}
	return false, nil
}

var serverClock = wire.NewStatement("clock", 1, "SELECT "+clockSQL)

// youngerThan reports whether the drop of t is younger than age.
func (s *sweeper) youngerThan(ctx context.Context, t deadTable, age time.Duration) (bool, error) {
	var now int64
	err := s.d.read(ctx, func(c *wire.Conn) error {
		c.Queue(serverClock)
		_, err := c.RoundTrip(ctx, func(_ int, values [][]byte) (err error) {
			now, err = wire.Int8Of(values[0])
			return err
		})
		return err
	})
	return now-t.dropped < int64(age/100), err
}

// sweepLoop sweeps, and takes samples for Stats, until ctx ends.
func (d *Database) sweepLoop(ctx context.Context) {
	samples := &sampler{d: d}
	s := d.newSweeper(samples)
	v := &vacuumer{d: d}
	failed := false
	for {
		err := samples.run(ctx)
		if wait(ctx, sweepInterval) != nil {
			return
		}
		err = errors.Join(err, s.run(ctx), v.run(ctx))
		if err != nil && !failed && ctx.Err() == nil {
			d.log.Warn("the sweeper of dropped tables fails", slog.Any("error", err))
		}
		failed = err != nil
	}
}

// newSweeper returns a sweeper that uses half of the time of one connection. It takes samples too, because a large
// table takes it minutes.
func (d *Database) newSweeper(samples *sampler) *sweeper {
	return &sweeper{d: d, rows: func(int64) {}, paused: func(ctx context.Context, took time.Duration) error {
		if err := samples.run(ctx); err != nil {
			return err
		}
		return wait(ctx, took)
	}}
}

// wait waits until ctx ends, whose error it returns, or until the time has passed.
func wait(ctx context.Context, t time.Duration) error {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Sweep removes the entities of dropped tables, as a Database does in the background, but
// without pauses. It calls progress with the number of rows that it has removed so far, and
// returns it. A table to which a transaction can still add entities is left for later.
func Sweep(ctx context.Context, url string, progress func(rows int64)) (int64, error) {
	d, err := Connect(ctx, url, &Options{AllowAsync: true, MaxConns: 2, manual: true})
	if err != nil {
		return 0, err
	}
	total := int64(0)
	s := &sweeper{d: d, paused: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }, rows: func(n int64) {
		total += n
		if progress != nil {
			progress(total)
		}
	}}
	err = s.run(ctx)
	if closing := d.Close(); err == nil {
		err = closing
	}
	return total, err
}

const sampleInterval = 30 * time.Second

// sampler takes a sample each sampleInterval.
type sampler struct {
	d    *Database
	last time.Time
}

func (s *sampler) run(ctx context.Context) error {
	now := s.d.heart.now()
	if now.Sub(s.last) < sampleInterval {
		return nil
	}
	s.last = now
	return s.d.takeSample(ctx)
}

// sampleHere reads estimates and sizes of files.
var sampleHere = wire.NewStatement("sample", 5, `SELECT sum(s.n_live_tup)::bigint, sum(s.n_dead_tup)::bigint, sum(pg_table_size(s.relid))::bigint,
	sum(pg_indexes_size(s.relid))::bigint, (SELECT count(*) FROM tr_dead)
	FROM pg_stat_user_tables AS s WHERE s.relid IN ('tr_entities'::regclass, 'tr_long'::regclass)`)

// takeSample sets the Sample of Stats. It has the time alone of a server that does not show the sizes.
func (d *Database) takeSample(ctx context.Context) error {
	sample := Sample{Time: d.heart.now()}
	if d.kind != wire.PostgreSQL {
		d.sample.Store(&sample)
		return nil
	}
	err := d.read(ctx, func(c *wire.Conn) error {
		c.Queue(sampleHere)
		_, err := c.RoundTrip(ctx, func(_ int, values [][]byte) error {
			for i, v := range []*int64{&sample.LiveRows, &sample.DeadRows, &sample.TableBytes, &sample.IndexBytes, &sample.DroppedTables} {
				if values[i] == nil {
					return store.ErrNotDatabase
				}
				n, err := wire.Int8Of(values[i])
				if err != nil {
					return err
				}
				*v = n
			}
			return nil
		})
		return err
	})
	if err == nil {
		d.sample.Store(&sample)
	}
	return err
}
