package transfer

import (
	"context"
	"sync"

	"github.com/tablerock-db/tablerock/store"
)

// ApplyFunc applies batches in their order, each as one call of store.Store.Apply. It returns
// nil, or the error of each batch, nil for one that was applied. It keeps no reference to
// them.
type ApplyFunc func(ctx context.Context, table string, batches [][]store.Op) []error

// maxGroup is how many transactions may wait for the ApplyFunc.
const maxGroup = 1024

// inGroups imports with ImportOptions.Apply. While it applies transactions, the next ones are
// read: those that wait when it is done are the next group.
func (im *importer) inGroups() {
	var q queue
	q.changed.L = &q.mu
	var worker sync.WaitGroup
	worker.Go(func() {
		for group := q.take(); group != nil; group = q.take() {
			im.applyGroup(group)
		}
	})
	im.read(q.put)
	q.end()
	worker.Wait()
}

// applyGroup applies the transactions before the first error, and acknowledges those that
// were applied.
func (im *importer) applyGroup(group []*transaction) {
	n := 0
	var batches [][]store.Op
	for _, tx := range group {
		if tx.lines[0].first < im.failedAt.Load() {
			batches = append(batches, tx.ops)
			n++
		}
	}
	if n == 0 {
		return
	}
	errs := im.o.Apply(im.ctx, im.table, batches)
	for i, tx := range group[:n] { // the lines rise, so the first n were applied
		var err error
		if errs != nil {
			err = errs[i]
		}
		if bad, err := im.finish(tx, err); err != nil {
			im.fail(tx.lines[max(bad, 0)].first, err)
		}
	}
}

// queue has the transactions that wait, at most maxGroup of about maxTransactionBytes. One
// goroutine calls put and then end, another one take.
type queue struct {
	mu      sync.Mutex
	changed sync.Cond // on mu
	// +checklocks:mu
	waiting []*transaction
	// +checklocks:mu
	bytes int64
	// +checklocks:mu
	ended bool
}

// put adds a transaction once there is room.
func (q *queue) put(tx *transaction) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) >= maxGroup || q.bytes >= maxTransactionBytes {
		q.changed.Wait()
	}
	q.waiting = append(q.waiting, tx)
	q.bytes += tx.bytes
	q.changed.Signal()
}

func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.changed.Signal()
}

// take removes and returns all that waits, at least one transaction, or nil at the end.
func (q *queue) take() []*transaction {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.ended {
		q.changed.Wait()
	}
	group := q.waiting
	q.waiting, q.bytes = nil, 0
	q.changed.Signal()
	return group
}
