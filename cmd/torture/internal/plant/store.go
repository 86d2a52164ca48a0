package plant

import (
	"context"

	"github.com/tablerock-db/tablerock/store"
)

// splitter writes a batch as two batches.
type splitter struct{ store.Store }

// Apply implements store.Store.
func (s splitter) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	// Do not split the smaller batches of a group commit: it would change their order
	// in the log.
	const least = 5
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
