package commitlog

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/edm"
)

const (
	// behindBytes is how much NoSync mode gathers before it writes to the file.
	behindBytes = 1 << 20
	// reserveAhead is how many time stamps NoSync mode reserves at a time, 10 s
	// of them. After a crash, and after a Close or a Checkpoint that follows a Load, the log's
	// time stamps can be ahead of the clock by as much.
	reserveAhead edm.Ticks = 10 * 10_000_000
)

// noSync is the state that only NoSync mode uses.
type noSync struct {
	// reserveMu is held while reserved is raised, outside Log.mu.
	reserveMu sync.Mutex
	// reserved is the greatest time stamp that may be given out. Log.mu guards
	// it.
	reserved edm.Ticks
	// writable is the number of the newest segment that may be written: every
	// segment before it is complete on disk.
	writable atomic.Uint64
	// syncedSeq is the last sequence number of the segments that are complete on
	// disk, 0 if that is none of this Log's.
	syncedSeq atomic.Uint64
}

// SyncedSeq returns a sequence number up to which SyncSegments has made the log
// durable.
func (l *Log) SyncedSeq() uint64 { return l.noSync.syncedSeq.Load() }

// WriteBehind, in NoSync mode, writes the active segment to its file, without a
// sync, once enough has gathered. If another goroutine is writing it returns at
// once.
func (l *Log) WriteBehind() error {
	return l.writeBehind(l.newest.Load())
}

// writeBehind is WriteBehind for seg, which may have been frozen and even
// dropped since it was the active segment.
func (l *Log) writeBehind(seg *Segment) error {
	tail := seg.file.Tail()
	if tail-seg.written.Load() < behindBytes || !l.fileMu.TryLock() {
		return nil
	}
	defer l.fileMu.Unlock() // +checklocksignore: TryLock
	// SyncSegments writes the frozen segments.
	if seg.frozen.Load() || seg.Number > l.noSync.writable.Load() {
		return nil
	}
	err := l.open(seg)
	if err == nil {
		err = seg.file.Write(tail)
	}
	if err != nil {
		return l.fail(err)
	}
	l.countWritten(seg, tail)
	return nil
}

// SyncSegments, in NoSync mode, makes whole segments durable. Give it the oldest
// segment first, and every segment up to the last.
func (l *Log) SyncSegments(segs []*Segment) error {
	l.fileMu.Lock()
	defer l.fileMu.Unlock()
	for _, s := range segs {
		if s.file == nil {
			continue
		}
		// The active segment may get more records while it is synced.
		complete := s.frozen.Load()
		if err := l.syncTo(s, s.file.Tail()); err != nil {
			return l.fail(err)
		}
		if complete {
			l.noSync.writable.Store(s.next.Number)
			l.noSync.syncedSeq.Store(s.LastSeq())
		}
	}
	return nil
}

// fail fails the log, unless it has failed.
func (l *Log) fail(cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Failure() == nil {
		l.failLocked(cause)
	}
	return fmt.Errorf("write log: %w", cause)
}

// unreserved is a time stamp that a commit needs and that is not reserved.
type unreserved edm.Ticks

func (u unreserved) Error() string { return fmt.Sprintf("time stamp %d is not reserved", edm.Ticks(u)) }

// appendReserved retries an append that failed with err because too few time
// stamps were reserved.
func (l *Log) appendReserved(c *Commit, err error) error {
	var need unreserved
	for errors.As(err, &need) {
		if err = l.reserve(edm.Ticks(need)); err == nil {
			err = l.append(c)
		}
	}
	return err
}

// reserve makes it legal to give out time stamps up to stamp, and some more.
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
			return fmt.Errorf("reserve time stamps: %w", err)
		}
	}
	l.mu.Lock()
	l.noSync.reserved = upto
	l.mu.Unlock()
	return nil
}
