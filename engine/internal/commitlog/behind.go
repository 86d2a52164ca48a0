package commitlog

import "fmt"

// behindBytes is how much NoSync mode gathers before it hands it to the file
// system.
const behindBytes = 1 << 20

// WriteBehind, in NoSync mode, hands what has gathered in the active segment to
// the file system, without a sync. One caller does it at a time; the others go
// on.
func (l *Log) WriteBehind() error {
	return l.writeBehind(l.newest.Load())
}

// writeBehind is WriteBehind for seg, which was the active one a moment ago.
func (l *Log) writeBehind(seg *Segment) error {
	tail := seg.file.Tail()
	if tail-seg.written.Load() < behindBytes || !l.out.TryLock() {
		return nil
	}
	defer l.out.Unlock()
	// A frozen segment is the flush's, which begins with SyncSegments and so
	// waits for out, and may have dropped it by now.
	if seg.frozen.Load() {
		return nil
	}
	// The segment vouches for the one before it, so that must be on disk first:
	// the flush sees to it.
	if !seg.follows.Load() {
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

// SyncSegments, in NoSync mode, makes whole segments durable, oldest first.
func (l *Log) SyncSegments(segs []*Segment) error {
	l.out.Lock()
	defer l.out.Unlock()
	for _, s := range segs {
		if s.file == nil {
			continue
		}
		// The active segment may get more records while it is synced.
		whole := s.frozen.Load()
		if err := l.syncTo(s, s.file.Tail()); err != nil {
			return l.fail(err)
		}
		if whole {
			s.next.follows.Store(true)
		}
	}
	return nil
}

// fail makes a failure of the log sticky.
func (l *Log) fail(cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Failure() == nil {
		l.failLocked(cause)
	}
	return fmt.Errorf("write log: %w", cause)
}
