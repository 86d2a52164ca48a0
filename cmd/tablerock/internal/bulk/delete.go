package bulk

import (
	"context"
	"errors"
	"sync"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
)

// Deleted counts the entities of a Delete.
type Deleted struct {
	Rows    int64 // deleted
	Changed int64 // written by others after they were read, and kept
}

// Delete deletes the entities of a table that a filter keeps, or all if it is nil, by
// concurrent transactions. With a filter, it keeps an entity that is written after it was
// read, because it may not match any more. progress is called with the number of deleted
// entities from time to time.
func Delete(ctx context.Context, s store.Store, table string, e *filter.Expr, progress func(rows int64)) (Deleted, error) {
	var mu sync.Mutex
	var n Deleted
	found := store.Entities(s.Query(ctx, table, store.Query{Filter: e, Select: []string{}}))
	err := batches(ctx, found, func(ctx context.Context, list []edm.Entity) error {
		ops := make([]store.Op, len(list))
		for i := range list {
			ops[i] = store.Delete(list[i].Key, store.Any)
			if e != nil {
				ops[i] = store.Delete(list[i].Key, list[i].Timestamp.ETag())
			}
		}
		part, err := remove(ctx, s, table, ops)
		mu.Lock()
		defer mu.Unlock()
		n.Rows += part.Rows
		n.Changed += part.Changed
		progress(n.Rows)
		return err
	})
	return n, err
}

// remove executes deletes in one partition, of which some may have no entity any more, or one
// that has changed.
func remove(ctx context.Context, s store.Store, table string, ops []store.Op) (n Deleted, err error) {
	for len(ops) > 0 {
		_, err := s.Apply(ctx, table, ops...)
		var op *store.OpError
		switch {
		case err == nil:
			n.Rows += int64(len(ops))
			return n, nil
		case errors.As(err, &op) && errors.Is(err, store.ErrPrecondition):
			n.Changed++
		case !errors.As(err, &op) || !errors.Is(err, store.ErrEntityNotFound):
			return n, err
		}
		ops = append(ops[:op.Index:op.Index], ops[op.Index+1:]...)
	}
	return n, nil
}
