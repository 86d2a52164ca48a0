package commitlog

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/tablerock-db/tablerock/store"
)

// Wait returns once c is durable and applied, or has failed; its goroutine may
// have to lead a group for that.
func (l *Log) Wait(c *Commit) error {
	for {
		<-c.wake
		if !c.lead {
			return c.err
		}
		c.lead = false
		l.leadGroup()
	}
}

// Barrier returns once everything appended so far is durable and applied.
func (l *Log) Barrier() error { return l.barrier(NewCommit()) }

// Seal is Barrier, and makes the end of the log provable if nothing is appended
// meanwhile.
func (l *Log) Seal() error {
	c := NewCommit()
	c.seal = true
	return l.barrier(c)
}

func (l *Log) barrier(c *Commit) error {
	l.mu.Lock()
	if err := l.Failure(); err != nil {
		l.mu.Unlock()
		return fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
	}
	c.firstSeq = l.lastSeq + 1
	l.enqueueLocked(c)
	l.mu.Unlock()
	return l.Wait(c)
}

// Settle returns refusal once everything up to the pending sequence number seq
// is durable, so that an answer computed from it may be given. A seq of 0 waits
// for nothing.
func (l *Log) Settle(seq uint64, refusal error) error {
	if seq == 0 {
		return refusal
	}
	if err := l.Barrier(); err != nil {
		return err
	}
	return refusal
}

// leadGroup makes everything in the queue durable and applied. Leadership goes
// on to a waiter before the group is applied, so that the next sync overlaps
// with it.
func (l *Log) leadGroup() {
	// Writers that are about to append ride along.
	runtime.Gosched()
	l.mu.Lock()
	group := l.queue
	l.queue, l.spare = l.spare[:0], nil
	l.mu.Unlock()

	err := l.syncGroup(group)

	l.mu.Lock()
	if err != nil {
		// Every waiter has an unknown outcome: its record may be on disk.
		l.failLocked(err)
		group = append(group, l.queue...)
		l.queue = l.queue[:0]
		for _, c := range group {
			c.err = fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
		}
	}
	if len(l.queue) > 0 {
		next := l.queue[0]
		next.lead = true
		next.wake <- struct{}{}
	} else {
		l.leading = false
	}
	l.mu.Unlock()

	if err == nil {
		l.applyGroup(group)
	}
	for i, c := range group {
		group[i] = nil
		c.wake <- struct{}{}
	}
	l.mu.Lock()
	l.spare = group[:0]
	l.mu.Unlock()
}

// syncGroup writes and syncs the group's segments in order. A segment is whole
// on disk before the next one's header, which vouches for it, is written.
func (l *Log) syncGroup(group []*Commit) error {
	var seg *Segment
	var end int64
	seal := false
	for _, c := range group {
		seal = seal || c.seal
		if c.seg == nil {
			continue
		}
		if seg != nil && seg != c.seg {
			if err := l.syncTo(seg, end); err != nil {
				return err
			}
		}
		seg, end = c.seg, c.end
	}
	if seg != nil {
		if err := l.syncTo(seg, end); err != nil {
			return err
		}
	}
	if seal {
		return l.sealActive()
	}
	return nil
}

// syncTo makes the records of seg up to end durable. The caller owns the file
// side of seg.
func (l *Log) syncTo(seg *Segment, end int64) error {
	if err := l.open(seg); err != nil {
		return err
	}
	before := seg.file.Synced()
	if err := seg.file.Sync(end); err != nil {
		return err
	}
	if seg.file.Synced() != before {
		l.syncs.Add(1)
	}
	l.countWritten(seg, end)
	return nil
}

// countWritten notes that the file of seg holds its records up to end.
func (l *Log) countWritten(seg *Segment, end int64) {
	if before := seg.written.Load(); end > before {
		l.bytesWritten.Add(end - before)
		seg.written.Store(end)
	}
}

// sealActive adds the marker that proves the end of the log, unless something
// is behind it already. The records before the marker are applied or soon will
// be: once the segment is frozen, a flush can drop it in the middle of this.
func (l *Log) sealActive() error {
	l.out.Lock()
	defer l.out.Unlock()
	l.mu.Lock()
	seg := l.active
	sealed := seg.opened && len(l.queue) == 0 && seg.file.AppendSeal()
	seg.Ref()
	l.mu.Unlock()
	defer seg.Unref()
	if !sealed {
		return nil
	}
	return l.syncTo(seg, seg.file.Tail())
}

// failLocked makes the failure sticky.
func (l *Log) failLocked(cause error) {
	l.failed.Store(&cause)
	l.overlay.clear()
	l.o.Ready()
	l.o.Logger.Error("log failed, database is read-only until it is opened again", "cause", cause)
}

// applyGroup applies a group once the one before it is applied.
func (l *Log) applyGroup(group []*Commit) {
	l.applyMu.Lock()
	defer l.applyMu.Unlock()
	for _, c := range group {
		for l.applied+1 < c.firstSeq {
			l.applyTurn.Wait()
		}
		if c.seg != nil {
			l.applyLocked(c)
		}
	}
	l.applyTurn.Broadcast()
	for _, c := range group {
		l.overlay.remove(c)
	}
	filled := false
	for _, c := range group {
		if c.seg != nil {
			l.settleLocked(c)
			filled = filled || c.seg.frozen.Load()
		}
	}
	if filled {
		l.o.Ready()
	}
}

// applyLocked puts c's entries into its segment's memtable and publishes them.
func (l *Log) applyLocked(c *Commit) {
	for _, d := range c.defs {
		c.seg.Table.AddShape(d.id, d.off, d.shape)
	}
	keep := l.readers.newest()
	if c.OnApply == nil {
		c.seg.Table.ApplyAll(c.partHash, c.partLen, c.offs, c.firstSeq, keep)
	} else {
		for i, off := range c.offs {
			c.seg.Table.Apply(off, c.firstSeq+uint64(i), keep)
		}
	}
	l.applied = c.firstSeq + uint64(len(c.entries)) - 1
	l.published.Store(l.applied)
	if c.OnApply != nil {
		c.OnApply(c.firstSeq)
	}
}

// settleLocked tells c's segment that the record is applied. From the last one
// on a flush may give the segment's memory back, so nothing, the overlay
// included, points into it any more but the memtable.
func (l *Log) settleLocked(c *Commit) {
	c.seg.appliedSeq.Store(c.firstSeq + uint64(len(c.entries)) - 1)
}

// End says that there will be no next segment, so that no memory is kept for it,
// neither now nor when the last segments are given up.
func (l *Log) End() { l.memory.end() }

// CloseAll makes everything in the segments, newest first, durable and
// provable, unless the log has failed, closes their files, and removes the file
// kept for the next segment.
func (l *Log) CloseAll(segs []*Segment) error {
	var errs []error
	failed := l.Failure() != nil
	for i := len(segs) - 1; i >= 0; i-- {
		s := segs[i]
		if s.file == nil || s.Empty() {
			continue
		}
		if !failed {
			err := l.open(s)
			if err == nil {
				err = s.file.Seal()
			}
			failed = err != nil
			errs = append(errs, err)
		}
		errs = append(errs, s.closeFile())
	}
	// No next segment will take it over. If it stays, the next open removes it.
	if old := l.old.Swap(nil); old != nil && !failed {
		errs = append(errs, l.o.FS.Remove(*old))
	}
	return errors.Join(errs...)
}
