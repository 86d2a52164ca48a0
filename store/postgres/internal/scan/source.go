package scan

import (
	"fmt"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

// source reads the rows of one interval, of tr_entities or of tr_long, in chunks.
type source struct {
	c    *Cursor
	long bool
	left interval // after the rows of the chunk
	seen bool     // the first key of left has a row
	done bool     // left has no row

	rows *chunk
	at   int // the next row of rows
}

func newSource(c *Cursor, n interval, long bool) *source {
	return &source{c: c, long: long, left: n, rows: chunks.Get().(*chunk)}
}

// tableName returns the name of the table of the database.
func (s *source) tableName() string {
	if s.long {
		return "tr_long"
	}
	return "tr_entities"
}

// ended reports whether s has no more row. Call load before.
func (s *source) ended() bool { return s.at == len(s.rows.rows) && s.done }

// next returns the position of the next row, or one from which only s can have the next row.
func (s *source) next() bound {
	reverse := s.c.q.Reverse
	switch {
	case s.at < len(s.rows.rows):
		return s.rows.bound(s.at, reverse)
	case reverse:
		return s.left.hi
	}
	return s.left.lo
}

// load reads chunks until there is a row or the end. With only, it is enough that the key of
// a row is known.
func (s *source) load(only bool) error {
	for s.at == len(s.rows.rows) && !s.done && !(only && s.seen) {
		if err := s.fetch(); err != nil {
			return err
		}
	}
	return nil
}

// fetch reads the next chunk, which can be empty.
func (s *source) fetch() error {
	if s.long {
		return s.fetchLong()
	}
	return s.chunk(scanStatements[s.direction()], s.left.lo.p, s.left.lo.r, s.left.hi.p, s.left.hi.r)
}

// direction returns the index of a statement for ascending or descending order.
func (s *source) direction() int {
	if s.c.q.Reverse {
		return 1
	}
	return 0
}

// chunk reads the next rows of left by a statement with these parameters for the keys. Its last
// row, if more can follow, is not used: it is where the next chunk begins and where a query
// can be resumed.
func (s *source) chunk(st *wire.Statement, keys ...[]byte) error {
	limit := s.c.chunkRows()
	if err := s.rowsOf(st, limit, keys...); err != nil {
		return err
	}
	if n := len(s.rows.rows); s.rows.cut || n == limit {
		s.stopAt(n-1, limit)
		return nil
	}
	s.seen, s.done = false, true
	return nil
}

// rowsOf reads at most limit rows by a statement.
func (s *source) rowsOf(st *wire.Statement, limit int, keys ...[]byte) error {
	size := int64(maxChunkBytes / limit)
	if limit == minChunkRows {
		size = 1 << 30
	}
	return s.query(st, append(keys, wire.Int8Arg(int64(limit)), wire.Int8Arg(size))...)
}

// stopAt makes row i the first one of left, after a statement with a limit.
func (s *source) stopAt(i, limit int) {
	s.leaveFrom(s.rows.bound(i, s.c.q.Reverse))
	s.c.adapt(limit, s.rows)
	s.rows.rows = s.rows.rows[:i]
}

// leaveFrom makes left begin at b, at which there is a row, or with Reverse end there.
func (s *source) leaveFrom(b bound) {
	s.seen = true
	if s.c.q.Reverse {
		s.left.hi = b
	} else {
		s.left.lo = b
	}
}

// query runs a statement whose rows are chunk rows and one with the id of the table.
func (s *source) query(st *wire.Statement, args ...[]byte) error {
	c := s.c
	found, id := false, int64(0)
	all := append([][]byte{c.a.Name, c.folded}, args...)
	err := c.a.Read(c.ctx, func(conn *wire.Conn) error {
		found, s.at = false, 0
		s.rows.reset()
		conn.Queue(st, all...)
		_, err := conn.RoundTrip(c.ctx, func(_ int, values [][]byte) (err error) {
			if values[0] != nil {
				return s.rows.add(s.tableName(), c.q.Reverse, values)
			}
			found = true
			c.long = values[3] != nil
			id, err = wire.Int8Of(values[2])
			return err
		})
		return err
	})
	if err != nil {
		s.rows.reset() // it may have a part of the rows
		return err
	}
	switch {
	case !found && c.id == 0:
		err = store.ErrTableNotFound
	case !found || c.id != 0 && c.id != id:
		err = fmt.Errorf("%w: %w", store.ErrTableNotFound, errTableGone)
	}
	if err != nil {
		s.rows.reset()
	}
	c.id = id
	return err
}

// chunkRows returns how many rows the next chunk reads.
func (c *Cursor) chunkRows() int {
	n := c.rowLimit
	// One more row shows whether any can follow.
	if c.q.Budget > 0 {
		n = min(n, c.q.Budget-c.examined+1)
	}
	switch {
	case c.q.Limit == 0:
	case !c.match:
		n = min(n, c.q.Limit-c.returned+1)
	case c.examined == 0:
		n = min(n, 4*(c.q.Limit+1))
	}
	return max(n, minChunkRows)
}

// adapt sets rowLimit after a chunk of at most limit rows that did not read all.
func (c *Cursor) adapt(limit int, rows *chunk) {
	if rows.cut {
		c.rowLimit = max(limit/4, minChunkRows)
		return
	}
	fits := maxChunkBytes / max(rows.largest(), 1)
	c.rowLimit = max(min(2*c.rowLimit, fits, maxChunkRows), minChunkRows)
}

const (
	tableSQL = `SELECT NULL::bytea AS p, NULL::bytea AS r, id AS ts, CASE WHEN long THEN '\x'::bytea END AS v
		FROM tr_tables WHERE account = $1 AND folded = $2 UNION ALL `
	tidSQL = `tid = (SELECT id FROM tr_tables WHERE account = $1 AND folded = $2)`

	scanSQL = tableSQL + `(SELECT p, r, ts, CASE WHEN octet_length(v) <= $8 THEN v END FROM tr_entities
		WHERE ` + tidSQL + ` AND (p, r) >= ($3, $4) AND (p, r) < ($5, $6) ORDER BY `

	// Forward is the statement that reads a chunk of tr_entities, for a test of its plan.
	Forward = scanSQL + "p, r LIMIT $7)"
	// Backward is Forward in descending order.
	Backward = scanSQL + "p DESC, r DESC LIMIT $7)"
)

// The statements of a query by direction. Their first row has the id of the table in the
// column ts, and a v that is not null if the table has had rows in tr_long. Rows with a v of more than
// the last parameter have null.
var scanStatements = [2]*wire.Statement{
	wire.NewStatement("scan", 4, Forward, scanParams...),
	wire.NewStatement("scan_back", 4, Backward, scanParams...),
}

var scanParams = []uint32{wire.OIDText, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDInt8, wire.OIDInt8}
