package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
)

// entityColumns are entities of one shape by columns.
type entityColumns []edm.Entity

func (c entityColumns) Len() int { return len(c) }
func (c entityColumns) AppendPartition(dst []byte, i int) []byte {
	return append(dst, c[i].Key.Partition...)
}
func (c entityColumns) AppendRow(dst []byte, i int) []byte { return append(dst, c[i].Key.Row...) }
func (c entityColumns) Timestamp(i int) edm.Ticks          { return c[i].Timestamp }
func (c entityColumns) Properties() int                    { return len(c[0].Properties) }
func (c entityColumns) Property(p int) (string, edm.Type) {
	return c[0].Properties[p].Name, c[0].Properties[p].Value.Type()
}

func (c entityColumns) AppendWords(dst []uint64, p int) []uint64 {
	for _, e := range c {
		dst = append(dst, e.Properties[p].Value.Word())
	}
	return dst
}

func (c entityColumns) AppendBytes(dst [][]byte, p int) ([][]byte, error) {
	for _, e := range c {
		dst = append(dst, e.Properties[p].Value.Bytes())
	}
	return dst, nil
}

// columnCursor is a mapCursor that can return some rows by columns, with a fault.
type columnCursor struct {
	*mapCursor
	fault func(rows []edm.Entity, c *mapCursor) store.Columns // nil: none
}

func sameShape(a, b edm.Properties) bool {
	return slices.EqualFunc(a, b, func(p, q edm.Property) bool { return p.Name == q.Name && p.Value.Type() == q.Value.Type() })
}

// NextColumns implements store.ColumnCursor.
func (c *columnCursor) NextColumns() store.Columns {
	var rows entityColumns
	for len(rows) < 4 {
		before := *c.mapCursor
		if !c.Next() || len(rows) > 0 && !sameShape(c.row.Properties, rows[0].Properties) {
			*c.mapCursor = before
			break
		}
		rows = append(rows, c.row)
	}
	switch {
	case len(rows) == 0:
		return nil
	case c.fault != nil:
		return c.fault(rows, c.mapCursor)
	}
	return rows
}

// byColumns makes the queries of h return some rows by columns, with a fault.
func byColumns(h *hooks, fault func(rows []edm.Entity, c *mapCursor) store.Columns) {
	h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
		return &columnCursor{h.mapStore.Query(ctx, table, q).(*mapCursor), fault}
	}
}

// columnMutants break rules about rows by columns.
var columnMutants = []mutant{
	{"columns forget a row", "QueryColumns", true, func(h *hooks) {
		byColumns(h, func(rows []edm.Entity, _ *mapCursor) store.Columns { return entityColumns(rows[:max(len(rows)-1, 1)]) })
	}},
	{"NextColumns moves and returns nothing", "QueryColumns", true, func(h *hooks) {
		byColumns(h, func(rows []edm.Entity, _ *mapCursor) store.Columns {
			if len(rows) < 4 {
				return nil
			}
			return entityColumns(rows)
		})
	}},
	{"columns go beyond Limit", "QueryColumns", true, func(h *hooks) {
		byColumns(h, func(rows []edm.Entity, c *mapCursor) store.Columns {
			if c.query.Limit > 4 {
				c.returned -= len(rows)
			}
			return entityColumns(rows)
		})
	}},
	{"columns are not in the order of the query", "QueryColumns", true, func(h *hooks) {
		byColumns(h, func(rows []edm.Entity, c *mapCursor) store.Columns {
			if c.query.Reverse {
				slices.Reverse(rows)
			}
			return entityColumns(rows)
		})
	}},
	{"a column has the keys of the row before", "QueryColumns", true, func(h *hooks) {
		byColumns(h, func(rows []edm.Entity, _ *mapCursor) store.Columns { return keysBefore{entityColumns(rows)} })
	}},
	{"a column has the words of the row before", "QueryColumns", true, func(h *hooks) {
		byColumns(h, func(rows []edm.Entity, _ *mapCursor) store.Columns { return wordsBefore{entityColumns(rows)} })
	}},
	{"a column has the bytes of the row before", "QueryColumns", true, func(h *hooks) {
		byColumns(h, func(rows []edm.Entity, _ *mapCursor) store.Columns { return bytesBefore{entityColumns(rows)} })
	}},
	{"columns have one Timestamp", "QueryColumns", true, func(h *hooks) {
		byColumns(h, func(rows []edm.Entity, _ *mapCursor) store.Columns {
			for i := range rows {
				rows[i].Timestamp = rows[0].Timestamp
			}
			return entityColumns(rows)
		})
	}},
	{"Err does not return the error of AppendBytes", "QueryColumns", true, func(h *hooks) {
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			return &peekingCursor{mapCursor: h.mapStore.Query(ctx, table, q).(*mapCursor)}
		}
	}},
	{"columns replace what was there", "QueryColumns", true, func(h *hooks) {
		byColumns(h, func(rows []edm.Entity, _ *mapCursor) store.Columns { return replacing{entityColumns(rows)} })
	}},
}

type keysBefore struct{ entityColumns }

func (c keysBefore) AppendRow(dst []byte, i int) []byte {
	return c.entityColumns.AppendRow(dst, max(i-1, 0))
}

type wordsBefore struct{ entityColumns }

func (c wordsBefore) AppendWords(dst []uint64, p int) []uint64 {
	n := len(dst)
	dst = c.entityColumns.AppendWords(dst, p)
	copy(dst[n+1:], dst[n:])
	return dst
}

type bytesBefore struct{ entityColumns }

func (c bytesBefore) AppendBytes(dst [][]byte, p int) ([][]byte, error) {
	n := len(dst)
	dst, err := c.entityColumns.AppendBytes(dst, p)
	copy(dst[n+1:], dst[n:])
	return dst, err
}

// peekingCursor returns its first row, if that has a String, by columns that cannot be read,
// and once more by Next.
type peekingCursor struct {
	*mapCursor
	peeked bool
}

// NextColumns implements store.ColumnCursor.
func (c *peekingCursor) NextColumns() store.Columns {
	if c.peeked {
		return nil
	}
	c.peeked = true
	before := *c.mapCursor
	defer func() { *c.mapCursor = before }()
	isString := func(p edm.Property) bool { return p.Value.Type() == edm.TypeString }
	if !c.Next() || !slices.ContainsFunc(c.row.Properties, isString) {
		return nil
	}
	return unreadable{entityColumns{c.row}}
}

type unreadable struct{ entityColumns }

func (c unreadable) AppendBytes(dst [][]byte, _ int) ([][]byte, error) {
	return dst, errors.New("cannot be read")
}

type replacing struct{ entityColumns }

func (c replacing) AppendWords(_ []uint64, p int) []uint64 {
	return c.entityColumns.AppendWords(nil, p)
}

// TestColumns runs the queries of the suite on a store that returns rows by columns.
func TestColumns(t *testing.T) {
	race.SkipOneGoroutine(t)
	b := Backend{Open: func(testing.TB) store.Store {
		h := &hooks{mapStore: newMap(fixedClock)}
		byColumns(h, nil)
		return h
	}}
	for _, s := range queryTests {
		t.Run(s.name, func(t *testing.T) { s.run(newTester(t, b)) })
	}
	RunModel(t, b, 1, 400)
}
