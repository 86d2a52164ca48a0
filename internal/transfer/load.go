package transfer

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tablerock-db/tablerock/edm"
)

// LoadFunc writes the entities of a sequence to a table, replacing those that exist. It
// keeps no reference to the properties of an entity when it asks for the next. It calls
// installed with the number of entities that are durable when that has grown.
type LoadFunc func(ctx context.Context, table string, entities iter.Seq2[edm.Entity, error], installed func(entities int64)) error

// progressEvery is how many rows are read between two calls of ImportOptions.Progress.
const progressEvery = 1024

// load imports with ImportOptions.Load. A row that cannot be imported ends the sequence,
// so that the rows before it are stored.
func (im *importer) load() {
	im.r.reuse = true // a LoadFunc keeps no entity
	rec, ok := im.nextValid()
	if !ok || !im.create() {
		return
	}
	err := im.o.Load(im.ctx, im.table, func(yield func(edm.Entity, error) bool) {
		for ; ok; rec, ok = im.nextValid() {
			if im.valid.Load()%progressEvery == 0 {
				im.report(func() {})
			}
			if !yield(rec.Entity, nil) {
				return
			}
		}
		if err := im.ctx.Err(); err != nil {
			yield(edm.Entity{}, err)
		}
	}, func(entities int64) {
		im.report(func() {
			im.progress.Rows = entities // +checklocksignore: report holds mu
			im.progress.Transactions++  // +checklocksignore: report holds mu
		})
	})
	switch stop := im.ctx.Err(); {
	case err == nil:
	case stop != nil && errors.Is(err, stop):
		im.fail(0, stop)
	default:
		im.fail(0, fmt.Errorf("%s: import up to line %d: %w", im.r.o.Name, rec.Last, err))
	}
}

// report changes the progress and reports it.
func (im *importer) report(change func()) {
	im.mu.Lock()
	defer im.mu.Unlock()
	change()
	im.progress.Bytes, im.progress.Read = im.r.Bytes(), im.valid.Load()
	if im.o.Progress != nil {
		im.o.Progress(im.progress)
	}
}

// nextValid returns the next record that can be imported, and false at the end or after an
// error, which it has passed to fail.
func (im *importer) nextValid() (rec Record, ok bool) {
	for {
		rec, err := im.r.Next()
		if stop := im.ctx.Err(); stop != nil {
			im.fail(0, stop)
			return rec, false
		}
		if err != nil {
			if !im.handleReadError(err) {
				return rec, false
			}
			continue
		}
		im.valid.Add(1)
		return rec, true
	}
}

// rowError adds the key of a row to its error.
func rowError(err error, key edm.Key) error {
	return fmt.Errorf("%w (PartitionKey %s, RowKey %s)", err, quote(key.Partition), quote(key.Row))
}
