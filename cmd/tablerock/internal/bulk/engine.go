package bulk

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// LoadOf returns a function that writes entities as sorted files.
func LoadOf(db *engine.DB) transfer.LoadFunc {
	return func(ctx context.Context, table string, entities iter.Seq2[edm.Entity, error], installed func(int64)) error {
		_, err := db.Load(ctx, table, entities, engine.LoadOptions{Installed: func(r engine.LoadResult) { installed(r.Entities) }})
		return err
	}
}

// ApplyOf returns a function that applies batches, about a hundred with one sync.
func ApplyOf(db *engine.DB) transfer.ApplyFunc {
	return func(ctx context.Context, table string, batches [][]store.Op) []error {
		_, err := db.ApplyBatches(ctx, table, batches)
		var errs engine.BatchErrors
		if err != nil && !errors.As(err, &errs) {
			return slices.Repeat([]error{err}, len(batches))
		}
		return errs
	}
}
