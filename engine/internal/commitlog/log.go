package commitlog

import (
	"fmt"
	"log/slog"
	"path"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

// Options configure a Log. The functions are called under its locks and must
// not call it, but for Ready.
type Options struct {
	// FS and Dir say where the segments are. The default value of FS is none.
	FS vfs.FS
	// Dir is the database's directory. The default value is the current one.
	Dir string
	// DBID is the database's name in its files. The default value is zeros.
	DBID [16]byte
	// SegmentBytes is the size of a segment, unless a record needs more. The
	// default value is the smallest possible.
	SegmentBytes int64
	// NoSync applies and reveals records at once. The default value is to sync.
	NoSync bool
	// NoPreallocate lets files grow by their writes alone. The default value is
	// to make space ahead of them.
	NoPreallocate bool
	// Now tells the time. It must be set: there is no default.
	Now func() edm.Ticks
	// Reserve makes it durable that time stamps up to the given one may have been
	// given out. Only NoSync mode asks, under no lock but one of its own, since
	// what else says so may be lost. The default value has nothing to do.
	Reserve func(upto edm.Ticks) error
	// NextNumber gives each segment a number of its own. It must be set: there
	// is no default.
	NextNumber func() uint64
	// Rotated is told of each new active segment. It must be set: there is no
	// default.
	Rotated func(seg *Segment)
	// Ready is told that a frozen segment may have become ready to be flushed,
	// or that the log has failed. It must be set: there is no default.
	Ready func()
	// Logger gets a line when the log fails. It must be set: there is no
	// default.
	Logger *slog.Logger
}

// Log is the order of all commits. All methods may be called concurrently.
type Log struct {
	o       Options
	overlay overlay

	mu sync.Mutex
	// +checklocks:mu
	active *Segment
	// +checklocks:mu
	lastSeq uint64
	// +checklocks:mu
	highWater edm.Ticks
	// reserved is the greatest time stamp that NoSync mode may give out.
	// +checklocks:mu
	reserved edm.Ticks
	// queue holds appended commits that no leader has taken.
	// +checklocks:mu
	queue []*Commit
	// spare is the queue's other buffer.
	// +checklocks:mu
	spare []*Commit
	// leading is set while some goroutine writes, syncs, or has been woken to.
	// +checklocks:mu
	leading bool

	// failed is the first write or sync error. It is set under mu, and nothing
	// is appended after it.
	failed atomic.Pointer[error]
	// newest is active for those without the mutex.
	newest atomic.Pointer[Segment]
	// writes counts appended commits.
	writes atomic.Uint64
	// bytesWritten and syncs count what segments' files were given since New.
	bytesWritten atomic.Int64
	syncs        atomic.Uint64

	// applyMu is also taken by whoever registers a reader: none begins in the
	// middle of a group.
	applyMu sync.Mutex
	// applied is the last sequence number applied; applyTurn is on applyMu.
	// +checklocks:applyMu
	applied   uint64
	applyTurn *sync.Cond
	// published is applied for those without the mutex.
	published atomic.Uint64
	readers   registry

	// reserving is held while reserved is raised, outside mu.
	reserving sync.Mutex

	// out is held to write a segment whose records may all be applied, so that
	// a flush could drop it meanwhile: in NoSync mode, and to seal.
	out sync.Mutex

	// old is the file of a segment that nobody needs any more, for the next
	// segment to take over: what is on disk already is synced faster than what
	// the file system must first find space for.
	old atomic.Pointer[string]
	// memory is that of such a segment.
	memory spare
}

// New returns a log that goes on behind lastSeq, with time stamps above
// highWater. The segment before the first one ends at prevEnd, 0 if there is
// none.
func New(o Options, lastSeq uint64, highWater edm.Ticks, prevEnd int64) (*Log, error) {
	l := &Log{o: o, lastSeq: lastSeq, highWater: highWater, reserved: highWater, applied: lastSeq}
	l.applyTurn = sync.NewCond(&l.applyMu)
	l.published.Store(lastSeq)
	var err error
	if l.active, err = l.newSegmentLocked(prevEnd, 0); err != nil {
		return nil, err
	}
	l.active.follows.Store(true)
	l.newest.Store(l.active)
	return l, nil
}

// Active returns the segment that records go to.
func (l *Log) Active() *Segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active
}

// HighWater returns the greatest time stamp given.
func (l *Log) HighWater() edm.Ticks {
	l.mu.Lock()
	defer l.mu.Unlock()
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

// Failure returns why the log takes nothing more, nil if it does. It waits for
// nobody, so that who is told by Options.Ready may ask.
func (l *Log) Failure() error {
	if failed := l.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// Append gives c its place in the log. With sync, it must be waited for; in
// NoSync mode it has been applied.
func (l *Log) Append(c *Commit) error {
	err := l.append(c)
	if err != nil && l.o.NoSync {
		return l.appendReserved(c, err)
	}
	return err
}

func (l *Log) append(c *Commit) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Failure(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	}
	if c.Guard != nil {
		if err := c.Guard.Check(); err != nil {
			return err
		}
	}
	if err := l.placeLocked(c); err != nil {
		return err
	}
	if c.OnPlace != nil {
		c.OnPlace(l.lastSeq)
	}
	l.writes.Add(1)
	if l.o.NoSync {
		l.applyMu.Lock()
		l.applyLocked(c)
		l.settleLocked(c)
		l.applyMu.Unlock()
		return nil
	}
	if c.OnApply == nil {
		l.overlay.put(c)
	}
	l.enqueueLocked(c)
	return nil
}

func (l *Log) enqueueLocked(c *Commit) {
	l.queue = append(l.queue, c)
	if !l.leading {
		l.leading = true
		c.lead = true
		c.wake <- struct{}{}
	}
}

// placeLocked copies the record into the active segment's image, opening the
// next segment when this one is full, and numbers its entries.
func (l *Log) placeLocked(c *Commit) error {
	firstTS := max(l.o.Now(), l.highWater+1)
	count := len(c.entries)
	if last := firstTS + edm.Ticks(count-1); !last.Valid() || l.lastSeq+uint64(count) > wal.MaxSeq {
		return fmt.Errorf("%w: time stamps or sequence numbers are used up", store.ErrReadOnly)
	}
	if last := firstTS + edm.Ticks(count-1); l.o.NoSync && last > l.reserved {
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
			// The next segment knows none of the shapes.
			c.defs = c.defs[:0]
			defs, _ = l.defineShapesLocked(&Segment{}, c)
			c.defs = c.defs[:0]
			if err := l.rotateLocked(int64(len(defs) + len(c.buf))); err != nil {
				return err
			}
			continue
		}
		for i := range c.defs {
			c.defs[i].off += uint32(off)
			seg.define(c.defs[i])
		}
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
		return nil
	}
}

// maxShapes is how many shapes a segment can define.
const maxShapes = 1<<16 - 1

// defineShapesLocked returns the encoded definitions of the shapes that seg
// does not know yet, and lists them in c.defs. It is not ok when the segment has
// no room for more shapes.
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
	// An empty segment takes whatever comes; a batch has few shapes.
	return defs, next == 1 || next+len(c.defs) <= maxShapes && seg.Table.Bytes() < l.o.SegmentBytes
}

// rotateLocked freezes the active segment and opens the next one, with room for
// a record of need bytes. It touches memory only: the next segment's file is
// made by the leader that first writes to it, once this one is whole on disk.
func (l *Log) rotateLocked(need int64) error {
	seg, err := l.newSegmentLocked(l.active.Tail(), need)
	if err != nil {
		return err
	}
	l.active.next = seg
	l.active.frozen.Store(true)
	l.active = seg
	l.newest.Store(seg)
	l.o.Rotated(seg)
	return nil
}

func (l *Log) newSegmentLocked(prevEnd, need int64) (*Segment, error) {
	bytes := max(l.o.SegmentBytes, wal.SegmentBytes(int(need)))
	from := &l.memory
	if bytes != l.o.SegmentBytes {
		from = nil
	}
	memory, err := l.memory.take(bytes)
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	s := newSegment(l.o.NextNumber(), memory)
	s.from = from
	if err := s.start(l.o.DBID, l.lastSeq+1, l.highWater, prevEnd); err != nil {
		s.Free()
		return nil, err
	}
	return s, nil
}

// open makes seg's file, so that seg can be written. Everything before seg is
// durable by then, because its header says so.
func (l *Log) open(seg *Segment) error {
	if seg.opened {
		return nil
	}
	o := wal.CreateOptions{NoPreallocate: l.o.NoPreallocate}
	if old := l.old.Swap(nil); old != nil {
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

// Drop closes the file of a segment that the manifest no longer lists, and
// removes it or keeps it for the next segment.
func (l *Log) Drop(seg *Segment) error {
	if !seg.hasFile() {
		return nil
	}
	l.out.Lock()
	err := seg.closeFile()
	l.out.Unlock()
	if err != nil {
		return err
	}
	name := path.Join(l.o.Dir, filename.Make(filename.WAL, seg.Number))
	if l.reusable(seg) && l.old.CompareAndSwap(nil, &name) {
		return nil
	}
	if err := l.o.FS.Remove(name); err != nil {
		return fmt.Errorf("remove %s: %w", filename.Make(filename.WAL, seg.Number), err)
	}
	return nil
}

// reusable reports whether the file of seg has the size that segments have.
func (l *Log) reusable(seg *Segment) bool {
	size := int64(len(seg.image))
	return !l.o.NoPreallocate && size == l.o.SegmentBytes && seg.Tail() > size/2
}

// Freeze opens the next segment, unless the active one is empty, and returns
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
