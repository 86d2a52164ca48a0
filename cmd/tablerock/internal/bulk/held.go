// Package bulk works on whole tables: it copies, counts and clears them, in directories and on servers.
package bulk

import (
	"context"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// Hold returns a source that gives the same entities each time that one query is run: it
// keeps those of the first run in memory.
func Hold(src transfer.Querier) transfer.Querier { return &held{src: src} }

// held is the result of one query.
type held struct {
	src  transfer.Querier
	list []edm.Entity
	read bool
}

// Query runs the query, or returns its result again.
func (h *held) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	c := &heldCursor{h: h, at: -1}
	if h.read {
		return c
	}
	for e, err := range store.Entities(h.src.Query(ctx, table, q)) {
		if err != nil {
			c.err, h.list = err, nil
			return c
		}
		h.list = append(h.list, e)
	}
	h.read = true
	return c
}

// heldCursor iterates over a held result.
type heldCursor struct {
	h   *held
	at  int
	err error
}

func (c *heldCursor) Next() bool {
	c.at++
	return c.at < len(c.h.list)
}

func (c *heldCursor) Row() edm.Row     { return c.h.list[c.at].View() }
func (c *heldCursor) Resume() *edm.Key { return nil }
func (c *heldCursor) Err() error       { return c.err }
func (c *heldCursor) Close() error     { return nil }
