package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/engine/internal/batch"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/store"
)

// Apply applies ops to entities of one partition, all or none, and returns one result for each, in order. When it returns
// nil, the ops are durable and visible to every later read; with Options.NoSync they are visible and not yet durable. Their
// Timestamps are later than all of an Apply, on any key, that returned before.
//
// If the error is, by errors.Is, store.ErrOutcomeUnknown, the ops may have happened, all or none; the next Open decides.
// After any other error none of them happened. An op that is refused is a *store.OpError, whose order is described at
// store.Store. Other errors are store.ErrClosed, store.ErrReadOnly and store.ErrNoSpace, and the error of ctx. On a full
// disk ops that only delete succeed as long as the reserve lasts (Options.ReserveBytes). ctx is not checked any more once
// the record of the ops is in the log.
//
// Apply waits while flushes or compactions are behind. It keeps no reference to ops after it returns.
func (db *DB) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.beginWrite(); err != nil {
		return nil, err
	}
	defer db.endWrite()
	b := db.batches.Get().(*batch.Batch)
	defer db.putBatch(b)
	return db.apply(ctx, b, table, ops)
}

// putBatch keeps the memory of b for another batch.
func (db *DB) putBatch(b *batch.Batch) {
	b.Release()
	db.batches.Put(b)
}

// apply is Apply with the working memory b.
func (db *DB) apply(ctx context.Context, b *batch.Batch, table string, ops []store.Op) ([]store.Result, error) {
	if err := b.Add(table, ops); err != nil {
		return nil, db.refuseBatch(b, err)
	}
	if err := db.throttle(ctx, b.Use()); err != nil {
		return nil, err
	}
	if err := db.withSpace(ctx, b.Use(), b.Append); err != nil {
		return nil, db.refuseBatch(b, err)
	}
	if err := db.waitCommit(b.Commit); err != nil {
		return nil, err
	}
	db.gate.Committed(b.Use())
	return b.Results(0), nil
}

// refuseBatch returns the error of Apply for the error err of b.
func (db *DB) refuseBatch(b *batch.Batch, err error) error {
	seq := b.Pending(err)
	if errors.Is(err, batch.ErrTableGone) {
		err = &store.OpError{Err: store.ErrTableNotFound}
	}
	return db.refuse(seq, err)
}

// refuse returns err once the assigned sequence number seq, on which err depends,
// is durable, or why it cannot be. A seq of 0 is durable.
func (db *DB) refuse(seq uint64, err error) error {
	if werr := db.log.WaitDurable(seq); werr != nil {
		return werr
	}
	return err
}

// waitCommit waits until c, which is in the log, is as durable as the options
// promise.
func (db *DB) waitCommit(c *commitlog.Commit) error {
	if db.opts.NoSync {
		// The write has happened. If the log fails now, the next write is refused.
		_ = db.log.WriteBehind()
		return nil
	}
	if err := db.log.Wait(c); err != nil {
		return err
	}
	db.afterWrite()
	return nil
}

// beginWrite admits a call that writes. The caller must call endWrite.
// +checklocksignore
func (db *DB) beginWrite() (err error) {
	if !db.writers.TryRLock() { // Close has it, or waits for it
		return store.ErrClosed
	}
	if err = db.checkWrite(); err != nil {
		db.writers.RUnlock()
	}
	return err
}

// checkWrite returns the error of a call that writes.
func (db *DB) checkWrite() error {
	switch {
	case db.closed.Load():
		return store.ErrClosed
	case db.opts.ReadOnly:
		return fmt.Errorf("%w: opened for reading", store.ErrReadOnly)
	case db.log.Failure() != nil:
		return fmt.Errorf("%w: %w", store.ErrReadOnly, db.log.Failure())
	}
	return nil
}

// +checklocksignore
func (db *DB) endWrite() { db.writers.RUnlock() }
