// Package bulk works on whole tables: it copies, counts and clears them, in directories and on servers.
package bulk

import (
	"context"

	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// Hold returns a source that gives the same entities each time that one query is run: it
// keeps those of the first run in memory.
func Hold(src transfer.Querier) transfer.Querier { return &held{src: src} }

// held is the result of one query.
type held struct {
	src  transfer.Querier
	list transfer.List
	read bool
}

// Query runs the query, or returns its result again.
func (h *held) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	if !h.read {
		list, err := h.readAll(ctx, table, q)
		if err != nil {
			return failedCursor{transfer.List(nil).Query(ctx, table, q), err}
		}
		h.list, h.read = list, true
	}
	return h.list.Query(ctx, table, q)
}

func (h *held) readAll(ctx context.Context, table string, q store.Query) (transfer.List, error) {
	var list transfer.List
	for e, err := range store.Entities(h.src.Query(ctx, table, q)) {
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// failedCursor is an empty cursor with an error.
type failedCursor struct {
	store.Cursor
	err error
}

func (c failedCursor) Err() error { return c.err }
