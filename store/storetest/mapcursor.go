package storetest

import (
	"context"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
)

// mapCursor iterates over the rows of a mapStore at the call of Query.
type mapCursor struct {
	ctx      context.Context
	query    store.Query
	todo     []*edm.Entity // the remaining rows, next first
	examined int
	returned int
	bytes    int // of the rows returned
	ended    bool
	row      edm.Entity // the current row, which Next overwrites
	resume   *edm.Key
	err      error
}

// Query implements store.Store.
func (m *mapStore) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	c := &mapCursor{ctx: ctx, query: q}
	c.query.Select = slices.Clone(q.Select)
	if c.err = store.CheckQuery(q); c.err != nil {
		return c
	}
	// Next reports the end of ctx, with the key to resume from.
	t, err := m.enterTable(context.WithoutCancel(ctx), table)
	if err != nil {
		c.err = err
		return c
	}
	defer m.leave()
	if t.sorted == nil {
		for _, e := range t.rows {
			t.sorted = append(t.sorted, e)
		}
		slices.SortFunc(t.sorted, func(a, b *edm.Entity) int { return a.Key.Compare(b.Key) })
	}
	for _, e := range t.sorted {
		if inQuery(e.Key, q) {
			c.todo = append(c.todo, e)
		}
	}
	if q.Reverse {
		slices.Reverse(c.todo)
	}
	return c
}

// inQuery reports whether q examines an entity of key k.
func inQuery(k edm.Key, q store.Query) bool {
	if q.From != nil {
		c := k.Compare(*q.From)
		if c < 0 && !q.Reverse || c > 0 && q.Reverse {
			return false
		}
	}
	return q.Filter == nil || slices.ContainsFunc(q.Filter.Ranges(), func(r filter.Range) bool {
		return (r.From.Kind == filter.Unbounded || isAfter(k, r.From)) &&
			(r.To.Kind == filter.Unbounded || !isAfter(k, r.To))
	})
}

// isAfter reports whether k is after b, which is not Unbounded.
func isAfter(k edm.Key, b filter.Bound) bool {
	switch b.Kind {
	case filter.BeforePartition:
		return edm.Compare(k.Partition, b.Key.Partition) >= 0
	case filter.BeforeRow:
		return k.Compare(b.Key) >= 0
	case filter.AfterRow:
		return k.Compare(b.Key) > 0
	case filter.AfterPartition:
		return edm.Compare(k.Partition, b.Key.Partition) > 0
	}
	panic("a bound of unknown kind")
}

// Next implements store.Cursor.
func (c *mapCursor) Next() bool {
	for !c.ended && c.err == nil && len(c.todo) > 0 {
		e := c.todo[0]
		c.err = c.ctx.Err()
		if c.err != nil || reached(c.returned, c.query.Limit) || reached(c.examined, c.query.Budget) || reached(c.bytes, c.query.BudgetBytes) {
			c.ended, c.resume = true, &edm.Key{Partition: e.Key.Partition, Row: e.Key.Row}
			return false
		}
		c.todo = c.todo[1:]
		c.examined++
		if c.query.Filter != nil && !c.query.Filter.Match(e.View()) {
			continue
		}
		c.returned++
		c.row = edm.Entity{Key: e.Key, Timestamp: e.Timestamp}
		for _, p := range e.Properties {
			if c.query.Select == nil || slices.Contains(c.query.Select, p.Name) {
				c.row.Properties = append(c.row.Properties, p)
			}
		}
		c.bytes += leastBytes(c.row)
		return true
	}
	c.ended = true
	return false
}

// leastBytes is the least size that a row can have for Query.BudgetBytes.
func leastBytes(row edm.Entity) int {
	n := 0
	for _, p := range row.Properties {
		n += len(p.Value.Bytes())
	}
	return n
}

// reached reports whether n has reached limit, where 0 means no limit.
func reached(n, limit int) bool { return limit > 0 && n >= limit }

// Row implements store.Cursor.
func (c *mapCursor) Row() edm.Row { return c.row.View() }

// Resume implements store.Cursor.
func (c *mapCursor) Resume() *edm.Key { return c.resume }

// Err implements store.Cursor.
func (c *mapCursor) Err() error { return c.err }

// Close implements store.Cursor.
func (c *mapCursor) Close() error {
	c.ended = true
	return nil
}
