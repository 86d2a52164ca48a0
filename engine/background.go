package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/engine/internal/jobtimer"
	"github.com/tablerock-db/tablerock/engine/internal/retry"
	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/store"
)

const (
	// retryAfter is how long the background goroutine waits after a failure. After each compaction
	// that fails, as it always does because of damage, it waits twice as long, up to maxRetryAfter.
	retryAfter    = time.Second
	maxRetryAfter = time.Minute
)

// worker does the background work: it flushes frozen memtables and compacts
// runs, one bounded step at a time.
type worker struct {
	// compactSem has an element while a Compact, which sets compacting, is under way.
	compactSem chan struct{}
	compacting atomic.Bool
	// stepMu is held for one step. Step, Flush and Compact take steps too, in
	// turns with the background goroutine.
	stepMu sync.Mutex
	// compaction is the compaction under way, other than that of Compact.
	// +checklocks:stepMu
	compaction *jobtimer.Timer
	// reclaiming is the value of space.Gate.Freed that the reclaim under way began with.
	// reclaimNext is set while its compaction has not begun.
	// +checklocks:stepMu
	reclaiming uint64
	// +checklocks:stepMu
	reclaimNext bool
	// polling is set while a timer will wake the worker.
	polling atomic.Bool
	// flushLimit is how much space was left for a flush that failed on a full disk.
	// +checklocks:stepMu
	flushLimit int64

	mu sync.Mutex
	// cond, on mu, is signalled when there is work, after a step that did
	// something or failed, and at the end.
	cond *sync.Cond
	// work counts the reasons to look for work.
	// +checklocks:mu
	work uint64
	// err is the error of the last step, nil after one that succeeded. With compactionFailed it is that
	// of the last compaction, and flushes go on.
	// +checklocks:mu
	err error
	// +checklocks:mu
	compactionFailed bool
	// reclaimed is the value of space.Gate.Freed up to which space was reclaimed.
	// +checklocks:mu
	reclaimed uint64
	// failures counts the steps that set err to an error.
	// +checklocks:mu
	failures uint64
	// +checklocks:mu
	stopped bool
	// retry ends the pause after a failure. woken is signalled when there may be work.
	retry, woken chan struct{}
	// stop cancels the step under way.
	stop context.CancelFunc
	done chan struct{}
}

// startWorker starts the background goroutine. stopWorker ends it and waits for
// its end.
func (db *DB) startWorker() {
	ctx, cancel := context.WithCancel(context.Background())
	db.work.stop = cancel
	db.work.done = make(chan struct{})
	db.work.retry, db.work.woken = make(chan struct{}, 1), make(chan struct{}, 1)
	if db.opts.Testing.Manual || db.opts.ReadOnly {
		close(db.work.done)
		return
	}
	db.archive.Start()
	go func() {
		defer close(db.work.done)
		db.runWorker(ctx)
	}()
}

func (db *DB) stopWorker() {
	w := &db.work
	w.mu.Lock()
	w.stopped = true
	w.cond.Broadcast()
	w.mu.Unlock()
	w.stop()
	<-w.done
	w.stepMu.Lock()
	defer w.stepMu.Unlock()
	w.abortCompaction()
}

// wakeAfter signals cond when ctx ends, unless stop is called first.
func (w *worker) wakeAfter(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		w.mu.Lock()
		w.cond.Broadcast()
		w.mu.Unlock()
	})
}

// abortCompaction gives up the compaction under way. The caller holds stepMu.
// +checklocks:w.stepMu
func (w *worker) abortCompaction() {
	if c := w.compaction; c != nil {
		w.compaction = nil
		c.Abort()
	}
}

func (db *DB) runWorker(ctx context.Context) {
	w := &db.work
	seen := uint64(0)
	pause := retry.Pause{Least: retryAfter, Most: maxRetryAfter, After: db.opts.Testing.Clock.AfterFunc, End: w.retry}
	for {
		worked, err := db.step(ctx)
		w.mu.Lock()
		for !w.stopped && !worked && err == nil && w.work == seen {
			w.cond.Wait()
		}
		seen = w.work
		stopped, flushes := w.stopped, w.compactionFailed
		w.mu.Unlock()
		if stopped || ctx.Err() != nil {
			return
		}
		if err != nil {
			db.opts.Logger.Error("background work failed", "cause", err)
		}
		switch {
		case err == nil && !worked:
			pause.Reset()
		case err != nil && flushes:
			pause.Wait(ctx, w.woken, func() error { return db.flushInPause(ctx) })
		case err != nil:
			pause.WaitLeast(ctx)
		}
	}
}

// flushInPause is a step that only flushes, because a compaction has failed.
func (db *DB) flushInPause(ctx context.Context) error {
	w := &db.work
	w.stepMu.Lock()
	defer w.stepMu.Unlock()
	_, err := db.flushStep(ctx)
	w.end(ctx, err, false)
	return err
}

// end notes the error of a step, which compacted or did other work.
func (w *worker) end(ctx context.Context, err error, compacted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil && (compacted || !w.compactionFailed):
		w.err, w.compactionFailed = nil, false
	case err != nil && ctx.Err() == nil: // not the end of a caller's ctx
		w.err, w.compactionFailed = err, compacted && !space.NoSpace(err)
		w.failures++
	}
	w.cond.Broadcast()
}

// wakeWorker tells the worker that there may be work.
func (db *DB) wakeWorker() {
	db.work.mu.Lock()
	db.work.work++
	db.work.cond.Broadcast()
	db.work.mu.Unlock()
	select {
	case db.work.woken <- struct{}{}:
	default:
	}
}

// Step is a test hook: it does one bounded step of background work and reports whether there was any. With TestHooks.Manual
// nothing else does background work, except Flush, Compact, and writers that would stall. If ctx has ended it returns the
// error of ctx, and the work can be continued.
func (db *DB) Step(ctx context.Context) (worked bool, err error) {
	if err := db.beginWrite(); err != nil {
		return false, err
	}
	defer db.endWrite()
	if worked, err = db.step(ctx); worked || err != nil {
		return worked, err
	}
	return db.archive.Step(ctx)
}

// step flushes, or does one step of a compaction, or on a full disk of a reclaim.
func (db *DB) step(ctx context.Context) (worked bool, err error) {
	w := &db.work
	w.stepMu.Lock()
	defer w.stepMu.Unlock()
	ended := false
	defer db.log.FailUnless(&ended)
	db.state.Retire() // those that rotated and Load have replaced
	worked, err = db.flushStep(ctx)
	full, compacts := db.gate.Full() || !db.gate.Reserve.Full(), false
	if !worked && (err == nil || space.NoSpace(err)) && (w.compaction != nil || !full && err == nil) {
		compacts = true
		worked, err = db.compactionStep(ctx)
	}
	if space.NoSpace(err) || err == nil && !worked && full {
		worked, err = db.reclaimStep(err)
	} else if full && errors.Is(err, store.ErrCorrupt) {
		_, _ = db.reclaimStep(nil) // the damage ends a reclaim, as if all were reclaimed
	}
	if worked && !db.gate.Reserve.Full() {
		_ = db.gate.Reserve.Refill() // another program could take the space
	}
	w.end(ctx, err, compacts)
	ended = true
	return worked, err
}

// compactionStep does one step of the compaction under way, or of a new one.
// +checklocks:db.work.stepMu
func (db *DB) compactionStep(ctx context.Context) (worked bool, err error) {
	w := &db.work
	if w.compaction == nil {
		job := db.tree.PickCompaction()
		if job == nil {
			// Writers may wait for a compaction that the failed tree will not do.
			return false, db.tree.Failure()
		}
		w.compaction = db.timeJob(job, 0)
	}
	done, err := w.compaction.Step(ctx)
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		return false, err // the next step continues it
	}
	if err != nil {
		w.abortCompaction()
		// It may have been a reclaim, whose rest must follow, unless the disk has no space for it, or damage is in the way.
		w.reclaimNext = w.reclaimNext || !space.NoSpace(err) && !errors.Is(err, store.ErrCorrupt)
		return false, fmt.Errorf("compact: %w", err)
	}
	db.refresh() // some jobs install several times
	if done {
		w.compaction.LogDone()
		w.compaction = nil
	}
	return true, nil
}

func (db *DB) timeJob(job *lsm.Job, memtables int) *jobtimer.Timer {
	return jobtimer.Start(job, memtables, db.tree, db.opts.Testing.Clock.Now, db.opts.Logger)
}

// afterWrite arranges for the log to be sealed when writes stop coming.
func (db *DB) afterWrite() {
	if !db.opts.Testing.Manual {
		db.seal.AfterWrite()
	}
}
