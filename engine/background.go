package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/engine/internal/jobtimer"
	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/store"
)

// steps is the state of the background work between its steps.
type steps struct {
	// mu is held for one step. Step, Flush and Compact take steps too, between those of the worker.
	mu sync.Mutex
	// compaction is the compaction under way, other than that of Compact.
	// +checklocks:mu
	compaction *jobtimer.Timer
	// reclaiming is the value of space.Gate.Freed that the reclaim under way began with.
	// reclaimNext is set while its compaction has not begun.
	// +checklocks:mu
	reclaiming uint64
	// +checklocks:mu
	reclaimNext bool
	// flushAfter is the value of DB.compacted before which the next flush does not begin, 0 if it
	// need not wait.
	// +checklocks:mu
	flushAfter int64
	// flushLimit is how much space was left for a flush that failed on a full disk.
	// +checklocks:mu
	flushLimit int64

	// compactSem has an element while a Compact, which sets compacting, is under way.
	compactSem chan struct{}
	compacting atomic.Bool
	// reclaimed is the value of space.Gate.Freed up to which space was reclaimed.
	reclaimed atomic.Uint64
	// polling is set while a timer will wake the worker.
	polling atomic.Bool
}

// startWorker starts the background goroutine. stopWorker ends it and waits for
// its end.
func (db *DB) startWorker() {
	ctx, cancel := context.WithCancel(context.Background())
	db.cancelWork = cancel
	if db.opts.Testing.Manual || db.opts.ReadOnly {
		return
	}
	db.archive.Start()
	db.worker.Start(ctx)
}

func (db *DB) stopWorker() {
	db.cancelWork()
	db.worker.Join()
	db.steps.mu.Lock()
	defer db.steps.mu.Unlock()
	db.abortCompaction()
}

// abortCompaction gives up the compaction under way.
// +checklocks:db.steps.mu
func (db *DB) abortCompaction() {
	if c := db.steps.compaction; c != nil {
		db.steps.compaction = nil
		c.Abort()
	}
}

// flushInPause is a step that only flushes, because a compaction has failed.
func (db *DB) flushInPause(ctx context.Context) error {
	db.steps.mu.Lock()
	defer db.steps.mu.Unlock()
	_, err := db.flushStep(ctx)
	db.noteStep(ctx, err, false)
	return err
}

// noteStep notes the end of a step, which compacted or did other work.
func (db *DB) noteStep(ctx context.Context, err error, compacted bool) {
	switch {
	case err == nil:
		db.worker.Succeeded(compacted)
	case ctx.Err() == nil: // not the end of a caller's ctx
		db.worker.Failed(err, compacted && !space.NoSpace(err))
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
	if worked, err = db.pacedStep(ctx); worked || err != nil {
		return worked, err
	}
	return db.archive.Step(ctx)
}

// pacedStep is step, but a flush waits for the compactions that pace asks for.
func (db *DB) pacedStep(ctx context.Context) (worked bool, err error) {
	if worked, err = db.stepBeforeFlush(ctx); worked || err != nil {
		return worked, err
	}
	return db.step(ctx)
}

// stepBeforeFlush does one step of the compactions that pace asks for, if they can do any.
func (db *DB) stepBeforeFlush(ctx context.Context) (worked bool, err error) {
	s := &db.steps
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flushAfter <= db.compacted() || db.gate.Full() || !db.gate.Reserve.Full() {
		return false, nil
	}
	ended := false
	defer db.log.FailUnless(&ended)
	worked, err = db.compactionStep(ctx)
	if !worked {
		s.flushAfter = 0 // the flush does not wait for a failure, nor for a Compact
	}
	ended = true
	if space.NoSpace(err) {
		return false, nil // step reclaims
	}
	if worked || err != nil {
		db.noteStep(ctx, err, true)
	}
	return worked, err
}

// compacted returns how many bytes compactions have read in all. The part of the one under way is
// estimated by its output.
// +checklocks:db.steps.mu
func (db *DB) compacted() int64 {
	n := db.tree.Counters().ReadBytes
	if c := db.steps.compaction; c != nil {
		n += c.Written()
	}
	return n
}

// pace sets how much compactions read before the next flush: so much that the backlog is smaller
// before it reaches maxRuns. Flushes precede compactions otherwise, and writers can be as fast as
// they are. Writers would wait for all of the compactions at once: 4 s, and 1.2 s with pace, in a
// load of 10,000,000 entities in a random order (bench/peers, load/order=random).
// +checklocks:db.steps.mu
func (db *DB) pace() {
	db.steps.flushAfter = 0
	if !db.steps.compacting.Load() {
		db.steps.flushAfter = db.compacted() + db.tree.Debt()/max(1, maxRuns-db.runs.Load())
	}
}

// step flushes, or does one step of a compaction, or on a full disk of a reclaim.
func (db *DB) step(ctx context.Context) (worked bool, err error) {
	s := &db.steps
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := false
	defer db.log.FailUnless(&ended)
	db.state.Retire() // those that rotated and Load have replaced
	worked, err = db.flushStep(ctx)
	full, compacts := db.gate.Full() || !db.gate.Reserve.Full(), false
	if !worked && (err == nil || space.NoSpace(err)) && (s.compaction != nil || !full && err == nil) {
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
	db.noteStep(ctx, err, compacts)
	ended = true
	return worked, err
}

// compactionStep does one step of the compaction under way, or of a new one.
// +checklocks:db.steps.mu
func (db *DB) compactionStep(ctx context.Context) (worked bool, err error) {
	s := &db.steps
	if s.compaction == nil {
		job := db.tree.PickCompaction()
		if job == nil {
			// Writers may wait for a compaction that the failed tree will not do.
			return false, db.tree.Failure()
		}
		s.compaction = db.timeJob(job, 0)
	}
	done, err := s.compaction.Step(ctx)
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		return false, err // the next step continues it
	}
	if err != nil {
		db.abortCompaction()
		// It may have been a reclaim, whose rest must follow, unless the disk has no space for it, or damage is in the way.
		s.reclaimNext = s.reclaimNext || !space.NoSpace(err) && !errors.Is(err, store.ErrCorrupt)
		return false, fmt.Errorf("compact: %w", err)
	}
	db.refresh() // some jobs install several times
	if done {
		s.compaction.LogDone()
		s.compaction = nil
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
