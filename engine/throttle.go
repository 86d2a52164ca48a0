package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/tablerock-db/tablerock/store"
)

const (
	// maxFrozen is how many frozen memtables may wait for their flush before
	// writers stall.
	maxFrozen = 3
	// maxRuns is how many runs may overlap at a key before writers stall.
	maxRuns = 20
)

// throttle returns once the background work is not behind. It returns an error,
// and then the write must not happen, if ctx ends, the database closes, or the
// background work fails.
func (db *DB) throttle(ctx context.Context) error {
	cause := db.stallCause()
	if cause == "" {
		return nil
	}
	if db.stalls.enter(db.opts.Testing.Clock.Now()) {
		db.opts.Logger.Info("write stall begins", "cause", cause)
	}
	defer func() {
		if d, last := db.stalls.leave(db.opts.Testing.Clock.Now()); last {
			db.opts.Logger.Info("write stall ended", "cause", cause, "seconds", d.Seconds())
		}
	}()
	if db.opts.Testing.Manual {
		return db.stepWhileBehind(ctx)
	}
	return db.waitWhileBehind(ctx)
}

// stallCause returns why writers must wait, "" if they need not.
func (db *DB) stallCause() string {
	s := db.state.load()
	switch {
	case s == nil:
		return ""
	case len(s.mems) > maxFrozen:
		return "memtables wait for a flush"
	case db.runs.Load() >= maxRuns:
		return "runs wait for a compaction"
	}
	return ""
}

// stepWhileBehind does the background work in the writer's goroutine.
func (db *DB) stepWhileBehind(ctx context.Context) error {
	for db.stallCause() != "" {
		worked, err := db.step(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			return refusal(err)
		}
		if !worked {
			return nil
		}
	}
	return nil
}

// waitWhileBehind waits for the background goroutine.
func (db *DB) waitWhileBehind(ctx context.Context) error {
	w := &db.work
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		w.cond.Broadcast()
		w.mu.Unlock()
	})
	defer stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for db.stallCause() != "" {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case w.stopped:
			return store.ErrClosed
		case db.log.Failure() != nil:
			return fmt.Errorf("%w: %w", store.ErrReadOnly, db.log.Failure())
		case w.err != nil:
			return refusal(w.err)
		}
		w.cond.Wait()
	}
	return nil
}

// refusal returns the error of a write that did not happen because the
// background work fails with err.
func refusal(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", store.ErrNoSpace, err)
	}
	return fmt.Errorf("%w: background work fails: %w", store.ErrReadOnly, err)
}

// stalls counts and measures write stalls. A stall lasts while writers wait.
type stalls struct {
	mu sync.Mutex
	// +checklocks:mu
	waiting int // writers
	// +checklocks:mu
	begin time.Time // of the stall under way
	// +checklocks:mu
	count uint64
	// +checklocks:mu
	total time.Duration // of the stalls that have ended
}

// enter adds a waiting writer and reports whether it is the first.
func (s *stalls) enter(now time.Time) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
	if s.waiting > 1 {
		return false
	}
	s.begin = now
	s.count++
	return true
}

// leave removes a waiting writer. If it was the last, the stall took d.
func (s *stalls) leave(now time.Time) (d time.Duration, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
	if s.waiting > 0 {
		return 0, false
	}
	d = max(0, now.Sub(s.begin))
	s.total += d
	return d, true
}

// read returns the number of stalls and their time, with that of a stall under
// way.
func (s *stalls) read(now time.Time) (count uint64, total time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	total = s.total
	if s.waiting > 0 {
		total += max(0, now.Sub(s.begin))
	}
	return s.count, total
}
