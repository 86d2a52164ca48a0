package storetest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// promiseMutants break promises of Backend that the contract does not make.
var promiseMutants = []mutant{
	{"a query takes its snapshot at the first Next", "QuerySnapshot", true, func(h *hooks) {
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			q = owned(q)
			w := &wrapped{Cursor: h.mapStore.Query(ctx, table, q)}
			w.next = func() bool {
				w.Cursor, w.next = h.mapStore.Query(ctx, table, q), nil
				return w.Cursor.Next()
			}
			return w
		}
	}},
	{"each row of a query has a snapshot", "RaceSnapshot RaceWholeBatches QuerySnapshot", false, eachRowAnew},
	{"a deleted table's queries end", "QueryDeletedTable", false, func(h *hooks) {
		var deleted atomic.Int64
		h.deleteTable = func(ctx context.Context, table string) error {
			deleted.Add(1)
			return h.mapStore.DeleteTable(ctx, table)
		}
		h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
			at := deleted.Load()
			c := h.mapStore.Query(ctx, table, q)
			return &wrapped{Cursor: c, next: func() bool { return deleted.Load() == at && c.Next() }}
		}
	}},
	{"partitions have their own clocks", "Timestamps", true, func(h *hooks) {
		var mu sync.Mutex
		clocks := map[string]edm.Ticks{} // by partition
		at := func(partition string, f func()) {
			mu.Lock()
			defer mu.Unlock()
			h.mu.Lock()
			h.last = clocks[partition]
			h.mu.Unlock()
			f()
			h.mu.Lock()
			defer h.mu.Unlock()
			clocks[partition] = h.last
		}
		h.apply = func(ctx context.Context, table string, ops []store.Op) (r []store.Result, err error) {
			partition := ""
			if len(ops) > 0 {
				partition = ops[0].Entity.Key.Partition
			}
			at(partition, func() { r, err = h.mapStore.Apply(ctx, table, ops...) })
			return r, err
		}
		h.createTable = func(ctx context.Context, table string) (err error) {
			at("", func() { err = h.mapStore.CreateTable(ctx, table) })
			return err
		}
	}},
}

// owned returns q with memory of its own, for a cursor that uses it later.
func owned(q store.Query) store.Query {
	q.Select = slices.Clone(q.Select)
	if q.From != nil {
		from := *q.From
		q.From = &from
	}
	return q
}

// eachRowAnew sets a hook whose cursors read each row by a query of its own.
func eachRowAnew(h *hooks) {
	h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
		q = owned(q)
		c := h.mapStore.Query(ctx, table, q)
		if c.Err() != nil || q.Budget > 0 || q.BudgetBytes > 0 {
			return c
		}
		w := &wrapped{Cursor: c}
		left, ended := q.Limit, false
		w.next = func() bool {
			if ended {
				return false
			}
			one := q
			one.Limit = 1
			w.Cursor = h.mapStore.Query(ctx, table, one)
			ok := w.Cursor.Next()
			w.Cursor.(*mapCursor).look()
			q.From = w.Cursor.Resume()
			left--
			ended = !ok || q.From == nil || left == 0
			return ok
		}
		w.close = func() error {
			ended = true
			return w.Cursor.Close()
		}
		return w
	}
}

// look sets the resume key and keeps the row.
func (c *mapCursor) look() {
	row := c.row
	c.Next()
	c.row = row
}
