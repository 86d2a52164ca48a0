package transfer

import (
	"context"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// List is a source of entities in memory. It returns all of them for each query.
type List []edm.Entity

// Query implements Querier.
func (l List) Query(context.Context, string, store.Query) store.Cursor { return &listCursor{l, -1} }

type listCursor struct {
	list List
	at   int
}

func (c *listCursor) Next() bool {
	c.at++
	return c.at < len(c.list)
}

func (c *listCursor) Row() edm.Row     { return c.list[c.at].View() }
func (c *listCursor) Resume() *edm.Key { return nil }
func (c *listCursor) Err() error       { return nil }
func (c *listCursor) Close() error     { return nil }
