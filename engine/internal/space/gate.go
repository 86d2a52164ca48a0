package space

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/store"
)

// smallWrite is by how much a usual write grows the log. Unless it is admitted, the disk is full.
const smallWrite = 1 << 20

// Gate admits writes to a database whose disk may be full. Before the log grows, Admit
// compares the free space with what the log, its flush and compactions need. If that is too
// much, writes are refused, except deletes and drops of tables, until Accept. Meanwhile the
// background work makes the space of deleted rows free. Set the exported fields before the
// first call. Methods may be called concurrently.
type Gate struct {
	Reserve *Reserve
	// SegmentBytes is the size of a segment of the log. A larger record has a segment of its
	// own, and the flush of a segment takes as much space.
	SegmentBytes int64
	// Needs returns how much space the flush of the log takes, with a full active segment, and
	// a compaction of everything.
	Needs func() (flush, compaction int64)
	// Wake is called when there may be space to reclaim.
	Wake   func()
	Logger *slog.Logger

	// full is set while writes are refused, from the first refusal on.
	full atomic.Bool
	// refused is by how much the last refused write would grow log and flush, at most
	// smallWrite once a reclaim could not make room for it.
	refused atomic.Int64
	// again is set when a write is refused. A reclaim may have left rows that a snapshot
	// needed, or that were not flushed, so it is repeated as long as writes are refused.
	again atomic.Bool
	freed atomic.Uint64
}

// Admit is commitlog.Options.Admit.
func (g *Gate) Admit(use Use, from, end, most int64) (upto int64, err error) {
	larger := max(0, most-g.SegmentBytes)
	switch {
	case !use.Frees():
		if err := g.AdmitWrite(most-from, larger); err != nil {
			return from, err
		}
		return most, nil
	case !g.full.Load() && g.check(most-from, larger) == nil:
		// Not the exact size of each delete: to ask for the free space is a third of its CPU time.
		return most, nil
	}
	if err := g.Reserve.Admit(use, end-from, 0, 0); err != nil {
		g.NoteFull()
		return from, fmt.Errorf("%w: %w", store.ErrNoSpace, err)
	}
	return end, nil
}

// AdmitWrite returns an error unless files may grow by grow bytes. The flush of the log
// takes larger bytes more than that of a usual segment.
func (g *Gate) AdmitWrite(grow, larger int64) error {
	err := g.check(grow, larger)
	if err == nil {
		return nil
	}
	g.refused.Store(grow + larger)
	g.again.Store(true)
	g.NoteFull()
	return fmt.Errorf("%w: %w", store.ErrNoSpace, err)
}

// check is AdmitWrite without its consequences.
func (g *Gate) check(grow, larger int64) error {
	flush, compaction := g.Needs()
	return g.Reserve.Admit(Write, grow, flush+larger, compaction)
}

// Full reports whether writes are refused.
func (g *Gate) Full() bool { return g.full.Load() }

// NoteFull notes that the disk is full.
func (g *Gate) NoteFull() {
	if g.full.CompareAndSwap(false, true) {
		g.Logger.Warn("the disk is full: only deletes and drops of tables are accepted", "dir", g.Reserve.dir,
			"free_bytes", g.Reserve.Free(), "reserve_bytes", g.Reserve.Bytes())
		g.NoteFreed()
	}
}

// Freed counts the calls of NoteFreed.
func (g *Gate) Freed() uint64 { return g.freed.Load() }

// NoteFreed notes that there may be space to reclaim.
func (g *Gate) NoteFreed() {
	g.freed.Add(1)
	g.Wake()
}

// Committed is called after each commit with its use.
func (g *Gate) Committed(use Use) {
	if use.Frees() && g.full.Load() {
		g.NoteFreed()
	}
}

// Repeat counts as a NoteFreed if a write was refused since the last Repeat.
func (g *Gate) Repeat() {
	if g.again.Swap(false) {
		g.freed.Add(1)
	}
}

// Accept fills the reserve. If the last refused write could be admitted, writes are accepted
// from then on, and Accept reports true.
func (g *Gate) Accept() bool {
	if err := g.Reserve.Refill(); err != nil && !NoSpace(err) {
		g.Logger.Error("the reserve cannot be filled", "cause", err)
	}
	if g.check(g.refused.Load(), 0) != nil {
		return false
	}
	if g.full.Swap(false) {
		g.Logger.Info("the disk has space again: writes are accepted", "dir", g.Reserve.dir, "free_bytes", g.Reserve.Free())
	}
	return true
}

// NoteReclaimed notes whether the space of everything that was deleted is free again. It reports
// true if the last refused write was a large one: from then on Accept needs space for a usual one.
func (g *Gate) NoteReclaimed(reclaimed bool) (large bool) {
	g.Reserve.setReclaimed(reclaimed)
	if large = reclaimed && g.refused.Load() > smallWrite; large {
		g.refused.Store(smallWrite)
	}
	return large
}
