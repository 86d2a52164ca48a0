package engine

import (
	"context"
	"fmt"

	"github.com/tablerock-db/tablerock/engine/internal/budget"
	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/engine/internal/worker"
	"github.com/tablerock-db/tablerock/store"
)

const (
	// maxRuns is the lsm.Version.Backlog at which writers stall. Beside Compact it is
	// maxRunsCompact: the runs that were there before, some 20 at most, stay until Compact
	// reaches their last keys, so writers would wait for its end.
	maxRuns        = 20
	maxRunsCompact = 32
)

// throttle returns once the background work is not behind. It returns an error,
// and then the write must not happen, if ctx ends, the database closes, or the
// background work fails, unless the disk is full and the write frees space.
func (db *DB) throttle(ctx context.Context, use space.Use) error {
	cause := db.stallCause()
	if cause == "" {
		return nil
	}
	if db.gate.Full() {
		db.gate.NoteFreed() // on a full disk only a reclaim compacts
	}
	wait := db.waitWhileBehind
	if db.opts.Testing.Manual {
		wait = db.stepWhileBehind
	} else if err := db.refusal(ctx, cause, db.worker.Status()); err != nil { // it waits for nothing, so there is no stall to count and to log
		return use.Refusal(err)
	}
	defer db.stalls.Begin(cause, db.opts.Testing.Clock.Now, db.opts.Logger)()
	return use.Refusal(wait(ctx))
}

// waitsForFlush is the result of stallCause for which a compaction that fails does not matter.
const waitsForFlush = "memtables wait for a flush"

// stallCause returns why writers must wait, "" if they need not.
func (db *DB) stallCause() string {
	s, limit := db.state.Load(), int64(maxRuns)
	if db.steps.compacting.Load() {
		limit = maxRunsCompact
	}
	switch {
	case s == nil:
		return ""
	case len(s.Mems) > budget.MaxFrozen:
		return waitsForFlush
	case db.runs.Load() >= limit:
		return "runs wait for a compaction"
	}
	return ""
}

// behind reports whether writers will stall soon.
func (db *DB) behind() bool {
	s := db.state.Load()
	return !db.opts.Testing.Manual && s != nil && len(s.Mems) >= budget.MaxFrozen
}

// stepWhileBehind does the background work in the writer's goroutine.
func (db *DB) stepWhileBehind(ctx context.Context) error {
	for db.stallCause() != "" {
		worked, err := db.pacedStep(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			return space.Refusal(err)
		}
		if !worked {
			return nil
		}
	}
	return nil
}

// waitWhileBehind waits for the background goroutine.
func (db *DB) waitWhileBehind(ctx context.Context) error {
	return db.worker.Wait(ctx, func(s worker.Status) (done bool, err error) {
		cause := db.stallCause()
		return cause == "", db.refusal(ctx, cause, s)
	})
}

// refusal returns the error of a write that would wait in vain because of a result of stallCause.
func (db *DB) refusal(ctx context.Context, cause string, s worker.Status) error {
	switch {
	case cause == "":
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case db.closing.Begun():
		return store.ErrClosed
	case db.log.Failure() != nil:
		return fmt.Errorf("%w: %w", store.ErrReadOnly, db.log.Failure())
	case s.Err != nil && !(s.Compaction && cause == waitsForFlush):
		return space.Refusal(s.Err)
	}
	return nil
}
