package scan

import (
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/store"
)

// rowColumns are the rows that NextColumns returned last.
type rowColumns struct {
	sstable.Columns
	c *Cursor
}

// AppendBytes implements store.Columns.
func (r *rowColumns) AppendBytes(dst [][]byte, property int) ([][]byte, error) {
	dst, err := r.Columns.AppendBytes(dst, property)
	if err != nil {
		r.c.err = err
		r.c.pos = atEnd
	}
	return dst, err
}

// NextColumns implements store.ColumnCursor. It returns rows of windows with one source, and
// rows of a walk that one file has between those of the other sources.
func (c *Cursor) NextColumns() store.Columns {
	if c.state == nil {
		return nil
	}
	c.row = nil
	c.rows.Release()
	if c.pos == atEnd || c.full {
		return nil
	}
	for len(c.rest) > 0 && c.ctx.Err() == nil {
		most := unlimited
		if c.win.counts() {
			most = c.left()
		}
		if c.q.Limit > 0 {
			most = min(most, c.q.Limit-c.returned)
		}
		switch {
		case most <= 0 || c.win.open && c.win.one == nil:
			return nil
		case c.walk > 0:
			return c.walkColumns(most)
		case !c.win.open:
			if c.left() <= 0 {
				return nil
			}
			c.openWindow(false)
			continue
		}
		if c.byRow > 0 {
			c.byRow--
			return nil
		}
		it := c.win.one.Iterator()
		n, left := it.NextSelectedColumns(&c.rows.Columns, c.q.Reverse, most)
		if n > 0 {
			c.few(c.win.sel == nil && n < minColumns && c.rows.ShapeEnds())
			if !c.fit(it) {
				return nil
			}
			c.gather(most - n)
			return c.showColumns()
		}
		if left {
			return nil
		}
		c.endGroup()
	}
	return nil
}

const (
	// A call of NextColumns gathers rows of at most maxGathered heap units, the first calls of
	// fewer: the next rows may not be wanted. It stops when it has manyGathered rows.
	maxGathered  = 16
	manyGathered = 64
)

// gather adds more rows of the window, at most most, to a few that match. A reader of a few rows waits
// for memory in most calls of AppendWords and AppendBytes, and it waits less for many rows at once.
// Without gather, a filter that matches 1 % of the entities, all of whose properties are read, needs
// 10 to 14 % more CPU (bench, runs=1/filter=Double-all-columns). If one of the heap units is damaged,
// AppendBytes fails for all rows.
func (c *Cursor) gather(most int) {
	if c.win.sel == nil || c.q.BudgetBytes > 0 {
		return
	}
	it, units := c.win.one.Iterator(), c.gathers
	c.gathers = min(2*c.gathers, maxGathered)
	for n := 1; n < units && most > 0 && c.rows.Len() < manyGathered; n++ {
		left := it.Left(c.q.Reverse)
		if !it.Keep(&c.rows.Columns, left) {
			return
		}
		if !left {
			if c.endGroup(); !c.win.open {
				return
			}
		}
		got, _ := it.NextSelectedColumns(&c.rows.Columns, c.q.Reverse, most)
		if got == 0 { // another shape, or big values
			return
		}
		most -= got
	}
}

const (
	// walkColumns does not ask for columns of fewer rows than minColumns.
	minColumns = 4
	// If there are fewer without a filter, the next byRow calls return nil at once. byRow begins with
	// 1 and doubles each time, up to maxByRow. Three overlapping runs would need 15 to 23 % more CPU
	// without (bench, BenchmarkShortQuery), and a scan of rows of changing shapes two to three times as
	// much (runs=1-shapes=5/step=all-columns).
	maxByRow = 64
)

// walkColumns is NextColumns in a walk.
func (c *Cursor) walkColumns(most int) store.Columns {
	if c.byRow > 0 {
		c.byRow--
		return nil
	}
	if c.matcher != nil || len(c.rest) > 1 || !c.advance() {
		return nil
	}
	i := c.it.Index() - len(c.win.mems)
	if i < 0 {
		return nil
	}
	most = min(most, c.walk, 1+c.it.Ahead(c.q.Reverse))
	if most < minColumns {
		c.few(true)
		return nil
	}
	it, rows := c.win.files[i].Iterator(), &c.rows
	it.NextColumns(&rows.Columns, c.q.Reverse, most)
	c.few(rows.Len() < minColumns) // the heap unit or the shape ends
	if rows.Len() == 0 {
		return nil
	}
	if !c.fit(it) {
		return nil
	}
	c.it.Moved(rows.Len() - 1)
	c.pos = onExamined
	if c.walk -= rows.Len(); c.walk == 0 {
		c.endWalk()
	}
	return c.showColumns()
}

// few notes whether there were fewer rows than minColumns, and sets byRow if so.
func (c *Cursor) few(few bool) {
	if !few {
		c.waited = 0
		return
	}
	c.waited = min(max(1, 2*c.waited), maxByRow)
	c.byRow = c.waited
}

// fit cuts the rows that it, an iterator, has just appended to c.rows: if they reach BudgetBytes, the
// rows after the one that reaches it are dropped, and the iterator moves back to that row. It returns
// false if a value cannot be read, which ends the cursor.
func (c *Cursor) fit(it *sstable.Iterator) bool {
	rows := &c.rows
	rows.c = c
	if c.q.BudgetBytes == 0 {
		return true
	}
	s := &c.size
	if shape := rows.Shape(); c.q.Select == nil {
		s.set(shape, nil)
	} else {
		c.project.setShape(shape)
		s.set(shape, c.project.selected)
	}
	s.bytes = slices.Grow(s.bytes[:0], rows.Len())[:rows.Len()]
	for i := range s.bytes {
		s.bytes[i] = s.fixed
	}
	for _, p := range s.variable {
		var err error
		if s.values, err = rows.AppendBytes(s.values[:0], p); err != nil {
			return false
		}
		for i, v := range s.values {
			s.bytes[i] += len(v)
		}
	}
	for i, n := range s.bytes {
		if c.bytes += n; c.bytes >= c.q.BudgetBytes {
			c.full = true
			it.CutColumns(&rows.Columns, i+1)
			break
		}
	}
	return true
}

// showColumns returns the current rows.
func (c *Cursor) showColumns() store.Columns {
	rows := &c.rows
	c.returned += rows.Len()
	if c.win.counts() {
		c.examined += rows.Len()
	}
	if c.q.Select == nil {
		return rows
	}
	c.project.setShape(rows.Shape())
	c.chosen = chosenColumns{rows, c.project.index}
	return &c.chosen
}

// chosenColumns are rowColumns with some of the properties.
type chosenColumns struct {
	*rowColumns
	index []int
}

// Properties implements store.Columns.
func (s *chosenColumns) Properties() int { return len(s.index) }

// Property implements store.Columns.
func (s *chosenColumns) Property(i int) (string, edm.Type) {
	return s.rowColumns.Property(s.index[i])
}

// AppendWords implements store.Columns.
func (s *chosenColumns) AppendWords(dst []uint64, property int) []uint64 {
	return s.rowColumns.AppendWords(dst, s.index[property])
}

// AppendBytes implements store.Columns.
func (s *chosenColumns) AppendBytes(dst [][]byte, property int) ([][]byte, error) {
	return s.rowColumns.AppendBytes(dst, s.index[property])
}
