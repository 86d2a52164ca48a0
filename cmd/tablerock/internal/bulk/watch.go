package bulk

import (
	"context"

	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// Watched is a source that notes what its queries return.
type Watched struct {
	transfer.Querier
	// Rows is the number of rows that all queries together have returned.
	Rows int64
	// Unseen are those of the properties given to Watch that no row had.
	Unseen []string
}

// Watch returns a source that reads from src. names are the properties to look for.
func Watch(src transfer.Querier, names []string) *Watched {
	return &Watched{Querier: src, Unseen: append([]string(nil), names...)}
}

// Query runs a query of the source.
func (w *Watched) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	return &watchedCursor{w.Querier.Query(ctx, table, q), w}
}

type watchedCursor struct {
	store.Cursor
	w *Watched
}

func (c *watchedCursor) Next() bool {
	if !c.Cursor.Next() {
		return false
	}
	c.w.Rows++
	for i := 0; i < len(c.w.Unseen); {
		if _, ok := c.Row().Lookup(c.w.Unseen[i]); ok {
			c.w.Unseen = append(c.w.Unseen[:i], c.w.Unseen[i+1:]...)
			continue
		}
		i++
	}
	return true
}
