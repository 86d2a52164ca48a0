package engine

import (
	"context"
	"fmt"

	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/store"
)

// flushable returns the frozen segments whose records are all applied, oldest
// first.
func (db *DB) flushable() []*commitlog.Segment {
	if db.log.Failure() != nil {
		return nil
	}
	mems := db.state.load().mems
	var out []*commitlog.Segment
	for i := len(mems) - 1; i > 0 && mems[i].Applied(); i-- {
		out = append(out, mems[i])
	}
	return out
}

// flushStep writes every frozen memtable that is ready into sorted files and
// drops its segment.
func (db *DB) flushStep(ctx context.Context) (worked bool, err error) {
	segs := db.flushable()
	if len(segs) == 0 {
		return false, nil
	}
	// Without syncs on the way, the log up to here has to be on disk before the
	// next segment may vouch for it.
	if db.opts.NoSync {
		if err := db.log.SyncSegments(segs); err != nil {
			return false, err
		}
		db.logSynced.Store(segs[len(segs)-1].LastSeq())
	}
	tables := make([]*memtable.Table, len(segs))
	for i, s := range segs {
		tables[i] = s.Table
	}
	last := segs[len(segs)-1]
	job := db.tree.NewFlush(tables, manifest.Edit{
		LastSeq:      last.LastSeq(),
		MinHighWater: uint64(db.log.HighWater()), // more may be reserved
		FirstLog:     db.logAfter(last),
	})
	for done := false; !done; {
		if done, err = job.Step(ctx); err != nil {
			job.Abort()
			return false, fmt.Errorf("flush: %w", err)
		}
	}
	db.replaceState(func(mems []*commitlog.Segment) []*commitlog.Segment {
		return append([]*commitlog.Segment(nil), mems[:len(mems)-len(segs)]...)
	})
	return true, db.dropSegments(segs)
}

// logAfter returns the number of the segment that follows seg.
func (db *DB) logAfter(seg *commitlog.Segment) uint64 {
	mems := db.state.load().mems
	for i := 1; i < len(mems); i++ {
		if mems[i] == seg {
			return mems[i-1].Number
		}
	}
	panic("engine: flush of a segment that is not frozen")
}

// dropSegments gives up the files of flushed segments. The manifest without them
// is durable: what a failure leaves is removed by the next open.
func (db *DB) dropSegments(segs []*commitlog.Segment) error {
	for _, s := range segs {
		if err := db.log.Drop(s); err != nil {
			return err
		}
	}
	return nil
}

// Flush writes everything acknowledged so far into sorted files.
func (db *DB) Flush(ctx context.Context) error {
	if err := db.beginWrite(); err != nil {
		return err
	}
	defer db.writers.RUnlock()
	return db.flush(ctx)
}

func (db *DB) flush(ctx context.Context) error {
	if err := db.log.Freeze(); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := db.log.Failure(); err != nil {
			return fmt.Errorf("%w: %w", store.ErrReadOnly, err)
		}
		if len(db.flushable()) == 0 {
			return nil
		}
		if _, err := db.step(ctx); err != nil {
			return err
		}
	}
}

// Compact flushes and merges everything into one run, without what no reader
// can see any more.
func (db *DB) Compact(ctx context.Context) error {
	if err := db.beginWrite(); err != nil {
		return err
	}
	defer db.writers.RUnlock()
	if err := db.flush(ctx); err != nil {
		return err
	}
	w := &db.work
	w.compacting.Lock()
	defer w.compacting.Unlock()
	w.stepping.Lock()
	if w.merge != nil {
		w.merge.Abort()
		w.merge = nil
	}
	job := db.tree.NewFullCompaction()
	w.stepping.Unlock()
	if job == nil {
		return db.tree.Failure()
	}
	for {
		done, err := db.compactStep(ctx, job)
		if err != nil {
			return fmt.Errorf("compact: %w", err)
		}
		if done {
			return nil
		}
	}
}

// compactStep takes a full compaction one step on. Flushes go in between, so
// that writers wait no longer than beside other merges.
func (db *DB) compactStep(ctx context.Context, job *lsm.Job) (done bool, err error) {
	db.work.stepping.Lock()
	defer db.work.stepping.Unlock()
	if done, err = job.Step(ctx); err != nil {
		job.Abort()
	}
	db.refresh()
	if done || err != nil {
		// What is merged is merged, also when the rest fails: those who wait
		// for fewer runs may go on.
		db.kick()
	}
	return done, err
}

// refresh makes readers use the newest files, so that those they replace can go.
func (db *DB) refresh() {
	v := db.tree.Version()
	defer v.Unref()
	if v != db.state.load().version {
		db.replaceState(func(mems []*commitlog.Segment) []*commitlog.Segment { return mems })
	}
}
