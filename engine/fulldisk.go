package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/store"
)

// fullDisk is the state of a database whose disk may be full. Before the log grows, admit
// compares the free space with what the log, its flush and compactions need. If that is
// too much, writes are refused, except deletes and drops of tables, and the background
// work makes the space of deleted rows free until there is enough again.
type fullDisk struct {
	reserve *space.Reserve
	// full is set while writes are refused, from the first refusal on.
	full atomic.Bool
	// refused is by how much the last refused write would grow log and flush, at most
	// smallWrite once a reclaim could not make room for it.
	refused atomic.Int64
	// again is set when a write is refused. A reclaim may have left rows that a snapshot
	// needed, or that were not flushed, so it is repeated as long as writes are refused.
	again atomic.Bool
	// freed counts deletes and drops while full is set, and the times that it was set.
	freed atomic.Uint64
	// polling is set while a timer will wake the worker.
	polling atomic.Bool
}

// smallWrite is by how much a usual write grows the log. Unless it is admitted, the disk is full.
const smallWrite = 1 << 20

// admit is commitlog.Options.Admit.
func (db *DB) admit(use space.Use, from, end, most int64) (upto int64, err error) {
	// A large record has a segment of its own, whose flush takes as much.
	larger := max(0, most-db.opts.SegmentBytes)
	switch {
	case !use.Frees():
		if err := db.admitWrite(most-from, larger); err != nil {
			return from, err
		}
		return most, nil
	case !db.full.full.Load() && db.checkWrite(most-from, larger) == nil:
		// Not the exact size of each delete: to ask for the free space is a third of its CPU time.
		return most, nil
	}
	if err := db.full.reserve.Admit(use, end-from, 0, 0); err != nil {
		db.noteFull()
		return from, fmt.Errorf("%w: %w", store.ErrNoSpace, err)
	}
	return end, nil
}

// admitWrite returns an error unless files may grow by grow bytes. The flush of the log
// takes larger bytes more than that of a usual segment.
func (db *DB) admitWrite(grow, larger int64) error {
	err := db.checkWrite(grow, larger)
	if err == nil {
		return nil
	}
	db.full.refused.Store(grow + larger)
	db.full.again.Store(true)
	db.noteFull()
	return fmt.Errorf("%w: %w", store.ErrNoSpace, err)
}

// checkWrite is admitWrite without its consequences.
func (db *DB) checkWrite(grow, larger int64) error {
	return db.full.reserve.Admit(space.Write, grow, db.flushBytes()+larger, db.state.Load().Version.CompactionSpace())
}

// flushBytes is the most that the flush of the log takes with a full active segment.
func (db *DB) flushBytes() int64 {
	n := db.opts.SegmentBytes
	for _, seg := range db.state.Load().Mems[1:] {
		n += seg.Tail()
	}
	return n
}

// noteFull notes that the disk is full.
func (db *DB) noteFull() {
	if db.full.full.CompareAndSwap(false, true) {
		db.opts.Logger.Warn("the disk is full: only deletes and drops of tables are accepted", "dir", db.dir,
			"free_bytes", db.full.reserve.Free(), "reserve_bytes", db.full.reserve.Bytes())
		db.noteFreed()
	}
}

// noteFreed tells the worker that there may be space to reclaim.
func (db *DB) noteFreed() {
	db.full.freed.Add(1)
	db.wakeWorker()
}

// afterCommit is called after a commit with its Commit.Use.
func (db *DB) afterCommit(use space.Use) {
	if use.Frees() && db.full.full.Load() {
		db.noteFreed()
	}
}

// withSpace calls appendRecord, which appends a record to the log. If the record frees
// space and there is none left to log it, withSpace waits until the worker has reclaimed
// some, and tries again.
func (db *DB) withSpace(ctx context.Context, use space.Use, appendRecord func() error) error {
	err := appendRecord()
	for range 2 {
		if !use.Frees() || !errors.Is(err, store.ErrNoSpace) {
			return err
		}
		db.noteFreed()
		if werr := db.waitReclaimed(ctx); werr != nil {
			return errors.Join(err, werr)
		}
		err = appendRecord()
	}
	return err
}

// waitReclaimed returns when all that was deleted so far is reclaimed, or why it cannot be.
func (db *DB) waitReclaimed(ctx context.Context) error {
	w, want := &db.work, db.full.freed.Load()
	if db.opts.Testing.Manual {
		worked, err := true, error(nil)
		for worked && err == nil {
			worked, err = db.step(ctx)
		}
		return err
	}
	defer w.wakeAfter(ctx)()
	w.mu.Lock()
	defer w.mu.Unlock()
	failures := w.failures
	select {
	case w.retry <- struct{}{}:
	default:
	}
	for w.reclaimed < want && db.full.full.Load() {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case w.stopped || db.closing.Begun():
			return store.ErrClosed
		case w.failures != failures && w.err != nil:
			return w.err
		}
		w.cond.Wait()
	}
	return nil
}

// reclaimStep does one step towards room on a full disk. cause is the error of the step
// before it, nil if there was nothing to do.
// +checklocks:db.work.stepMu
func (db *DB) reclaimStep(cause error) (worked bool, err error) {
	w, f := &db.work, &db.full
	if cause == nil && db.hasSpace() {
		if f.full.Swap(false) {
			db.opts.Logger.Info("the disk has space again: writes are accepted", "dir", db.dir, "free_bytes", f.reserve.Free())
		}
		return true, nil // a compaction may have waited for the reserve to be filled
	}
	db.noteFull()
	if err := db.log.RemoveSpareFile(); err != nil {
		return false, err
	}
	if db.opts.Testing.Manual && f.again.Swap(false) {
		f.freed.Add(1)
	}
	if n := f.freed.Load(); n != w.reclaiming {
		// The deletes must be in sstables before a compaction can drop their rows.
		w.reclaiming, w.reclaimNext = n, true
		if cause == nil && !db.state.Load().Mems[0].Empty() {
			if err := db.log.Freeze(); err != nil {
				return false, err
			}
			return true, nil
		}
	}
	if w.reclaimNext {
		if cause == nil && len(db.state.Load().Mems) > 1 && db.log.Failure() == nil {
			// A commit of the frozen segment is under way. The log wakes the worker
			// when the segment can be flushed.
			return false, nil
		}
		if job := db.tree.NewReclaim(); job != nil {
			w.reclaimNext = false
			w.compaction = db.timeJob(job, 0)
			return true, nil
		}
		if cause == nil && db.tree.Failure() == nil {
			return false, nil // a Compact is under way, which wakes the worker
		}
	}
	w.reclaimNext = cause != nil
	f.reserve.SetReclaimed(cause == nil)
	if cause == nil && f.refused.Load() > smallWrite {
		f.refused.Store(smallWrite) // there is nothing left to do for the larger one
		return true, nil
	}
	w.mu.Lock()
	w.reclaimed = w.reclaiming
	w.cond.Broadcast()
	w.mu.Unlock()
	db.pollSpace()
	return false, cause
}

// hasSpace fills the reserve and reports whether the last refused write could be admitted.
func (db *DB) hasSpace() bool {
	f := &db.full
	if err := f.reserve.Refill(); err != nil && !space.NoSpace(err) {
		db.opts.Logger.Error("the reserve cannot be filled", "cause", err)
	}
	return db.checkWrite(f.refused.Load(), 0) == nil
}

// pollSpace wakes the worker after a while, because somebody else may free space, and to
// repeat a reclaim.
func (db *DB) pollSpace() {
	if db.opts.Testing.Manual || !db.full.polling.CompareAndSwap(false, true) {
		return
	}
	db.opts.Testing.Clock.AfterFunc(retryAfter, func() {
		db.full.polling.Store(false)
		if db.full.again.Swap(false) {
			db.full.freed.Add(1)
		}
		db.wakeWorker()
	})
}
