package scan

import (
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
	if c.state == nil || c.pos == atEnd || c.q.Select != nil || c.q.BudgetBytes > 0 {
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
		rows, left := c.win.one.Iterator().NextSelectedColumns(c.q.Reverse, most)
		if rows != nil {
			return c.showColumns(rows)
		}
		if left {
			return nil
		}
		c.endWindow()
	}
	return nil
}

const (
	// minColumns is the least number of rows that walkColumns returns.
	minColumns = 4
	// Where it finds fewer, it does not try again for one row, then for twice as many as the
	// time before, up to maxByRow. Three overlapping runs would need a quarter more CPU
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
		c.fewer = min(max(1, 2*c.fewer), maxByRow)
		c.byRow = c.fewer
		return nil
	}
	rows, moved := c.win.files[i].Iterator().NextColumns(c.q.Reverse, most)
	if rows == nil {
		return nil
	}
	c.it.Moved(moved)
	c.pos, c.fewer = onExamined, 0
	if c.walk -= rows.Len(); c.walk == 0 {
		c.endWalk()
	}
	return c.showColumns(rows)
}

// showColumns makes rows the current rows.
func (c *Cursor) showColumns(rows *sstable.Columns) store.Columns {
	c.row = nil
	c.returned += rows.Len()
	if c.win.counts() {
		c.examined += rows.Len()
	}
	c.rows = rowColumns{rows, c}
	return &c.rows
}
