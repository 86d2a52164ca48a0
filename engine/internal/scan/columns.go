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

// NextColumns implements store.ColumnCursor. It returns the rows of windows with one source.
func (c *Cursor) NextColumns() store.Columns {
	if c.state == nil || c.pos == atEnd || c.q.Select != nil || c.q.BudgetBytes > 0 {
		return nil
	}
	for c.walk == 0 && len(c.rest) > 0 && c.ctx.Err() == nil {
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
		case !c.win.open:
			if c.left() <= 0 {
				return nil
			}
			c.openWindow(false)
			continue
		}
		rows, left := c.win.one.Iterator().NextSelectedColumns(c.q.Reverse, most)
		if rows != nil {
			c.row = nil
			c.returned += rows.Len()
			if c.win.counts() {
				c.examined += rows.Len()
			}
			c.rows = rowColumns{rows, c}
			return &c.rows
		}
		if left {
			return nil
		}
		c.endWindow()
	}
	return nil
}
