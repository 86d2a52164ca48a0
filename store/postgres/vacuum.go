package postgres

import (
	"context"
	"time"

	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

// vacuumer removes the dead rows of small tables. Autovacuum looks at a table once a minute,
// and in a minute all rows of a small one can be overwritten several times. That of a larger
// table is soon enough.
type vacuumer struct {
	d    *Database
	next time.Time // no run before
}

const (
	// vacuumPause is the least pause after a run, in relation to its duration.
	vacuumPause = 4
	// vacuumInterval is the least time between two runs.
	vacuumInterval = 5 * time.Second
)

// hotTables names the tables of less than 1 GiB that have more than one dead row for ten live
// ones. With one for five, every 10 s, an index grew to 2.1 times of what a fresh one has.
var hotTables = wire.NewStatement("hot", 1, `SELECT relname::text FROM pg_stat_user_tables
	WHERE relid IN ('tr_entities'::regclass, 'tr_long'::regclass)
	AND n_dead_tup > 1000 + n_live_tup / 10 AND pg_table_size(relid) < 1073741824`)

// run vacuums what has too many dead rows, unless it was done a moment ago.
func (v *vacuumer) run(ctx context.Context) error {
	if v.d.kind != wire.PostgreSQL || v.d.heart.now().Before(v.next) {
		return nil
	}
	var tables []string
	err := v.d.read(ctx, func(c *wire.Conn) error {
		tables = nil
		c.Queue(hotTables)
		_, err := c.RoundTrip(ctx, func(_ int, values [][]byte) error {
			tables = append(tables, string(values[0]))
			return nil
		})
		return err
	})
	for _, table := range tables {
		if err != nil {
			break
		}
		start := v.d.heart.now()
		// Another vacuum of the table is not waited for. A user without the right gets a
		// warning.
		err = v.d.read(ctx, func(c *wire.Conn) error {
			_, err := c.Script(ctx, "VACUUM (SKIP_LOCKED, TRUNCATE FALSE) "+table)
			return err
		})
		end := v.d.heart.now()
		v.next = end.Add(max(vacuumInterval, vacuumPause*end.Sub(start)))
	}
	return err
}
