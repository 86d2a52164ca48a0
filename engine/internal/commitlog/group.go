package commitlog

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/tablerock-db/tablerock/store"
)

// Wait returns once c is durable and published, or has failed. Its goroutine may
// lead a group meanwhile. After an error, which is a store.ErrOutcomeUnknown, the
// record may be on disk or not.
func (l *Log) Wait(c *Commit) error {
	if c.Deferred {
		l.attend(c)
	}
	for {
		<-c.wake
		if !c.lead {
			return c.err
		}
		c.lead = false
		l.leadGroup()
	}
}

// attend clears c.Deferred. If no leader has taken it and nobody leads, it leads.
func (l *Log) attend(c *Commit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Deferred = false
	if !l.leading && c.firstSeq > l.taken {
		l.leadLocked(c)
	}
}

// leadLocked makes c, which is in the queue, lead the next group.
// +checklocks:l.mu
func (l *Log) leadLocked(c *Commit) {
	l.leading = true
	c.lead = true
	c.wake <- struct{}{}
}

// takeQueueLocked returns the queue, which is empty then.
// +checklocks:l.mu
func (l *Log) takeQueueLocked() []*Commit {
	queue := l.queue
	l.queue, l.spareQueue = l.spareQueue[:0], nil
	l.taken = l.lastSeq
	return queue
}

// Barrier returns once everything appended so far is durable and published.
func (l *Log) Barrier() error { return l.barrier(NewCommit()) }

// Seal is Barrier. If nothing is appended meanwhile it also appends a seal, with
// which recovery can tell damage to the end of the log from a torn record.
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

// WaitDurable returns once everything up to the assigned sequence number seq is
// durable and published. With 0 it returns at once.
func (l *Log) WaitDurable(seq uint64) error {
	if seq == 0 {
		return nil
	}
	return l.Barrier()
}

// leadGroup makes everything in the queue durable and applies it. It passes the
// leadership on before it applies, so that the next sync overlaps with that.
func (l *Log) leadGroup() {
	// Let writers that are about to append join the group.
	runtime.Gosched()
	l.mu.Lock()
	group := l.takeQueueLocked()
	l.mu.Unlock()
	// After a panic, which the caller may survive, the others must not wait for ever.
	err := errPanic
	defer func() { l.endGroup(group, err) }()
	err = l.syncGroup(group)
}

// The failures of the log if a goroutine of the caller panics.
var (
	errPanic      = errors.New("the goroutine that synced the log panicked")
	errApplyPanic = errors.New("the goroutine that applied a record of the log panicked")
	errStepPanic  = errors.New("the goroutine that flushed or compacted panicked")
)

// endGroup ends the lead of a group that was synced with the error err, and applies it.
func (l *Log) endGroup(group []*Commit, err error) {
	l.mu.Lock()
	if err != nil {
		l.failLocked(err)
		group = append(group, l.takeQueueLocked()...)
	}
	l.leading = false
	if i := slices.IndexFunc(l.queue, func(c *Commit) bool { return !c.Deferred }); i >= 0 {
		l.leadLocked(l.queue[i])
	}
	l.mu.Unlock()

	defer func() { l.wakeGroup(group, err) }()
	if err != nil {
		l.logFailure(err)
		return
	}
	err = errApplyPanic
	defer func() {
		if err != nil {
			_ = l.fail(err)
		}
	}()
	err = l.applyGroup(group)
}

// wakeGroup wakes the waiters of a group that ended with the error err.
func (l *Log) wakeGroup(group []*Commit, err error) {
	for i, c := range group {
		if err != nil { // its record may be on disk
			c.err = fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
		}
		group[i] = nil
		c.wake <- struct{}{}
	}
	l.mu.Lock()
	l.spareQueue = group[:0]
	l.mu.Unlock()
}

// syncGroup writes and syncs the segments of the group in order. A segment is
// complete on disk before the header of the next one, which says so, is written.
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

// sealActive appends a seal to the active segment and syncs it, unless records
// were appended meanwhile. fileMu keeps the file open: when all records before the
// seal are applied and the segment is frozen, a flush may drop it.
func (l *Log) sealActive() error {
	l.fileMu.Lock()
	defer l.fileMu.Unlock()
	l.mu.Lock()
	seg := l.active
	// A seal proves that everything before it is durable. In NoSync mode the segments before an
	// empty one may not be.
	sealed := !l.o.NoSync && seg.opened && len(l.queue) == 0 && seg.file.AppendSeal()
	seg.Ref()
	l.mu.Unlock()
	defer seg.Unref()
	if !sealed {
		return nil
	}
	return l.syncTo(seg, seg.file.Tail())
}

// failLocked records the failure, after which nothing is appended. Call logFailure without Log.mu
// next.
func (l *Log) failLocked(cause error) {
	l.failed.Store(&cause)
	l.overlay.clear()
	l.o.Ready()
}

// logFailure logs a failure. The handler of the Logger may use the database.
func (l *Log) logFailure(cause error) {
	l.o.Logger.Error("log failed, database is read-only until it is opened again", "cause", cause)
}

// applyGroup applies a group, after the group before it. It returns errApplyPanic if a record before it
// was not applied because of a panic.
func (l *Log) applyGroup(group []*Commit) error {
	l.applyMu.Lock()
	defer l.applyMu.Unlock()
	defer l.applyCond.Broadcast()
	for _, c := range group {
		for l.applied+1 < c.firstSeq && !l.applying {
			l.applyCond.Wait()
		}
		if l.applying {
			return errApplyPanic
		}
		if c.seg != nil {
			l.applyLocked(c)
		}
	}
	for _, c := range group {
		l.overlay.remove(c)
	}
	filled := false
	for _, c := range group {
		if c.seg != nil {
			markAppliedLocked(c)
			filled = filled || c.seg.frozen.Load()
		}
	}
	if filled {
		l.o.Ready()
	}
	return nil
}

// applyAtOnceLocked applies c in NoSync mode.
// +checklocks:l.mu
func (l *Log) applyAtOnceLocked(c *Commit) {
	l.applyMu.Lock()
	defer l.applyMu.Unlock()
	defer func() {
		if l.applying { // +checklocksignore: called under applyMu
			l.failLocked(errApplyPanic)
		}
	}()
	l.applyLocked(c)
	markAppliedLocked(c)
}

// applyLocked inserts the entries of c into the memtable of its segment and
// publishes them.
// +checklocks:l.applyMu
func (l *Log) applyLocked(c *Commit) {
	l.applying = true
	for _, d := range c.defs {
		c.seg.Table.AddShape(d.id, d.off, d.shape)
	}
	if !l.empty.Empty() {
		l.fillLocked(c)
	}
	keep := l.readers.newest()
	if c.OnApply == nil {
		for i := range c.parts {
			p := &c.parts[i]
			c.seg.Table.ApplyAll(p.hash, p.keyLen, c.offs[p.from:p.to], c.firstSeq+uint64(p.from), keep)
		}
	} else {
		for i, off := range c.offs {
			c.seg.Table.Apply(off, c.firstSeq+uint64(i), keep)
		}
	}
	l.applied = c.lastSeq()
	l.published.Store(l.applied)
	if c.OnApply != nil {
		c.OnApply(c.firstSeq)
	}
	l.applying = false
}

// markAppliedLocked notes in the segment of c that c is applied. After the last
// record of a frozen segment a flush may free its memory, so by then only the
// memtable points into it, and the overlay does not.
func markAppliedLocked(c *Commit) { c.seg.appliedSeq.Store(c.lastSeq()) }

// FreeSpareMemory frees the memory that is kept for the next segment, now and
// when segments are freed later. Call it when no segment will follow.
func (l *Log) FreeSpareMemory() { l.spareMemory.close() }

// CloseAll makes the segments, given newest first, durable and seals them, unless
// the log has failed: then, in NoSync mode, the error says so if published records are not
// durable. It closes their files and removes the file that is kept for the next segment.
func (l *Log) CloseAll(segs []*Segment) error {
	var errs []error
	failed := l.Failure() != nil
	if failed && l.o.NoSync && slices.ContainsFunc(segs, (*Segment).unsynced) {
		errs = append(errs, fmt.Errorf("writes are not durable: %w", l.Failure()))
	}
	for i := len(segs) - 1; i >= 0; i-- {
		s := segs[i]
		if s.file == nil {
			continue
		}
		if !failed && !s.Empty() {
			err := l.open(s)
			if err == nil {
				err = s.file.Seal()
			}
			failed = err != nil
			errs = append(errs, err)
		}
		errs = append(errs, s.closeFile())
	}
	// No segment will take the file over. If it stays, the next open removes it.
	if !failed {
		errs = append(errs, l.RemoveSpareFile())
	}
	return errors.Join(errs...)
}

// RemoveSpareFile removes the file that is kept for the next segment.
func (l *Log) RemoveSpareFile() error {
	if old := l.spareFile.Swap(nil); old != nil {
		return l.o.FS.Remove(*old)
	}
	return nil
}
