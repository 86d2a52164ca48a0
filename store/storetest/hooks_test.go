package storetest

import (
	"context"
	"errors"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// hooks is a mapStore whose calls go through the functions that are not nil.
type hooks struct {
	*mapStore
	apply       func(ctx context.Context, table string, ops []store.Op) ([]store.Result, error)
	query       func(ctx context.Context, table string, q store.Query) store.Cursor
	get         func(ctx context.Context, table string, key edm.Key) (edm.Entity, error)
	view        func(ctx context.Context, table string, key edm.Key, read func(edm.Row) error) error
	createTable func(ctx context.Context, table string) error
	deleteTable func(ctx context.Context, table string) error
	list        func(ctx context.Context, from string, limit int) ([]store.TableInfo, error)
	setMeta     func(ctx context.Context, table string, meta []byte) error
	close       func() error
	ping        func(ctx context.Context) error
}

// Ping implements store.Pinger.
func (h *hooks) Ping(ctx context.Context) error {
	if h.ping != nil {
		return h.ping(ctx)
	}
	_, err := h.mapStore.AccountMeta(ctx)
	return err
}

func (h *hooks) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	if h.apply != nil {
		return h.apply(ctx, table, ops)
	}
	return h.mapStore.Apply(ctx, table, ops...)
}

func (h *hooks) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	if h.query != nil {
		return h.query(ctx, table, q)
	}
	return h.mapStore.Query(ctx, table, q)
}

func (h *hooks) Get(ctx context.Context, table string, key edm.Key) (edm.Entity, error) {
	if h.get != nil {
		return h.get(ctx, table, key)
	}
	return h.mapStore.Get(ctx, table, key)
}

func (h *hooks) View(ctx context.Context, table string, key edm.Key, read func(edm.Row) error) error {
	if h.view != nil {
		return h.view(ctx, table, key, read)
	}
	return h.mapStore.View(ctx, table, key, read)
}

func (h *hooks) CreateTable(ctx context.Context, table string) error {
	if h.createTable != nil {
		return h.createTable(ctx, table)
	}
	return h.mapStore.CreateTable(ctx, table)
}

func (h *hooks) DeleteTable(ctx context.Context, table string) error {
	if h.deleteTable != nil {
		return h.deleteTable(ctx, table)
	}
	return h.mapStore.DeleteTable(ctx, table)
}

func (h *hooks) Tables(ctx context.Context, from string, limit int) ([]store.TableInfo, error) {
	if h.list != nil {
		return h.list(ctx, from, limit)
	}
	return h.mapStore.Tables(ctx, from, limit)
}

func (h *hooks) SetTableMeta(ctx context.Context, table string, meta []byte) error {
	if h.setMeta != nil {
		return h.setMeta(ctx, table, meta)
	}
	return h.mapStore.SetTableMeta(ctx, table, meta)
}

func (h *hooks) Close() error {
	if h.close != nil {
		return h.close()
	}
	return h.mapStore.Close()
}

// wrapped is a cursor with changed results.
type wrapped struct {
	store.Cursor
	next   func() bool
	row    func() edm.Row
	resume func() *edm.Key
	err    func() error
	close  func() error
}

func (w *wrapped) Next() bool {
	if w.next != nil {
		return w.next()
	}
	return w.Cursor.Next()
}

func (w *wrapped) Row() edm.Row {
	if w.row != nil {
		return w.row()
	}
	return w.Cursor.Row()
}

func (w *wrapped) Resume() *edm.Key {
	if w.resume != nil {
		return w.resume()
	}
	return w.Cursor.Resume()
}

func (w *wrapped) Err() error {
	if w.err != nil {
		return w.err()
	}
	return w.Cursor.Err()
}

func (w *wrapped) Close() error {
	if w.close != nil {
		return w.close()
	}
	return w.Cursor.Close()
}

// eachOp sets a hook that changes copies of all ops.
func eachOp(h *hooks, change func(op *store.Op)) {
	h.apply = func(ctx context.Context, table string, ops []store.Op) ([]store.Result, error) {
		ops = slices.Clone(ops)
		for i := range ops {
			ops[i].Entity.Properties = slices.Clone(ops[i].Entity.Properties)
			change(&ops[i])
		}
		return h.mapStore.Apply(ctx, table, ops...)
	}
}

// eachStored sets a hook that changes the entities that were written.
func eachStored(h *hooks, change func(op *store.Op, e *edm.Entity)) {
	h.apply = func(ctx context.Context, table string, ops []store.Op) ([]store.Result, error) {
		r, err := h.mapStore.Apply(ctx, table, ops...)
		if err != nil {
			return r, err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		for i := range ops {
			if e := h.tables[edm.FoldTableName(table)].rows[ops[i].Entity.Key]; e != nil {
				change(&ops[i], e)
			}
		}
		return r, nil
	}
}

// eachQuery sets a hook that changes queries.
func eachQuery(h *hooks, change func(q *store.Query)) {
	h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
		change(&q)
		return h.mapStore.Query(ctx, table, q)
	}
}

// eachResult sets a hook that changes the results of Apply.
func eachResult(h *hooks, change func(table string, ops []store.Op, r []store.Result, err error) ([]store.Result, error)) {
	h.apply = func(ctx context.Context, table string, ops []store.Op) ([]store.Result, error) {
		r, err := h.mapStore.Apply(ctx, table, ops...)
		return change(table, ops, r, err)
	}
}

// opErrors sets a hook that changes the OpErrors of Apply.
func opErrors(h *hooks, change func(ops []store.Op, e *store.OpError)) {
	eachResult(h, func(_ string, ops []store.Op, r []store.Result, err error) ([]store.Result, error) {
		var e *store.OpError
		if errors.As(err, &e) {
			change(ops, e)
		}
		return r, err
	})
}

// afterWrite sets a hook that changes each open cursor once, after the first write.
func afterWrite(h *hooks, change func(c *mapCursor)) {
	h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
		c := h.mapStore.Query(ctx, table, q).(*mapCursor)
		at, done := h.last, false
		return &wrapped{Cursor: c, next: func() bool {
			if !done && h.last != at {
				done = true
				change(c)
			}
			return c.Next()
		}}
	}
}

// resumeAtEnd sets a hook that changes the resume keys of queries whose ctx ended. change
// gets the key of the last row, if there is one.
func resumeAtEnd(h *hooks, change func(q store.Query, last *edm.Key) *edm.Key) {
	h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
		c := h.mapStore.Query(ctx, table, q)
		w := &wrapped{Cursor: c}
		var last *edm.Key
		w.next = func() bool {
			if !c.Next() {
				return false
			}
			k := c.Row().Key()
			last = &k
			return true
		}
		w.resume = func() *edm.Key {
			if c.Err() != nil {
				return change(q, last)
			}
			return c.Resume()
		}
		return w
	}
}

// resumeAt sets a hook that changes the resume keys of pages. change gets the key of
// the last row of the page, if there is one, and the correct resume key.
func resumeAt(h *hooks, change func(last, next *edm.Key) *edm.Key) {
	h.query = func(ctx context.Context, table string, q store.Query) store.Cursor {
		c := h.mapStore.Query(ctx, table, q)
		w := &wrapped{Cursor: c}
		var last *edm.Key
		w.next = func() bool {
			if !c.Next() {
				return false
			}
			k := c.Row().Key()
			last = &k
			return true
		}
		w.resume = func() *edm.Key { return change(last, c.Resume()) }
		return w
	}
}
