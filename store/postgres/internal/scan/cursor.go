package scan

import (
	"context"
	"errors"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/layout"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

// Account is the account whose tables a query reads.
type Account struct {
	Name   []byte
	Shapes *layout.Shapes
	// Read calls f with a connection to the primary, several times if connections are lost.
	Read func(ctx context.Context, f func(c *wire.Conn) error) error
	// Usable returns store.ErrClosed after the store was closed.
	Usable func() error
}

// Cursor is a query. It reads a chunk of rows when it needs one, and has no connection
// between two chunks.
type Cursor struct {
	a      *Account
	ctx    context.Context
	folded []byte // name of the table
	q      store.Query

	id       int64      // of the table; 0 before the first chunk
	long     bool       // the table has had rows in tr_long
	left     []interval // to read after that of sources
	sources  []*source  // of the current interval: tr_entities and, if long is set, tr_long
	match    bool       // the filter does not follow from the intervals
	rowLimit int        // rows of the next chunk at most

	row      codec.Row
	selected selectedRow
	examined int
	returned int
	bytes    int
	ended    bool
	resume   *edm.Key
	err      error
}

var errTableGone = errors.New("the table was deleted during the query")

// Query starts a query, as store.Store describes it. The rows of a chunk are of one time.
func Query(ctx context.Context, a *Account, table string, q store.Query) *Cursor {
	c := &Cursor{a: a, ctx: ctx, q: q, rowLimit: maxChunkRows}
	if c.err = edm.CheckTableName(table); c.err == nil {
		c.err = store.CheckQuery(q)
	}
	if c.err != nil {
		c.ended = true
		return c
	}
	c.folded = []byte(edm.FoldTableName(table))
	c.left = intervals(q.Filter.Ranges(), q.From, q.Reverse)
	c.match = q.Filter.Cost() > 0
	c.selected.names = slices.Clone(q.Select)
	if q.From != nil {
		from := *q.From
		c.resume = &from
	} else if !q.Reverse {
		c.resume = &edm.Key{}
	}
	if len(c.left) == 0 {
		// The table may be missing.
		at := firstBound
		if q.From != nil {
			at = boundOf(filter.Bound{Kind: filter.BeforeRow, Key: *q.From}, at)
		}
		c.left = []interval{{at, at}}
	}
	return c
}

// Next implements store.Cursor.
func (c *Cursor) Next() bool {
	for !c.ended {
		if err := c.a.Usable(); err != nil {
			return c.fail(err)
		}
		if err := c.ctx.Err(); err != nil {
			return c.fail(err)
		}
		full := reached(c.returned, c.q.Limit) || reached(c.examined, c.q.Budget) || reached(c.bytes, c.q.BudgetBytes)
		src, err := c.head(full)
		switch {
		case err != nil:
			return c.fail(err)
		case src == nil:
			c.ended, c.resume = true, nil
			return false
		case full:
			c.ended, c.resume = true, src.next().from(c.q.Reverse)
			return false
		}
		keep, err := c.take(src)
		if err != nil {
			return c.fail(err)
		}
		if keep {
			return true
		}
	}
	return false
}

func reached(n, limit int) bool { return limit > 0 && n >= limit }

// take reads the row of src and reports whether the query returns it.
func (c *Cursor) take(src *source) (bool, error) {
	i := src.at
	src.at++
	c.examined++
	v := src.rows.value(i)
	if err := c.a.Shapes.Decode(&c.row, src.tableName(), src.rows.key(i), src.rows.rows[i].ts, v); err != nil {
		return false, err
	}
	if c.match && !c.q.Filter.Match(&c.row) {
		return false, nil
	}
	c.returned++
	switch {
	case c.q.Select == nil:
		c.bytes += len(v)
	case c.q.BudgetBytes > 0:
		c.bytes += c.selected.of(&c.row).size()
	}
	return true, nil
}

// head returns the source with the next row, nil at the end. With only, it is enough that
// the key of this row is known.
func (c *Cursor) head(only bool) (*source, error) {
	for {
		first, err := c.first(only)
		if first != nil || err != nil {
			return first, err
		}
		c.freeSources()
		if len(c.left) == 0 {
			return nil, nil
		}
		c.sources = []*source{newSource(c, c.left[0], false)}
		c.left = c.left[1:]
	}
}

// first returns the source of the current interval with the next row.
func (c *Cursor) first(only bool) (*source, error) {
	var first *source
	// The first chunk of tr_entities tells whether there is a second source.
	for i := 0; i < len(c.sources); i++ {
		s := c.sources[i]
		before := s.left
		err := s.load(only)
		if i == 0 && c.long && len(c.sources) == 1 {
			// The table may have its first long key since an earlier chunk, so only what was left. After
			// an error too: fail looks for the least position of all sources.
			c.sources = append(c.sources, newSource(c, before, true))
		}
		if err != nil {
			return nil, err
		}
		if s.ended() {
			continue
		}
		if first == nil || (s.next().compare(first.next()) < 0) != c.q.Reverse {
			first = s
		}
	}
	return first, nil
}

// fail ends the cursor because of err, so that it can be resumed at the next row.
func (c *Cursor) fail(err error) bool {
	c.ended, c.err = true, err
	if err != c.ctx.Err() && !errors.Is(err, store.ErrUnavailable) { //nolint:errorlint // the error of ctx is not wrapped
		c.resume = nil
		return false
	}
	var at *bound
	for _, s := range c.sources {
		if b := s.next(); !s.ended() && (at == nil || (b.compare(*at) < 0) != c.q.Reverse) {
			at = &b
		}
	}
	if at == nil && len(c.left) > 0 {
		b := c.left[0].lo
		if c.q.Reverse {
			b = c.left[0].hi
		}
		at = &b
	}
	c.resume = nil
	if at != nil {
		c.resume = at.from(c.q.Reverse)
	} else if err == c.ctx.Err() { //nolint:errorlint // it is not wrapped
		c.err = nil // the cursor knows that this is the end
	}
	return false
}

// freeSources ends the current interval.
func (c *Cursor) freeSources() {
	for _, s := range c.sources {
		s.rows.free()
	}
	c.sources = nil
}

// Row implements store.Cursor.
func (c *Cursor) Row() edm.Row {
	if c.q.Select == nil {
		return &c.row
	}
	return c.selected.of(&c.row)
}

// Resume implements store.Cursor.
func (c *Cursor) Resume() *edm.Key { return c.resume }

// Examined implements store.Examiner.
func (c *Cursor) Examined() int { return c.examined }

// Err implements store.Cursor.
func (c *Cursor) Err() error { return c.err }

// Close implements store.Cursor.
func (c *Cursor) Close() error {
	c.ended = true
	c.freeSources()
	return nil
}

// rowOverhead is the least size of a row.
const rowOverhead = 8

// selectedRow is a row with some of its properties.
type selectedRow struct {
	*codec.Row
	names   []string
	shape   *codec.Shape // for which indexes is valid
	indexes []int
}

// of makes r a view of row.
func (r *selectedRow) of(row *codec.Row) *selectedRow {
	r.Row = row
	if shape := row.Shape(); shape != r.shape {
		r.shape, r.indexes = shape, r.indexes[:0]
		for i := range shape.Len() {
			if r.has(shape.Name(i)) {
				r.indexes = append(r.indexes, i)
			}
		}
	}
	return r
}

func (r *selectedRow) has(name string) bool {
	for _, n := range r.names {
		if n == name {
			return true
		}
	}
	return false
}

// size returns the size for store.Query.BudgetBytes, which is that of the properties that are selected: a page ends by
// what it holds. What its chunks hold beside has its own limit.
func (r *selectedRow) size() int {
	n := rowOverhead
	for i := range r.Len() {
		name, v := r.At(i)
		n += len(name) + 8 + len(v.Bytes())
	}
	return n
}

// Len implements edm.Row.
func (r *selectedRow) Len() int { return len(r.indexes) }

// At implements edm.Row.
func (r *selectedRow) At(i int) (string, edm.Value) { return r.Row.At(r.indexes[i]) }

// Lookup implements edm.Row.
func (r *selectedRow) Lookup(name string) (edm.Value, bool) {
	if !r.has(name) {
		return edm.Value{}, false
	}
	return r.Row.Lookup(name)
}
