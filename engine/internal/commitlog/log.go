package commitlog

import (
	"fmt"
	"log/slog"
	"path"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/emptyrange"
	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/engine/internal/spinlock"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

// Options configure a Log. Package engine sets every field. Fields without a
// remark have no default. The Log calls the functions under its locks: they must
// not call the Log, but Ready may call Failure.
type Options struct {
	FS   vfs.FS
	Dir  string   // of the database
	DBID [16]byte // the id of the database
	// SegmentBytes is the size of a segment, unless a record needs more.
	SegmentBytes int64
	// NoSync publishes records before they are durable.
	NoSync bool
	// NoPreallocate lets files grow by their writes alone.
	NoPreallocate bool
	// Now returns the time.
	Now func() edm.Ticks
	// Reserve makes it durable that Timestamps up to upto may have been given
	// out. NoSync mode and FileStamp call it, without Log.mu. Nil does nothing, and
	// does not suffice for FileStamp.
	Reserve func(upto edm.Ticks) error
	// Admit returns the error of Append if the disk has no space for a record, with which
	// the active segment, admitted up to the offset from, gets the size end. Otherwise it
	// returns the new offset, end or most. Beyond end, records of every use are admitted.
	// use is Commit.Use. It is called under Log.mu, once for many records unless the disk
	// is full. Nil admits every record.
	Admit func(use space.Use, from, end, most int64) (upto int64, err error)
	// NextNumber returns a new number for a segment, above all earlier ones.
	NextNumber func() uint64
	// Rotated is called with each new active segment.
	Rotated func(seg *Segment)
	// Ready is called when a frozen segment may be ready to be flushed, and when
	// the log has failed.
	Ready func()
	// Logger gets a record when the log fails.
	Logger *slog.Logger
}

// Log is the write-ahead log of a database. All methods may be called
// concurrently.
type Log struct {
	o       Options
	overlay overlay

	mu sync.Mutex
	// active is the segment to which records are appended.
	// +checklocks:mu
	active *Segment
	// admitted is the offset in the active segment up to which Options.Admit has
	// admitted records.
	// +checklocks:mu
	admitted int64
	// lastSeq is the last sequence number assigned, highWater the greatest time
	// stamp.
	// +checklocks:mu
	lastSeq uint64
	// +checklocks:mu
	highWater edm.Ticks
	// fileStamp is the last result of FileStamp.
	// +checklocks:mu
	fileStamp edm.Ticks
	// queue has the appended commits that no leader has taken.
	// +checklocks:mu
	queue []*Commit
	// spareQueue is the other buffer for queue.
	// +checklocks:mu
	spareQueue []*Commit
	// taken is lastSeq when a leader took the queue last.
	// +checklocks:mu
	taken uint64
	// leading is set while a goroutine leads, or has been woken to lead.
	// +checklocks:mu
	leading bool

	// failed is the first write or sync error. It is set under mu, and nothing
	// is appended after it.
	failed atomic.Pointer[error]
	// newest is active, for those that do not hold mu.
	newest atomic.Pointer[Segment]
	// writes counts appended commits.
	writes atomic.Uint64
	// bytesWritten and syncs count what segments' files were given since New.
	bytesWritten atomic.Int64
	syncs        atomic.Uint64

	// applyMu is held while records are applied. Register holds it too, so that a
	// reader never starts between the entries of a record.
	applyMu sync.Mutex
	// applied is the last sequence number applied.
	// +checklocks:applyMu
	applied uint64
	// applying is set while a record is applied, and after a panic meanwhile: then no later
	// record is applied.
	// +checklocks:applyMu
	applying bool
	// empty are ranges of keys that have no entity at applied.
	// +checklocks:applyMu
	empty emptyrange.List
	// applyCond, on applyMu, is signalled when applied has risen, and after a panic.
	applyCond *sync.Cond
	// published is applied, for those that do not hold applyMu.
	published atomic.Uint64
	readers   registry

	// fileMu is held to write a segment that a flush may drop at any time, in NoSync
	// mode and to seal, and by what makes it safe to drop one. A leader without a seal
	// does not need it, because the segment has records that are not applied.
	fileMu sync.Mutex
	noSync noSync

	// spareFile is the name of the file of a dropped segment, for the next
	// segment to take over: blocks that are allocated and written are faster to
	// sync than new ones.
	spareFile atomic.Pointer[string]
	// spareMemory is the memory of a dropped segment, for the next one.
	spareMemory spareMemory
}

// New returns a log whose records follow lastSeq and have Timestamps above
// highWater. The records of the segment before the first one end at prevEnd, 0 if
// there is none.
func New(o Options, lastSeq uint64, highWater edm.Ticks, prevEnd int64) (*Log, error) {
	l := &Log{o: o, lastSeq: lastSeq, highWater: highWater, applied: lastSeq}
	l.noSync.reserved = highWater
	l.applyCond = sync.NewCond(&l.applyMu)
	l.published.Store(lastSeq)
	var err error
	if l.active, err = l.newSegmentLocked(lastSeq+1, prevEnd, 0); err != nil { // +checklocksignore: not shared yet
		return nil, err
	}
	l.noSync.unwritten = l.active // +checklocksignore: not shared yet
	l.noSync.durableSeq.Store(lastSeq)
	l.newest.Store(l.active)
	return l, nil
}

// Active returns the segment to which records are appended.
func (l *Log) Active() *Segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active
}

// HighWater returns the greatest Timestamp assigned.
func (l *Log) HighWater() edm.Ticks {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.highWater
}

// FinalHighWater is HighWater with the results of FileStamp. Later Timestamps are above it.
func (l *Log) FinalHighWater() edm.Ticks {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.highWater = max(l.highWater, l.fileStamp)
	return l.highWater
}

// Published returns the last sequence number that readers see.
func (l *Log) Published() uint64 { return l.published.Load() }

// Writes returns a number that changes with every commit.
func (l *Log) Writes() uint64 { return l.writes.Load() }

// Counters returns how many bytes were written to segments' files, and how many
// syncs of them were made, since New.
func (l *Log) Counters() (bytesWritten int64, syncs uint64) {
	return l.bytesWritten.Load(), l.syncs.Load()
}

// Failure returns the error after which the log accepts no record, nil if there
// was none. It takes no lock.
func (l *Log) Failure() error {
	if failed := l.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// Append appends c to the log. Call Wait after it, but not in NoSync mode, where
// c is published when Append returns. After an error c is not in the log, and may be
// appended again.
func (l *Log) Append(c *Commit) error {
	err := l.append(c)
	if err != nil && l.o.NoSync {
		return l.appendReserved(c, err)
	}
	return err
}

func (l *Log) append(c *Commit) error {
	spinlock.Lock(&l.mu)
	defer l.mu.Unlock()
	if err := l.Failure(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	}
	if c.Guard != nil {
		if err := c.Guard(); err != nil {
			return err
		}
	}
	if err := l.assignLocked(c); err != nil {
		return err
	}
	if c.OnAppend != nil {
		c.OnAppend(l.lastSeq)
	}
	l.writes.Add(1)
	if l.o.NoSync {
		l.applyAtOnceLocked(c)
		return nil
	}
	if c.OnApply == nil {
		l.overlay.put(c)
	}
	l.enqueueLocked(c)
	return nil
}

// +checklocks:l.mu
func (l *Log) enqueueLocked(c *Commit) {
	l.queue = append(l.queue, c)
	if !l.leading && !c.Deferred {
		l.leadLocked(c)
	}
}

// usedUp returns why an entry cannot have the Timestamp last, or one more sequence number. The last
// sequence number is not assigned: after it no segment could begin, also not at Open.
func usedUp(now, last edm.Ticks) error {
	switch {
	case last.Valid():
		return fmt.Errorf("%w: the sequence numbers are used up", store.ErrReadOnly)
	case now <= edm.MaxTicks:
		return fmt.Errorf("%w: the Timestamps are used up, because the clock was near the year 9999 before", store.ErrReadOnly)
	}
	return fmt.Errorf("%w: the clock is beyond the year 9999, where Timestamps end: set it right", store.ErrReadOnly)
}

// assignLocked copies the record into the memory of the active segment, or of the
// next one if it does not fit, and assigns sequence numbers and Timestamps.
// +checklocks:l.mu
func (l *Log) assignLocked(c *Commit) error {
	now := l.o.Now()
	firstTS := max(now, l.highWater+1)
	count := len(c.entries)
	last := firstTS + edm.Ticks(count-1)
	if !last.Valid() || l.lastSeq+uint64(count) >= wal.MaxSeq {
		return usedUp(now, last)
	}
	if l.o.NoSync && last > l.noSync.reserved {
		return unreserved(last)
	}
	for {
		seg := l.active
		defs, ok := l.defineShapesLocked(seg, c)
		var payload []byte
		var off int64
		if ok {
			payload, off, ok = seg.file.Begin(len(defs) + len(c.buf))
		}
		if !ok {
			// The next segment has none of the shapes.
			c.defs = c.defs[:0]
			defs, _ = l.defineShapesLocked(&Segment{}, c)
			c.defs = c.defs[:0]
			if err := l.rotateLocked(int64(len(defs) + len(c.buf))); err != nil {
				return err
			}
			continue
		}
		if err := l.admitLocked(c, off+int64(len(payload))); err != nil {
			c.defs = c.defs[:0] // c may be appended again
			return err
		}
		for i := range c.defs {
			c.defs[i].off += uint32(off)
			seg.define(c.defs[i])
		}
		seg.awaitPage(off + int64(len(payload)))
		n := copy(payload, defs)
		copy(payload[n:], c.buf)
		c.seg = seg
		c.firstSeq = l.lastSeq + 1
		c.firstTS = firstTS
		for i := range c.entries {
			e := &c.entries[i]
			c.offs = append(c.offs, uint32(off)+uint32(n+e.start))
			codec.PatchEntry(payload[n+e.start:n+e.end], seg.shapeID(e.shape), c.firstTS+edm.Ticks(i))
		}
		l.lastSeq += uint64(len(c.entries))
		l.highWater = c.firstTS + edm.Ticks(len(c.entries)-1)
		seg.lastSeq = l.lastSeq
		seg.file.Commit(wal.Record{FirstSeq: c.firstSeq, Count: uint16(len(c.entries))})
		c.end = seg.file.Tail()
		seg.populate()
		return nil
	}
}

// admitStep is how much more space than needed Admit is asked for.
const admitStep = 256 << 10

// admitLocked asks for space for c, which ends at the offset end of the active
// segment.
// +checklocks:l.mu
func (l *Log) admitLocked(c *Commit, end int64) error {
	if l.o.Admit == nil || end <= l.admitted {
		return nil
	}
	most := max(end, min((end+admitStep-1)/admitStep*admitStep, int64(len(l.active.image))))
	var err error
	l.admitted, err = l.o.Admit(c.Use, l.admitted, end, most)
	return err
}

// maxShapes is how many shapes a segment can define.
const maxShapes = 1<<16 - 1

// defineShapesLocked returns the encoded definitions of the shapes of c that seg
// does not have, and lists them in c.defs. It is not ok when seg cannot take more
// shapes.
func (l *Log) defineShapesLocked(seg *Segment, c *Commit) (defs []byte, ok bool) {
	seg.forgetShapes()
	next := seg.defined + 1
entries:
	for i := range c.entries {
		shape := c.entries[i].shape
		if shape == nil {
			continue
		}
		if seg.shapeID(shape) != 0 {
			continue
		}
		for _, d := range c.defs {
			if d.shape == shape {
				continue entries
			}
		}
		id := uint16(next + len(c.defs))
		c.defs = append(c.defs, shapeDef{id, uint32(len(defs)), shape})
		values := codec.AppendShape(nil, shape)
		defs = codec.AppendEntry(defs, codec.Entry{Kind: codec.KindShape, Shape: id, Values: values})
	}
	if len(c.defs) == 0 {
		return nil, true
	}
	// A record has at most maxShapes entries, so its shapes always fit an empty segment.
	return defs, next == 1 || next+len(c.defs) <= maxShapes && seg.Table.Bytes() < l.o.SegmentBytes
}

// rotateLocked freezes the active segment and starts the next one, which can take
// a record of need bytes. It touches memory only: the leader that writes to the
// next segment first creates its file, after this one is complete on disk. In NoSync mode this
// one may not even be durable then, and the header of the next one says so.
// +checklocks:l.mu
func (l *Log) rotateLocked(need int64) error {
	prevEnd := l.active.Tail()
	if l.o.NoSync && (l.active.unsynced() || l.active.Empty() && l.lastSeq > l.DurableSeq()) {
		prevEnd = wal.PrevUnknown
	}
	seg, err := l.newSegmentLocked(l.lastSeq+1, prevEnd, need)
	if err != nil {
		return err
	}
	l.active.next = seg
	l.active.frozen.Store(true)
	l.active, l.admitted = seg, 0
	l.newest.Store(seg)
	l.o.Rotated(seg)
	return nil
}

// newSegmentLocked returns a segment whose first record will have the sequence number
// firstSeq.
// +checklocks:l.mu
func (l *Log) newSegmentLocked(firstSeq uint64, prevEnd, need int64) (*Segment, error) {
	bytes := max(l.o.SegmentBytes, wal.SegmentBytes(int(need)))
	pool := &l.spareMemory
	if bytes != l.o.SegmentBytes {
		pool = nil
	}
	memory, resident, err := l.spareMemory.take(bytes)
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	s := newSegment(l.o.NextNumber(), memory)
	s.pool, s.resident = pool, resident
	if err := s.start(l.o.DBID, firstSeq, l.highWater, prevEnd); err != nil {
		s.Free()
		return nil, err
	}
	return s, nil
}

// open creates the file of seg, unless it exists. The segment before seg must be durable up to
// the end that the header of seg states.
func (l *Log) open(seg *Segment) error {
	if seg.opened {
		return nil
	}
	o := wal.CreateOptions{NoPreallocate: l.o.NoPreallocate}
	if old := l.spareFile.Swap(nil); old != nil {
		o.Prepared = *old
	}
	if err := seg.file.Open(l.o.FS, path.Join(l.o.Dir, filename.Make(filename.WAL, seg.Number)), o); err != nil {
		return err
	}
	seg.opened = true
	l.countWritten(seg, wal.HeaderLen)
	l.syncs.Add(1) // of the header
	if err := l.o.FS.SyncDir(l.o.Dir); err != nil {
		return fmt.Errorf("sync directory after creating segment %d: %w", seg.Number, err)
	}
	return nil
}

// Drop closes the file of seg, which the manifest does not list any more, and
// removes the file or keeps it for the next segment.
func (l *Log) Drop(seg *Segment) error {
	released, ok, err := l.Release(seg)
	if err != nil || !ok {
		return err
	}
	return l.Recycle(released)
}

// Released is the closed file of a segment.
type Released struct {
	Number   uint64
	End      int64 // of its records, 0 if unknown
	reusable bool
}

// Release closes the file of seg, which the manifest does not list any more. It is not ok
// if there is no file. Call Recycle next.
func (l *Log) Release(seg *Segment) (released Released, ok bool, err error) {
	if !seg.hasFile() {
		return Released{}, false, nil
	}
	l.fileMu.Lock()
	defer l.fileMu.Unlock()
	return Released{seg.Number, seg.Tail(), l.reusable(seg)}, true, seg.closeFile()
}

// Recycle removes the file, or keeps it for the next segment.
func (l *Log) Recycle(r Released) error {
	name := path.Join(l.o.Dir, filename.Make(filename.WAL, r.Number))
	if r.reusable && l.spareFile.CompareAndSwap(nil, &name) {
		return nil
	}
	if err := l.o.FS.Remove(name); err != nil {
		return fmt.Errorf("remove %s: %w", filename.Make(filename.WAL, r.Number), err)
	}
	return nil
}

// reusable reports whether the file of seg has the size of most segments and is synced: the
// first sync of the next segment would write what the file system has not written yet.
func (l *Log) reusable(seg *Segment) bool {
	size := int64(len(seg.image))
	return !l.o.NoPreallocate && size == l.o.SegmentBytes && seg.Tail() > size/2 && !seg.unsynced()
}

// Freeze starts the next segment, unless the active one is empty, and returns
// once the one before is durable and applied.
func (l *Log) Freeze() error {
	l.mu.Lock()
	var err error
	if !l.active.Empty() {
		err = l.rotateLocked(0)
	}
	l.mu.Unlock()
	if err != nil || l.o.NoSync {
		return err
	}
	return l.Barrier()
}
