package transfer

import (
	"context"
	"slices"
	"sync"

	"github.com/tablerock-db/tablerock/store"
)

// ApplyFunc applies batches of different partitions, each as one call of store.Store.Apply. It
// returns nil, or the error of each batch, nil for one that was applied. It keeps no reference
// to them.
type ApplyFunc func(ctx context.Context, table string, batches [][]store.Op) []error

// maxGroup is how many transactions may wait for the ApplyFunc.
const maxGroup = 1024

// inGroups imports with ImportOptions.Apply. While it applies transactions, the next ones are
// read: the first of each partition that waits when it is done are the next group. It has one
// transaction of a partition, so that no later one is applied if that fails.
func (im *importer) inGroups() {
	var q queue
	q.changed.L = &q.mu
	var worker sync.WaitGroup
	worker.Go(func() {
		defer q.end()
		for group := q.take(); group != nil; group = q.take() {
			im.applyGroup(group)
		}
	})
	im.read(q.put)
	q.end()
	worker.Wait()
}

// applyGroup applies a group without the transactions after an error that is known before. It
// acknowledges those that were applied, also those after one that failed.
func (im *importer) applyGroup(group []*transaction) {
	n := 0
	var batches [][]store.Op
	for _, tx := range group {
		if tx.number < im.failedAt.Load() {
			batches = append(batches, tx.ops)
			n++
		}
	}
	if n == 0 {
		return
	}
	errs := im.o.Apply(im.ctx, im.table, batches)
	for i, tx := range group[:n] { // the numbers rise, so the first n were applied
		var err error
		if errs != nil {
			err = errs[i]
		}
		if bad, err := im.finish(tx, err); err != nil {
			im.fail(tx.number+int64(max(bad, 0)), err)
		}
	}
}

// queue has the transactions that wait: put waits once they are maxGroup, or have
// maxTransactionBytes together. One goroutine calls put, another one take, and both end.
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

// put adds a transaction once there is room. It does nothing after end.
func (q *queue) put(tx *transaction) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.ended && (len(q.waiting) >= maxGroup || q.bytes >= maxTransactionBytes) {
		q.changed.Wait()
	}
	if q.ended {
		return
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

// take removes and returns the first transaction of each partition that waits, at least one, in
// the order of the file. It returns nil at the end.
func (q *queue) take() []*transaction {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.ended {
		q.changed.Wait()
	}
	var group []*transaction
	partitions := map[string]bool{}
	q.waiting = slices.DeleteFunc(q.waiting, func(tx *transaction) bool {
		partition := tx.ops[0].Entity.Key.Partition
		if partitions[partition] {
			return false
		}
		partitions[partition] = true
		group = append(group, tx)
		q.bytes -= tx.bytes // +checklocksignore: called under mu
		return true
	})
	q.changed.Signal()
	return group
}
