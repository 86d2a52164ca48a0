package commitlog

import (
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/emptyrange"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/wal"
)

// ErrNotEmpty is the error of Install if the active segment has records or is not the only
// one.
var ErrNotEmpty = errors.New("the log has records that are not flushed")

// Install gives rows that are in sstables, and in no record, the next sequence number and
// Timestamp of the log. write makes them durable together with the number of the segment
// that follows, before which no segment is needed any more. Then publish makes them and
// that segment visible to readers, at the instant in which the sequence number is
// published; Install returns the segment that was active before, for Drop.
//
// The caller keeps all others from appending, and has flushed everything that was
// appended. If write fails, nothing has happened and the log goes on with the same
// sequence number, so write must have changed nothing; otherwise call Fail.
func (l *Log) Install(write func(seq uint64, stamp edm.Ticks, next uint64) error, publish func(next *Segment)) (*Segment, error) {
	next, stamp, err := l.beginInstall()
	if err != nil {
		return nil, err
	}
	seq := next.lastSeq
	if err := write(seq, stamp, next.Number); err != nil {
		next.Free()
		return nil, err
	}
	l.fileMu.Lock()
	defer l.fileMu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.active
	old.next = next
	old.frozen.Store(true)
	l.active, l.admitted, l.lastSeq = next, 0, seq
	l.newest.Store(next)
	l.noSync.unwritten = next
	l.noSync.durableSeq.Store(seq)
	l.writes.Add(1)
	l.applyMu.Lock()
	defer l.applyMu.Unlock()
	publish(next)
	l.empty = emptyrange.List{} // any key may have been put
	l.applied = seq
	l.published.Store(seq)
	return old, nil
}

// beginInstall returns a segment whose records follow the sequence number of an install,
// and the Timestamp of the install.
func (l *Log) beginInstall() (next *Segment, stamp edm.Ticks, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Failure(); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	}
	if !l.active.Empty() {
		return nil, 0, ErrNotEmpty
	}
	now := l.o.Now()
	stamp = max(now, l.highWater+1)
	if !stamp.Valid() || l.lastSeq+1 >= wal.MaxSeq {
		return nil, 0, usedUp(now, stamp)
	}
	l.highWater = stamp
	// Everything before is flushed, so the segment follows none.
	if next, err = l.newSegmentLocked(l.lastSeq+2, 0, 0); err != nil {
		return nil, 0, err
	}
	return next, stamp, nil
}

// FileStamp returns a new Timestamp for entries of files, above all others and at least least,
// once Options.Reserve has made it durable that it may have been given out. No entry of the log
// gets it. In NoSync mode, where the manifest is ahead of the log by the reserved Timestamps,
// those of later records may be less.
func (l *Log) FileStamp(least edm.Ticks) (edm.Ticks, error) {
	stamp, err := l.newFileStamp(least)
	if err != nil {
		return 0, err
	}
	return stamp, l.o.Reserve(stamp)
}

func (l *Log) newFileStamp(least edm.Ticks) (edm.Ticks, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.o.Now()
	highWater := max(now, l.highWater+1)
	stamp := max(highWater, least, l.fileStamp+1)
	if !stamp.Valid() {
		return 0, usedUp(now, stamp)
	}
	l.highWater, l.fileStamp = highWater, stamp
	return stamp, nil
}

// FailUnless fails the log unless a step of background work has ended. Defer it: if the step panics, which the caller of a flush
// may survive, nobody knows what it has done.
func (l *Log) FailUnless(ended *bool) {
	if !*ended {
		l.Fail(errStepPanic)
	}
}

// Fail makes the log refuse all records from now on.
func (l *Log) Fail(cause error) { _ = l.fail(cause) }
