package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/internal/lsm"
)

const (
	// retryAfter is how long the background work rests after a failure.
	retryAfter = time.Second
	// sealAfter is how long the log is idle before its end is made provable.
	sealAfter = 100 * time.Millisecond
	// listAfter is how long it is idle, from then on, before the manifest states
	// its end. A manifest costs more than a seal, so that who writes now and then
	// does not pay for one each time.
	listAfter = time.Second
)

// worker does the background work: it flushes frozen memtables and merges runs,
// one bounded step at a time.
type worker struct {
	// stepping is held for one step, so that Step, Flush and Compact can help
	// the background goroutine.
	stepping sync.Mutex
	// merge is the compaction under way, but for that of Compact.
	// +checklocks:stepping
	merge *lsm.Job
	// compacting is held by Compact, outside stepping.
	compacting sync.Mutex

	mu   sync.Mutex
	cond *sync.Cond // on mu: progress was made, work has come, or the end
	// work counts reasons to look for work.
	// +checklocks:mu
	work uint64
	// progress counts finished steps, for those who wait for one.
	// +checklocks:mu
	progress uint64
	// err is why the last step failed, nil after one that succeeded.
	// +checklocks:mu
	err error
	// +checklocks:mu
	stopped bool
	// stop cancels the step under way.
	stop context.CancelFunc
	done chan struct{}
}

// startWorker starts the background goroutine, which stopWorker ends and waits
// for.
func (db *DB) startWorker() {
	ctx, cancel := context.WithCancel(context.Background())
	db.work.stop = cancel
	db.work.done = make(chan struct{})
	if db.opts.Testing.Manual || db.opts.ReadOnly {
		close(db.work.done)
		return
	}
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
	w.stepping.Lock()
	defer w.stepping.Unlock()
	if w.merge != nil {
		w.merge.Abort()
		w.merge = nil
	}
}

func (db *DB) runWorker(ctx context.Context) {
	w := &db.work
	seen := uint64(0)
	for {
		worked, err := db.step(ctx)
		w.mu.Lock()
		for !w.stopped && !worked && err == nil && w.work == seen {
			w.cond.Wait()
		}
		seen = w.work
		stopped := w.stopped
		w.mu.Unlock()
		if stopped {
			return
		}
		if err != nil {
			db.opts.Logger.Error("background work failed", "cause", err)
			db.pause(ctx, retryAfter)
		}
	}
}

// pause returns after d or when ctx ends.
func (db *DB) pause(ctx context.Context, d time.Duration) {
	fired := make(chan struct{})
	stop := db.opts.Testing.Clock.AfterFunc(d, func() { close(fired) })
	select {
	case <-fired:
	case <-ctx.Done():
		stop()
	}
}

// kick tells the worker that there may be something to do.
func (db *DB) kick() {
	db.work.mu.Lock()
	db.work.work++
	db.work.cond.Broadcast()
	db.work.mu.Unlock()
}

// Step does one bounded piece of background work and reports whether there was
// any. A database opened with Manual gets its background work only this way.
func (db *DB) Step(ctx context.Context) (worked bool, err error) {
	if err := db.beginWrite(); err != nil {
		return false, err
	}
	defer db.writers.RUnlock()
	return db.step(ctx)
}

// step flushes what can be flushed, or else takes a merge one step on.
func (db *DB) step(ctx context.Context) (worked bool, err error) {
	w := &db.work
	w.stepping.Lock()
	defer w.stepping.Unlock()
	worked, err = db.flushStep(ctx)
	if !worked && err == nil {
		worked, err = db.mergeStep(ctx)
	}
	w.mu.Lock()
	if err == nil || ctx.Err() == nil {
		w.err = err // and not that a caller has given up
	}
	if worked || err != nil {
		w.progress++
		w.cond.Broadcast()
	}
	w.mu.Unlock()
	return worked, err
}

// mergeStep takes the compaction under way, or a new one, one step on.
func (db *DB) mergeStep(ctx context.Context) (worked bool, err error) {
	w := &db.work
	if w.merge == nil {
		if w.merge = db.tree.PickCompaction(); w.merge == nil {
			// Writers may be waiting for a merge that no longer can be.
			return false, db.tree.Failure()
		}
	}
	done, err := w.merge.Step(ctx)
	if err != nil {
		w.merge.Abort()
		w.merge = nil
		return false, fmt.Errorf("merge: %w", err)
	}
	if done {
		w.merge = nil
		db.replaceState(func(mems []*commitlog.Segment) []*commitlog.Segment { return mems })
	}
	return true, nil
}

// afterWrite arranges for the log to be sealed once writes stop coming.
func (db *DB) afterWrite() {
	if db.opts.Testing.Manual || db.sealArmed.Load() || !db.sealArmed.CompareAndSwap(false, true) {
		return
	}
	db.armSeal(db.log.Writes())
}

// armSeal looks again after sealAfter: if nothing was written since, it seals.
func (db *DB) armSeal(writes uint64) {
	db.opts.Testing.Clock.AfterFunc(sealAfter, func() {
		if db.beginWrite() != nil {
			return
		}
		defer db.writers.RUnlock()
		if now := db.log.Writes(); now != writes {
			db.armSeal(now)
			return
		}
		db.sealArmed.Store(false)
		if err := db.log.Seal(); err != nil {
			db.opts.Logger.Error("seal of the idle log failed", "cause", err)
			return
		}
		db.armList(writes)
	})
}

// armList puts the end of a sealed log into the manifest after listAfter, if
// nothing is written until then.
func (db *DB) armList(writes uint64) {
	db.opts.Testing.Clock.AfterFunc(listAfter, func() {
		if db.beginWrite() != nil {
			return
		}
		defer db.writers.RUnlock()
		if db.log.Writes() != writes {
			return
		}
		if err := db.tree.RecordLogs(); err != nil {
			db.opts.Logger.Error("the end of the idle log could not be listed", "cause", err)
		}
	})
}
