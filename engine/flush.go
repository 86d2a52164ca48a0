package engine

import (
	"context"
	"fmt"

	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/engine/internal/jobtimer"
	"github.com/tablerock-db/tablerock/engine/internal/readstate"
	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
)

// flushable returns the frozen segments whose records are all applied, oldest
// first, and no more than the disk has space for, but at least one.
func (db *DB) flushable() []*commitlog.Segment {
	if db.log.Failure() != nil {
		return nil
	}
	mems := db.state.Load().Mems
	var out []*commitlog.Segment
	var limit, bytes int64
	for i := len(mems) - 1; i > 0 && mems[i].Applied(); i-- {
		if len(out) == 1 {
			limit = db.gate.Reserve.ForOutputs()
		}
		if bytes += mems[i].Tail(); len(out) > 0 && bytes > limit {
			break
		}
		out = append(out, mems[i])
	}
	return out
}

// minPassed is the fewest tombstones of a memtable that queries pass before it is flushed for them. They take about as long as a
// small flush, some milliseconds. With an archive, in which each flush leaves a chunk, there are minPassedArchived.
const (
	minPassed         = 1 << 17
	minPassedArchived = 1 << 23
)

// slowsQueries reports whether a flush of the newest of mems, all memtables, costs less than queries have spent on its tombstones:
// about as much for a byte of the log as they for a tombstone. The flush drops those that hide nothing in a file. The reader of a
// queue, whose rows are inserted at the end and deleted at the beginning, would else pass all that were deleted since the last
// flush each time. Other memtables are flushed first: while flushes fail, writers would soon wait for many small ones.
func (db *DB) slowsQueries(mems []*commitlog.Segment) bool {
	passed := mems[0].Table.Passed()
	if passed < minPassed || db.opts.Archive != nil && passed < minPassedArchived {
		return false
	}
	return len(mems) == 1 && passed >= mems[0].Tail() && db.log.Failure() == nil
}

// afterQuery wakes the worker if the newest memtable of s, which a query has read, should be flushed.
func (db *DB) afterQuery(s *readstate.State) {
	if db.slowsQueries(s.Mems) && s == db.state.Load() {
		db.worker.Wake()
	}
}

// freezeSlow freezes the newest memtable if it slows queries and the disk has space.
func (db *DB) freezeSlow() error {
	full := db.gate.Full() || !db.gate.Reserve.Full()
	if full || !db.slowsQueries(db.state.Load().Mems) {
		return nil
	}
	return db.log.Freeze()
}

// flushStep writes the memtables of all flushable segments to sstables and drops
// the segments.
// +checklocks:db.steps.mu
func (db *DB) flushStep(ctx context.Context) (worked bool, err error) {
	if err := db.freezeSlow(); err != nil {
		return false, fmt.Errorf("flush: %w", err)
	}
	segs := db.flushable()
	if len(segs) == 0 {
		return false, nil
	}
	reserve := db.gate.Reserve
	if db.steps.flushLimit > 0 && db.steps.compaction != nil && reserve.ForOutputs() < 2*db.steps.flushLimit {
		return false, nil // until the compaction has made room
	}
	db.steps.flushLimit = 0
	limit := reserve.ForOutputs()
	last := segs[len(segs)-1]
	if err := db.beginFlush(segs, last.LastSeq()); err != nil {
		return false, fmt.Errorf("flush: %w", err)
	}
	job := db.timeJob(db.tree.NewFlush(commitlog.Tables(segs), manifest.Edit{
		LastSeq:      last.LastSeq(),
		MinHighWater: uint64(db.log.HighWater()), // more may be reserved
		FirstLog:     commitlog.NumberAfter(db.state.Load().Mems, last),
	}), len(segs))
	for done := false; !done; {
		if done, err = job.Step(ctx); err != nil {
			job.Abort()
			if space.NoSpace(err) {
				db.steps.flushLimit = max(1, limit)
			}
			return false, fmt.Errorf("flush: %w", err)
		}
	}
	job.LogDone()
	db.log.Flushed(segs)
	db.replaceState(func(mems []*commitlog.Segment) []*commitlog.Segment {
		return append([]*commitlog.Segment(nil), mems[:len(mems)-len(segs)]...)
	})
	db.state.Retire()
	db.pace()
	for _, s := range segs {
		if err := db.archive.Drop(s); err != nil {
			// The manifest does not list it any more. The next Open removes it, or archives it first.
			db.opts.Logger.Warn("a flushed segment is left", "dir", db.dir, "cause", err)
		}
	}
	return true, nil
}

// beginFlush prepares the flush of segments, up to the sequence number last. In NoSync mode nobody has synced them, and only
// the archive needs them once the flush is durable. Without the sync an ordered load takes two thirds of the time (bench,
// load/order=sorted). A crash may then lose them and leave files of the flush, which are not those of a newer manifest
// (lsm.Tree.CheckLeftovers).
func (db *DB) beginFlush(segs []*commitlog.Segment, last uint64) error {
	switch {
	case !db.opts.NoSync:
		return nil
	case db.opts.Archive != nil:
		return db.log.SyncSegments(segs)
	case last > db.log.DurableSeq():
		return db.tree.Update(manifest.Edit{MinReservedSeq: last})
	}
	return nil
}

// Flush writes everything acknowledged so far to sstables and returns when they
// are durable. It is never needed for durability. It may be called concurrently
// with all other methods. If ctx ends it returns the error of ctx; what is flushed
// by then stays flushed. A full disk is store.ErrNoSpace, and a failed database
// store.ErrReadOnly.
func (db *DB) Flush(ctx context.Context) error {
	if err := db.beginWrite(); err != nil {
		return err
	}
	defer db.endWrite()
	return space.JobError(db.flush(ctx))
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

// Compact flushes and compacts everything into one run, and drops every version that no reader can see. It frees space on the
// way, so it needs little more than the size of some sstables, unless a Snapshot or cursor keeps older versions. Writes and
// reads continue meanwhile. If ctx ends it returns the error of ctx; what is compacted by then stays compacted. Other errors are
// as those of Flush.
func (db *DB) Compact(ctx context.Context) error {
	if err := db.beginWrite(); err != nil {
		return err
	}
	defer db.endWrite()
	ctx, stop := db.closing.Until(ctx)
	return stop(space.JobError(db.compact(ctx)))
}

func (db *DB) compact(ctx context.Context) error {
	if err := db.flush(ctx); err != nil {
		return err
	}
	s := &db.steps
	select {
	case s.compactSem <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.compactSem }()
	s.compacting.Store(true)
	defer s.compacting.Store(false)
	db.worker.Wake() // and the writers that need not wait beside a Compact
	job := db.newFullCompaction()
	if job == nil {
		return db.tree.Failure()
	}
	defer job.Abort() // after a panic
	timer := db.timeJob(job, 0)
	for {
		done, err := db.compactStep(ctx, timer)
		if err != nil {
			return fmt.Errorf("compact: %w", err)
		}
		if done {
			timer.LogDone()
			return nil
		}
	}
}

func (db *DB) newFullCompaction() *lsm.Job {
	db.steps.mu.Lock()
	defer db.steps.mu.Unlock()
	db.steps.reclaimNext = true // the aborted one may have been a reclaim
	db.abortCompaction()
	return db.tree.NewFullCompaction()
}

// compactStep does one step of a full compaction. Flushes run between the steps,
// so that writers stall no longer than beside other compactions.
func (db *DB) compactStep(ctx context.Context, job *jobtimer.Timer) (done bool, err error) {
	db.steps.mu.Lock()
	defer db.steps.mu.Unlock()
	ended := false
	defer db.log.FailUnless(&ended)
	if done, err = job.Step(ctx); err != nil {
		job.Abort()
	}
	db.refresh() // what is installed stays, also if the rest fails
	if done || err != nil {
		db.worker.Wake()
	}
	ended = true
	return done, err
}

// refresh installs a read state with the newest version, unless it is current, so
// that the files of the old one can be removed.
func (db *DB) refresh() {
	v := db.tree.Version()
	defer v.Unref()
	if v != db.state.Load().Version {
		db.replaceState(func(mems []*commitlog.Segment) []*commitlog.Segment { return mems })
		db.state.Retire()
		db.worker.Wake() // and with it the writers that wait because of too many runs
	}
}
