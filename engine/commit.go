package engine

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/wal"
)

// commit is one record on its way: encoded outside all locks, appended to the
// log's memory, made durable by a leader, applied to its memtable in log order,
// and only then revealed.
//
//	prepare   encode the entries into buf (Apply, outside the log mutex)
//	append    sequence numbers, time stamps, image, overlay (log mutex)
//	sync      one leader writes and syncs for everyone in the queue
//	apply     memtable, overlay, published (apply mutex, in log order)
//	complete  wake the waiter
//
// A commit without entries is a barrier: it has no segment of its own, and
// completes when all before it are durable.
type commit struct {
	buf     []byte // encoded entries, back to back
	entries []commitEntry
	offs    []uint32   // of the entries, in the segment's image
	defs    []shapeDef // shapes that the record defines in its segment
	// onApply, if set, runs under the apply mutex when the record is durable.
	onApply func()

	seg      *memSegment
	end      int64 // where the record ends in the segment
	firstSeq uint64
	firstTS  edm.Ticks

	// table and view say what the entries rely on: that view has the table.
	table uint32
	view  *catalogView
	// catalog is what a change of the catalog makes of it.
	catalog *catalog
	// seal asks the leader to make the end of the log provable.
	seal bool

	err error
	// lead says, when wake is signalled, that the commit is not finished and
	// its goroutine is to lead the next group.
	lead bool
	wake chan struct{}
}

// commitEntry is one entry of a commit.
type commitEntry struct {
	start, end int // in commit.buf
	keyHash    uint64
	shape      *codec.Shape // nil for a delete
}

type shapeDef struct {
	id    uint16
	shape *codec.Shape
}

func newCommit() *commit { return &commit{wake: make(chan struct{}, 1)} }

func (c *commit) reset() {
	clear(c.entries)
	clear(c.defs)
	*c = commit{buf: c.buf[:0], entries: c.entries[:0], offs: c.offs[:0], defs: c.defs[:0], wake: c.wake}
}

// addPut encodes a put. The shape's id and the time stamp are filled in when
// the record enters a segment.
func (c *commit) addPut(key []byte, keyHash uint64, shape *codec.Shape, props edm.Properties, scratch []byte) []byte {
	values, wide := codec.AppendValues(scratch[:0], shape, props)
	start := len(c.buf)
	c.buf = codec.AppendEntry(c.buf, codec.Entry{Kind: codec.KindPut, Wide: wide, Key: key, Values: values})
	c.entries = append(c.entries, commitEntry{start: start, end: len(c.buf), keyHash: keyHash, shape: shape})
	return values
}

// addDelete encodes a delete.
func (c *commit) addDelete(key []byte, keyHash uint64) {
	start := len(c.buf)
	c.buf = codec.AppendEntry(c.buf, codec.Entry{Kind: codec.KindDelete, Key: key})
	c.entries = append(c.entries, commitEntry{start: start, end: len(c.buf), keyHash: keyHash})
}

// commitLog is the order of all commits.
type commitLog struct {
	mu sync.Mutex
	// +checklocks:mu
	active *memSegment
	// +checklocks:mu
	lastSeq uint64
	// +checklocks:mu
	highWater edm.Ticks
	// queue holds appended commits that no leader has taken.
	// +checklocks:mu
	queue []*commit
	// spare is the queue's other buffer.
	// +checklocks:mu
	spare []*commit
	// leading is set while some goroutine writes, syncs, or has been woken to.
	// +checklocks:mu
	leading bool
	// writes counts appended records.
	writes atomic.Uint64
	// failed is the first write or sync error; nothing is appended after it.
	// +checklocks:mu
	failed error
	// broken says that failed is set, for those without the mutex.
	broken atomic.Bool
}

// errTableGone says that the table was dropped after the operations had begun.
var errTableGone = errors.New("table was dropped")

// append gives c its place in the log. With sync, c is then in the queue and
// must be waited for; without, it has been applied.
func (db *DB) append(c *commit) error {
	db.log.mu.Lock()
	defer db.log.mu.Unlock()
	if db.log.failed != nil {
		return fmt.Errorf("%w: %w", store.ErrReadOnly, db.log.failed)
	}
	if c.view != nil && c.view != db.tables.Load() && !db.tables.Load().has(c.table) {
		return errTableGone
	}
	if err := db.placeLocked(c); err != nil {
		return err
	}
	if c.catalog != nil {
		db.tables.Store(&catalogView{catalog: c.catalog, seq: db.log.lastSeq})
	}
	if db.opts.NoSync {
		db.applyNow(c)
		return nil
	}
	for i := range c.entries {
		e := &c.entries[i]
		key := codec.EntryKey(c.seg.image[c.offs[i]:])
		db.overlay.put(e.keyHash, key, pendingEntry{seg: c.seg, off: c.offs[i], seq: c.firstSeq + uint64(i), shape: e.shape})
	}
	db.enqueueLocked(c)
	return nil
}

// barrier puts a commit without entries behind everything appended so far.
func (db *DB) barrier(c *commit) {
	db.log.mu.Lock()
	defer db.log.mu.Unlock()
	if c.err = db.log.failed; c.err != nil {
		c.wake <- struct{}{}
		return
	}
	db.enqueueLocked(c)
}

func (db *DB) enqueueLocked(c *commit) {
	db.log.queue = append(db.log.queue, c)
	db.log.writes.Add(1)
	if !db.log.leading {
		db.log.leading = true
		c.lead = true
		c.wake <- struct{}{}
	}
}

// placeLocked copies the record into the active segment's image, opening the
// next segment when this one is full, and numbers its entries.
func (db *DB) placeLocked(c *commit) error {
	for {
		seg := db.log.active
		defs, ok := db.defineShapesLocked(seg, c)
		var payload []byte
		var off int64
		if ok {
			payload, off, ok = seg.log.Begin(len(defs) + len(c.buf))
		}
		if !ok {
			c.defs = c.defs[:0]
			if err := db.rotateLocked(int64(len(defs) + len(c.buf))); err != nil {
				return err
			}
			continue
		}
		for _, d := range c.defs {
			seg.shapes[d.shape] = d.id
		}
		n := copy(payload, defs)
		copy(payload[n:], c.buf)
		c.seg = seg
		c.firstSeq = db.log.lastSeq + 1
		c.firstTS = max(edm.TicksOf(db.opts.Clock.Now()), db.log.highWater+1)
		for i := range c.entries {
			e := &c.entries[i]
			entry := payload[n+e.start : n+e.end]
			c.offs = append(c.offs, uint32(off)+uint32(n+e.start))
			codec.PatchEntry(entry, seg.shapes[e.shape], c.firstTS+edm.Ticks(i))
		}
		db.log.lastSeq += uint64(len(c.entries))
		db.log.highWater = c.firstTS + edm.Ticks(len(c.entries)-1)
		seg.lastSeq = db.log.lastSeq
		seg.log.Commit(wal.Record{FirstSeq: c.firstSeq, Count: uint16(len(c.entries))})
		c.end = seg.log.Tail()
		return nil
	}
}

// defineShapesLocked returns the encoded definitions of the shapes that seg
// does not know yet, and lists them in c.defs. It is not ok when the segment has
// no room for more shapes.
func (db *DB) defineShapesLocked(seg *memSegment, c *commit) (defs []byte, ok bool) {
	next := len(seg.shapes) + 1
entries:
	for i := range c.entries {
		shape := c.entries[i].shape
		if shape == nil {
			continue
		}
		if _, known := seg.shapes[shape]; known {
			continue
		}
		for _, d := range c.defs {
			if d.shape == shape {
				continue entries
			}
		}
		id := uint16(next + len(c.defs))
		c.defs = append(c.defs, shapeDef{id, shape})
		values := codec.AppendShape(nil, shape)
		defs = codec.AppendEntry(defs, codec.Entry{Kind: codec.KindShape, Shape: id, Values: values})
	}
	if len(c.defs) == 0 {
		return nil, true
	}
	// An empty segment takes whatever comes; a batch has few shapes.
	return defs, next == 1 || next+len(c.defs) <= maxShapes && seg.table.Bytes() < db.opts.SegmentBytes
}

// maxShapes is how many shapes a segment can define.
const maxShapes = 1<<16 - 1

// wait returns once c is durable and applied, or has failed; its goroutine may
// have to lead a group for that.
func (db *DB) wait(c *commit) error {
	for {
		<-c.wake
		if !c.lead {
			return c.err
		}
		c.lead = false
		db.leadGroup()
	}
}

// leadGroup makes everything in the queue durable and applied. Leadership goes
// on to a waiter before the group is applied, so that the next sync overlaps
// with it.
func (db *DB) leadGroup() {
	// Writers that are about to append ride along.
	runtime.Gosched()
	db.log.mu.Lock()
	group := db.log.queue
	db.log.queue, db.log.spare = db.log.spare[:0], nil
	db.log.mu.Unlock()

	err := db.syncGroup(group)

	db.log.mu.Lock()
	if err != nil {
		group = db.failLocked(group, err)
	}
	if len(db.log.queue) > 0 {
		next := db.log.queue[0]
		next.lead = true
		next.wake <- struct{}{}
	} else {
		db.log.leading = false
	}
	db.log.mu.Unlock()

	if err == nil {
		db.applyGroup(group)
	}
	for i, c := range group {
		group[i] = nil
		c.wake <- struct{}{}
	}
	db.log.mu.Lock()
	db.log.spare = group[:0]
	db.log.mu.Unlock()
}

// syncGroup writes and syncs the group's segments in order. A segment is whole
// on disk before the next one's header, which vouches for it, is written.
func (db *DB) syncGroup(group []*commit) error {
	var seg *memSegment
	var end int64
	seal := false
	for _, c := range group {
		seal = seal || c.seal
		if c.seg == nil {
			continue
		}
		if seg != nil && seg != c.seg {
			if err := db.syncTo(seg, end); err != nil {
				return err
			}
		}
		seg, end = c.seg, c.end
	}
	if seg != nil {
		if err := db.syncTo(seg, end); err != nil {
			return err
		}
	}
	if seal {
		return db.sealActive()
	}
	return nil
}

func (db *DB) syncTo(seg *memSegment, end int64) error {
	if err := db.openLog(seg); err != nil {
		return err
	}
	return seg.log.Sync(end)
}

// sealActive adds the marker that proves the end of the log, unless something
// is behind it already.
func (db *DB) sealActive() error {
	db.log.mu.Lock()
	seg := db.log.active
	sealed := seg.opened && len(db.log.queue) == 0 && seg.log.AppendSeal()
	db.log.mu.Unlock()
	if !sealed {
		return nil
	}
	return seg.log.Sync(seg.log.Tail())
}

// failLocked makes the failure sticky and gives every waiter the unknown
// outcome: its record may or may not be on disk.
func (db *DB) failLocked(group []*commit, cause error) []*commit {
	db.log.failed = cause
	db.log.broken.Store(true)
	group = append(group, db.log.queue...)
	db.log.queue = db.log.queue[:0]
	for _, c := range group {
		c.err = fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, cause)
	}
	db.overlay.clear()
	db.kick()
	db.opts.Logger.Error("log failed, database is read-only until it is opened again", "cause", cause)
	return group
}

// applyOrder makes groups apply one after another in log order.
type applyOrder struct {
	// mu is also taken by whoever registers a snapshot: a snapshot never
	// begins in the middle of a group.
	mu sync.Mutex
	// +checklocks:mu
	cond *sync.Cond
	// +checklocks:mu
	applied uint64 // the last sequence number applied
}

func (db *DB) applyGroup(group []*commit) {
	db.apply.mu.Lock()
	defer db.apply.mu.Unlock()
	for _, c := range group {
		if len(c.entries) == 0 {
			continue
		}
		for db.apply.applied+1 != c.firstSeq {
			db.apply.cond.Wait()
		}
		db.applyLocked(c)
	}
	db.apply.cond.Broadcast()
	for _, c := range group {
		for i := range c.entries {
			db.overlay.remove(c.entries[i].keyHash, c.firstSeq+uint64(i))
		}
	}
	db.noteApplied(group[0].seg)
}

// applyNow applies a commit at once, in NoSync mode, under the log mutex.
func (db *DB) applyNow(c *commit) {
	db.apply.mu.Lock()
	db.applyLocked(c)
	db.apply.mu.Unlock()
}

// applyLocked puts c's entries into its segment's memtable and publishes them.
func (db *DB) applyLocked(c *commit) {
	for _, d := range c.defs {
		c.seg.table.AddShape(d.id, d.shape)
	}
	keep := db.snapshots.newest()
	if c.onApply == nil {
		c.seg.table.ApplyAll(c.offs, c.firstSeq, keep)
	} else {
		// Rows of the catalog have several partitions; readers see the catalog
		// only as a whole.
		for i, off := range c.offs {
			c.seg.table.Apply(off, c.firstSeq+uint64(i), keep)
		}
	}
	db.apply.applied = c.firstSeq + uint64(len(c.entries)) - 1
	db.published.Store(db.apply.applied)
	c.seg.appliedSeq.Store(db.apply.applied)
	if c.onApply != nil {
		c.onApply()
	}
}

// settle waits until everything up to the pending sequence number seq is
// durable, so that an answer computed from it may be given.
func (db *DB) settle(seq uint64, refusal error) error {
	if seq == 0 {
		return refusal
	}
	c := newCommit()
	db.barrier(c)
	if err := db.wait(c); err != nil {
		if errors.Is(err, store.ErrOutcomeUnknown) {
			return err
		}
		return fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
	}
	return refusal
}
