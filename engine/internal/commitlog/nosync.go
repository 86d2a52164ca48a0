package commitlog

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/edm"
)

const (
	// behindBytes is how much NoSync mode gathers before it writes to the file, at most an
	// eighth of a segment.
	behindBytes = 1 << 20
	// reserveAhead is how many Timestamps NoSync mode reserves at a time, 10 s
	// of them. After a crash, and after a Close or a Checkpoint that follows a Load, the log's
	// Timestamps can be ahead of the clock by as much.
	reserveAhead edm.Ticks = 10 * 10_000_000
)

// noSync is the state that only NoSync mode uses.
type noSync struct {
	// reserveMu is held while reserved is raised, outside Log.mu.
	reserveMu sync.Mutex
	// reserved is the greatest Timestamp that may be given out. Log.mu guards
	// it.
	reserved edm.Ticks
	// unwritten is the oldest segment whose file may lack records. Log.fileMu guards it.
	unwritten *Segment
	// durableSeq is the last sequence number of the segments that are durable as a whole.
	durableSeq atomic.Uint64
}

// DurableSeq returns a sequence number up to which SyncSegments or Flushed has made writes
// durable.
func (l *Log) DurableSeq() uint64 { return l.noSync.durableSeq.Load() }

// WriteBehind, in NoSync mode, writes the segments to their files in order, without a sync, once
// enough has gathered in the active one. If another goroutine is writing it returns at once.
func (l *Log) WriteBehind() error {
	return l.writeBehind(l.newest.Load())
}

// writeBehind is WriteBehind if seg, which may have been frozen and even dropped since it was
// the active segment, has gathered enough.
func (l *Log) writeBehind(seg *Segment) (err error) {
	gathered := seg.file.Tail() - seg.written.Load()
	if gathered < min(behindBytes, l.o.SegmentBytes/8) || !l.fileMu.TryLock() {
		return nil
	}
	defer l.fileMu.Unlock() // +checklocksignore: TryLock
	err = errPanic
	defer func() { err = l.failIf(err) }()
	for {
		s := l.noSync.unwritten
		complete := s.frozen.Load()
		if err := l.writeTo(s, s.file.Tail()); err != nil || !complete {
			return err
		}
		l.noSync.unwritten = s.next
	}
}

// writeTo writes the records of seg up to end to its file, without a sync. The caller owns the
// file side of seg.
func (l *Log) writeTo(seg *Segment, end int64) error {
	if err := l.open(seg); err != nil {
		return err
	}
	if err := seg.file.Write(end); err != nil {
		return err
	}
	l.countWritten(seg, end)
	return nil
}

// SyncSegments, in NoSync mode, makes whole segments durable. Give it the oldest segment that
// is not flushed first, and every segment up to the last: a record that says that its segment
// was synced proves that all segments before it are complete.
func (l *Log) SyncSegments(segs []*Segment) (err error) {
	l.fileMu.Lock()
	defer l.fileMu.Unlock()
	err = errPanic
	defer func() { err = l.failIf(err) }()
	for _, s := range segs {
		if s.file == nil {
			continue
		}
		// The active segment may get more records while it is synced.
		complete := s.frozen.Load()
		if err := l.syncTo(s, s.file.Tail()); err != nil {
			return err
		}
		if complete {
			l.noteDurableLocked(s)
		}
	}
	return nil
}

// Flushed notes that the oldest segments are durable in sstables, so that NoSync mode writes no
// more records to their files. Call it before their memory is freed.
func (l *Log) Flushed(segs []*Segment) {
	l.fileMu.Lock()
	defer l.fileMu.Unlock()
	for _, s := range segs {
		l.noteDurableLocked(s)
	}
}

// noteDurableLocked notes that seg, which is frozen, and everything before it is durable.
// +checklocks:l.fileMu
func (l *Log) noteDurableLocked(seg *Segment) {
	l.noSync.durableSeq.Store(max(seg.LastSeq(), l.noSync.durableSeq.Load()))
	if l.noSync.unwritten == seg {
		l.noSync.unwritten = seg.next
	}
}

// failIf fails the log if err is not nil.
func (l *Log) failIf(err error) error {
	if err == nil {
		return nil
	}
	return l.fail(err)
}

// fail fails the log, unless it has failed.
func (l *Log) fail(cause error) error {
	l.mu.Lock()
	first := l.Failure() == nil
	if first {
		l.failLocked(cause)
	}
	l.mu.Unlock()
	if first {
		l.logFailure(cause)
	}
	return fmt.Errorf("write log: %w", cause)
}

// unreserved is a Timestamp that a commit needs and that is not reserved.
type unreserved edm.Ticks

func (u unreserved) Error() string { return fmt.Sprintf("Timestamp %d is not reserved", edm.Ticks(u)) }

// appendReserved retries an append that failed with err because too few
// Timestamps were reserved.
func (l *Log) appendReserved(c *Commit, err error) error {
	var need unreserved
	for errors.As(err, &need) {
		if err = l.reserve(edm.Ticks(need)); err == nil {
			err = l.append(c)
		}
	}
	return err
}

// reserve makes it legal to give out Timestamps up to stamp, and some more.
func (l *Log) reserve(stamp edm.Ticks) error {
	l.noSync.reserveMu.Lock()
	defer l.noSync.reserveMu.Unlock()
	l.mu.Lock()
	enough := stamp <= l.noSync.reserved
	l.mu.Unlock()
	if enough {
		return nil
	}
	upto := min(stamp+reserveAhead, edm.MaxTicks)
	if l.o.Reserve != nil {
		if err := l.o.Reserve(upto); err != nil {
			return fmt.Errorf("reserve Timestamps: %w", err)
		}
	}
	l.mu.Lock()
	l.noSync.reserved = upto
	l.mu.Unlock()
	return nil
}
