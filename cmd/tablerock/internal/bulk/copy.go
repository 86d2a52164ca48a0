package bulk

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// Copied counts the work of a copy.
type Copied struct {
	Rows    int64 // read from the source
	Written int64 // the others were there already
}

// Copier copies tables from one store to another.
type Copier struct {
	From transfer.Querier
	To   store.Store
	// Load, if set, writes entities of one table in the order of their keys. Without it
	// they are written by transactions of To.
	Load transfer.LoadFunc
	// Progress is called from time to time by one goroutine at a time.
	Progress func(Copied)
}

// Tables returns the tables to copy from a store: those of names, which must exist, or all
// if there are none.
func Tables(ctx context.Context, from store.Store, names []string) ([]string, error) {
	list, err := from.Tables(ctx, "", 0)
	if err != nil {
		return nil, fmt.Errorf("list the tables: %w", err)
	}
	there := map[string]string{}
	var all []string
	for _, t := range list {
		all = append(all, t.Name)
		there[edm.FoldTableName(t.Name)] = t.Name
	}
	if len(names) == 0 {
		return all, nil
	}
	var wanted []string
	for _, name := range names {
		found, ok := there[edm.FoldTableName(name)]
		if !ok {
			return nil, fmt.Errorf("table %s: %w", name, store.ErrTableNotFound)
		}
		wanted = append(wanted, found)
	}
	return wanted, nil
}

// progressRows is the number of rows between two calls of Progress.
const progressRows = 1024

// Table copies the entities of a table, which it creates if it is missing. It does not write
// an entity that To has already with the same properties, so that a second copy after an
// interruption continues the first. Entities that only To has stay.
func (c *Copier) Table(ctx context.Context, table string) (Copied, error) {
	if err := c.To.CreateTable(ctx, table); err != nil && !errors.Is(err, store.ErrTableExists) {
		return Copied{}, fmt.Errorf("create table %s: %w", table, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var done Copied
	missing := c.missing(ctx, table, &done)
	if c.Load != nil {
		err := c.Load(ctx, table, missing, func(int64) {})
		return done, err
	}
	err := c.apply(ctx, table, missing)
	return done, err
}

// missing returns the entities of From that To does not have. It counts them in done.
func (c *Copier) missing(ctx context.Context, table string, done *Copied) iter.Seq2[edm.Entity, error] {
	return func(yield func(edm.Entity, error) bool) {
		there := c.To.Query(ctx, table, store.Query{})
		defer there.Close()
		more := there.Next()
		for e, err := range store.Entities(c.From.Query(ctx, table, store.Query{})) {
			if err != nil {
				yield(e, fmt.Errorf("read table %s: %w", table, err))
				return
			}
			for more && there.Row().Key().Compare(e.Key) < 0 {
				more = there.Next()
			}
			if err := there.Err(); err != nil {
				yield(e, fmt.Errorf("read table %s of the destination: %w", table, err))
				return
			}
			if done.Rows++; done.Rows%progressRows == 0 && c.Progress != nil {
				c.Progress(*done)
			}
			if more && there.Row().Key() == e.Key && sameProperties(e.Properties, there.Row()) {
				continue
			}
			done.Written++
			if !yield(e, nil) {
				return
			}
		}
	}
}

// sameProperties reports whether row has these properties, in any order.
func sameProperties(props edm.Properties, row edm.Row) bool {
	if len(props) != row.Len() {
		return false
	}
	for i := range props {
		v, ok := row.Lookup(props[i].Name)
		if !ok || !sameValue(v, props[i].Value) {
			return false
		}
	}
	return true
}

// sameValue reports whether two values are equal. The protocol does not keep the bits of a
// NaN.
func sameValue(a, b edm.Value) bool {
	if a.Equal(b) {
		return true
	}
	x, ok := a.Double()
	y, too := b.Double()
	return ok && too && x != x && y != y && a.Type() == b.Type()
}

// inFlight is the number of concurrent transactions.
const inFlight = 16

// apply writes entities, each key once, by concurrent transactions.
func (c *Copier) apply(ctx context.Context, table string, entities iter.Seq2[edm.Entity, error]) error {
	return batches(ctx, entities, func(ctx context.Context, list []edm.Entity) error {
		ops := make([]store.Op, len(list))
		for i := range list {
			ops[i] = store.InsertOrReplace(list[i])
		}
		_, err := c.To.Apply(ctx, table, ops...)
		return err
	})
}

// batches calls work concurrently with entities of one partition, of BatchBytes and of a
// transaction's number of operations at most. Each key must occur once. It stops at the first
// error and returns it.
func batches(ctx context.Context, entities iter.Seq2[edm.Entity, error], work func(ctx context.Context, list []edm.Entity) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	jobs := make(chan []edm.Entity)
	var workers sync.WaitGroup
	for range inFlight {
		workers.Go(func() {
			for list := range jobs {
				if ctx.Err() != nil {
					continue
				}
				if err := work(ctx, list); err != nil {
					cancel(err)
				}
			}
		})
	}
	var list []edm.Entity
	bytes := 0
	for e, err := range entities {
		if err != nil {
			cancel(err)
		}
		if ctx.Err() != nil {
			break
		}
		size := edm.EntitySize(e.Key, e.Properties)
		if len(list) > 0 && (list[0].Key.Partition != e.Key.Partition || len(list) == edm.MaxBatchOps || bytes+size > BatchBytes) {
			jobs <- list
			list, bytes = nil, 0
		}
		list, bytes = append(list, e), bytes+size
	}
	if len(list) > 0 {
		jobs <- list
	}
	close(jobs)
	workers.Wait()
	return context.Cause(ctx)
}

// Count returns the number of entities that a query finds. progress is called with it from
// time to time.
func Count(ctx context.Context, src transfer.Querier, table string, q store.Query, progress func(rows int64)) (int64, error) {
	q.Select = []string{}
	n := int64(0)
	err := transfer.Each(ctx, src, table, q, func(edm.Row) error {
		if n++; n%progressRows == 0 {
			progress(n)
		}
		return nil
	})
	return n, err
}
