package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/engine/internal/batch"
	"github.com/tablerock-db/tablerock/store"
)

const (
	// A group of ApplyBatches ends when it has so many batches, or when their entries have
	// so many bytes. A group of 128 entities of 230 bytes takes less time to append than to
	// sync.
	groupBatches = 128
	groupBytes   = 1 << 20
	// recordBytes ends a record of several batches, during whose copy into the log no other
	// write can be appended.
	recordBytes = 64 << 10
)

// BatchErrors is the error of ApplyBatches. It has an element for each batch: its error, or
// nil if it was applied.
type BatchErrors []error

// Error returns the number of batches that failed and the error of the first one.
func (e BatchErrors) Error() string {
	failed, first := 0, 0
	for i, err := range e {
		if err != nil {
			if failed++; failed == 1 {
				first = i
			}
		}
	}
	if failed == 0 {
		return "no batch failed"
	}
	return fmt.Sprintf("%d of %d batches failed, the first is batch %d: %v", failed, len(e), first, e[first])
}

// Unwrap returns the errors that are not nil, for errors.Is and errors.As.
func (e BatchErrors) Unwrap() []error {
	var errs []error
	for _, err := range e {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// ApplyBatches applies batches, each as Apply does, in their order. It is for many small
// batches, such as one entity for each of many partitions: about a hundred of them are made
// durable by one sync, and each costs less than a call of Apply.
//
// It returns the results of each batch, nil for one that failed. If any failed, the error is
// a BatchErrors with an error of Apply for each of them, and the others were applied: a batch
// depends on those before it only by what they write. When ctx ends, the batches that it has
// not begun fail with its error. Close waits for the batches in the log; the others fail with
// store.ErrClosed. A crash before ApplyBatches returns loses the last ones of the batches that
// it had applied, each of them as a whole.
//
// Without batches the error is that of Apply for ctx and the database, or nil. It keeps no reference to batches after it returns.
func (db *DB) ApplyBatches(ctx context.Context, table string, batches [][]store.Op) ([][]store.Result, error) {
	g := group{db: db, table: table, batches: batches, results: make([][]store.Result, len(batches))}
	if len(batches) == 0 {
		return g.results, cmp.Or(ctx.Err(), db.checkWrite())
	}
	for g.next < len(batches) {
		g.apply(ctx)
	}
	if g.errs != nil {
		return g.results, g.errs
	}
	return g.results, nil
}

// group is the batches of an ApplyBatches that become durable together.
type group struct {
	db      *DB
	table   string
	batches [][]store.Op
	results [][]store.Result
	errs    BatchErrors // nil if no batch failed
	next    int         // the first batch that no group has had
	bytes   int         // of the entries in the log
	// open is the record to which upserts are added.
	open record
	// waiting are the records in the log that are not known to be durable, in order.
	waiting []record
}

// record has batches of a group with one record in the log. b is nil if there is none.
type record struct {
	b  *batch.Batch
	of []int // indexes of the batches that were added to b
}

// apply applies the next group.
func (g *group) apply(ctx context.Context) {
	db := g.db
	if err := db.beginWrite(); err != nil {
		g.failRest(err)
		return
	}
	defer db.endWrite()
	g.bytes = 0
	for n := 0; n < groupBatches && g.bytes < groupBytes && g.next < len(g.batches); n++ {
		if err := ctx.Err(); err != nil {
			g.failRest(err)
			break
		}
		upserts := batch.Upserts(g.batches[g.next])
		if !upserts {
			g.append(ctx)
		}
		g.add(g.next, !upserts)
		if !upserts || g.openBytes() > recordBytes {
			g.append(ctx)
		}
		g.next++
	}
	g.append(ctx)
	g.wait()
}

func (g *group) openBytes() int {
	if g.open.b == nil {
		return 0
	}
	return g.open.b.Commit.Bytes()
}

// add adds batch i to the open record. Alone says that no other is added after it.
func (g *group) add(i int, alone bool) {
	if g.open.b == nil {
		most := 1
		if !alone {
			most = min(groupBatches, len(g.batches)-i)
		}
		g.open = record{g.db.batches.Get().(*batch.Batch), make([]int, 0, most)}
	}
	if err := g.open.b.Add(g.table, g.batches[i]); err != nil {
		g.fail(i, g.db.refuseBatch(g.open.b, err))
		return
	}
	g.open.of = append(g.open.of, i)
}

// append appends the open record to the log.
func (g *group) append(ctx context.Context) {
	r := g.open
	if r.b == nil {
		return
	}
	g.open = record{}
	if len(r.of) == 0 {
		g.db.putBatch(r.b)
		return
	}
	if err := g.log(ctx, r.b); err != nil {
		g.db.putBatch(r.b)
		for _, i := range r.of {
			if len(r.of) == 1 || !errors.Is(err, store.ErrNoSpace) {
				g.fail(i, err)
				continue
			}
			// There can be space for some of them.
			g.add(i, true)
			g.append(ctx)
		}
		return
	}
	g.bytes += r.b.Commit.Bytes()
	g.waiting = append(g.waiting, r)
	if g.db.opts.NoSync {
		g.wait()
	}
}

// log appends b to the log. Before it waits for the background work, it waits for the records
// in the log, because that work can wait for them.
func (g *group) log(ctx context.Context, b *batch.Batch) error {
	db := g.db
	if db.stallCause() != "" {
		g.wait()
		if err := db.throttle(ctx, b.Use()); err != nil {
			return err
		}
	}
	err := b.AppendDeferred()
	if b.Use().Frees() && errors.Is(err, store.ErrNoSpace) {
		g.wait()
		err = db.withSpace(ctx, b.Use(), b.AppendDeferred)
	}
	if err != nil {
		return db.refuseBatch(b, err)
	}
	return nil
}

// wait waits until the records in the log are as durable as the options promise.
func (g *group) wait() {
	for _, r := range g.waiting {
		err := g.db.waitCommit(r.b.Commit)
		for j, i := range r.of {
			if err != nil {
				g.fail(i, err)
			} else {
				g.results[i] = r.b.Results(j)
			}
		}
		if err == nil {
			g.db.gate.Committed(r.b.Use())
		}
		g.db.putBatch(r.b)
	}
	clear(g.waiting)
	g.waiting = g.waiting[:0]
}

// fail notes the error of batch i.
func (g *group) fail(i int, err error) {
	if g.errs == nil {
		g.errs = make(BatchErrors, len(g.batches))
	}
	g.errs[i] = err
}

// failRest fails all batches that no group has had.
func (g *group) failRest(err error) {
	for ; g.next < len(g.batches); g.next++ {
		g.fail(g.next, err)
	}
}
