package plant

import (
	"context"

	"github.com/tablerock-db/tablerock/store"
)

// splitter commits a batch in two.
type splitter struct{ store.Store }

// Apply implements store.Store.
func (s splitter) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	const least = 5 // members of a group have fewer, and an order that a split would show
	if len(ops) < least {
		return s.Store.Apply(ctx, table, ops...)
	}
	half := len(ops) / 2
	head, err := s.Store.Apply(ctx, table, ops[:half]...)
	if err != nil {
		return nil, err
	}
	tail, err := s.Store.Apply(ctx, table, ops[half:]...)
	if err != nil {
		return nil, err
	}
	return append(head, tail...), nil
}
