package engine

import (
	"context"
	"errors"

	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/engine/internal/worker"
	"github.com/tablerock-db/tablerock/store"
)

// needs is space.Gate.Needs.
func (db *DB) needs() (flush, compaction int64) {
	state := db.state.Load()
	flush = db.opts.SegmentBytes
	for _, seg := range state.Mems[1:] {
		flush += seg.Tail()
	}
	return flush, state.Version.CompactionSpace()
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
		db.gate.NoteFreed()
		if werr := db.waitReclaimed(ctx); werr != nil {
			return errors.Join(err, werr)
		}
		err = appendRecord()
	}
	return err
}

// waitReclaimed returns when all that was deleted so far is reclaimed, or why it cannot be.
func (db *DB) waitReclaimed(ctx context.Context) error {
	want := db.gate.Freed()
	if db.opts.Testing.Manual {
		worked, err := true, error(nil)
		for worked && err == nil {
			worked, err = db.step(ctx)
		}
		return err
	}
	failures := db.worker.Status().Failures
	db.worker.Retry()
	return db.worker.Wait(ctx, func(s worker.Status) (done bool, err error) {
		switch {
		case db.steps.reclaimed.Load() >= want || !db.gate.Full():
			return true, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		case db.closing.Begun():
			return false, store.ErrClosed
		case s.Failures != failures:
			return false, s.Err
		}
		return false, nil
	})
}

// reclaimStep does one step towards room on a full disk. cause is the error of the step
// before it, nil if there was nothing to do.
// +checklocks:db.steps.mu
func (db *DB) reclaimStep(cause error) (worked bool, err error) {
	s, g := &db.steps, &db.gate
	if cause == nil && g.Accept() {
		return true, nil // a compaction may have waited for the reserve to be filled
	}
	g.NoteFull()
	if err := db.log.RemoveSpareFile(); err != nil {
		return false, err
	}
	if db.opts.Testing.Manual {
		g.Repeat()
	}
	if n := g.Freed(); n != s.reclaiming {
		// The deletes must be in sstables before a compaction can drop their rows.
		s.reclaiming, s.reclaimNext = n, true
		if cause == nil && !db.state.Load().Mems[0].Empty() {
			if err := db.log.Freeze(); err != nil {
				return false, err
			}
			return true, nil
		}
	}
	if s.reclaimNext {
		if cause == nil && len(db.state.Load().Mems) > 1 && db.log.Failure() == nil {
			// A commit of the frozen segment is under way. The log wakes the worker
			// when the segment can be flushed.
			return false, nil
		}
		if job := db.tree.NewReclaim(); job != nil {
			s.reclaimNext = false
			s.compaction = db.timeJob(job, 0)
			return true, nil
		}
		if cause == nil && db.tree.Failure() == nil {
			return false, nil // a Compact is under way, which wakes the worker
		}
	}
	s.reclaimNext = cause != nil
	if g.NoteReclaimed(cause == nil) {
		return true, nil
	}
	s.reclaimed.Store(s.reclaiming)
	db.pollSpace()
	return false, cause
}

// pollSpace wakes the worker after a while, because somebody else may free space, and to
// repeat a reclaim.
func (db *DB) pollSpace() {
	if db.opts.Testing.Manual || !db.steps.polling.CompareAndSwap(false, true) {
		return
	}
	db.opts.Testing.Clock.AfterFunc(worker.RetryAfter, func() {
		db.steps.polling.Store(false)
		db.gate.Repeat()
		db.worker.Wake()
	})
}
