package scan

import (
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/store"
)

// rowColumns are the rows that NextColumns returned last.
type rowColumns struct {
	*sstable.Columns
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
		it := c.win.one.Iterator()
		rows, left := it.NextSelectedColumns(c.q.Reverse, most)
		if rows != nil {
			if !c.fit(it, rows) {
				return nil
			}
			return c.showColumns()
		}
		if left {
			return nil
		}
		c.endWindow()
	}
	return nil
}

const (
	// walkColumns does not ask for columns of fewer rows than minColumns.
	minColumns = 4
	// If there are fewer, the next byRow calls return nil at once. byRow begins with 1 and
	// doubles each time, up to maxByRow. Three overlapping runs would need 15 to 23 % more CPU
	// without (bench, BenchmarkShortQuery).
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
		c.wait()
		return nil
	}
	it := c.win.files[i].Iterator()
	rows := it.NextColumns(c.q.Reverse, most)
	if rows == nil {
		c.wait()
		return nil
	}
	if rows.Len() < minColumns { // the heap unit or the shape ends
		c.wait()
	} else {
		c.waited = 0
	}
	if !c.fit(it, rows) {
		return nil
	}
	c.it.Moved(rows.Len() - 1)
	c.pos = onExamined
	if c.walk -= rows.Len(); c.walk == 0 {
		c.endWalk()
	}
	return c.showColumns()
}

// wait sets byRow.
func (c *Cursor) wait() {
	c.waited = min(max(1, 2*c.waited), maxByRow)
	c.byRow = c.waited
}

// fit makes rows the current rows. If they reach BudgetBytes, the rows after the one that
// reaches it are dropped, and the iterator moves back to that row. It returns false if a value cannot be read, which
// ends the cursor.
func (c *Cursor) fit(it *sstable.Iterator, rows *sstable.Columns) bool {
	c.rows = rowColumns{rows, c}
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
		if s.values, err = c.rows.AppendBytes(s.values[:0], p); err != nil {
			return false
		}
		for i, v := range s.values {
			s.bytes[i] += len(v)
		}
	}
	for i, n := range s.bytes {
		if c.bytes += n; c.bytes >= c.q.BudgetBytes {
			c.full = true
			it.CutColumns(i + 1)
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
