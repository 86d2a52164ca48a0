package commitlog

import (
	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// Commit is one record on its way: encoded outside all locks, appended to the
// log's memory, made durable by a leader, applied to its memtable in log order,
// and only then revealed. It is used by one goroutine, and may be reused after
// Reset once Wait has returned.
type Commit struct {
	// Guard, if set, is asked under the log mutex right before the record gets
	// its place; its error keeps the record out of the log.
	Guard Guard
	// OnPlace, if set, runs under the log mutex when the record has its place.
	OnPlace func(lastSeq uint64)
	// OnApply, if set, runs together with the publication of the record, after
	// which snapshots see it. Entries of such a commit may have several
	// partitions, and are neither applied as one nor found by Log.Pending.
	OnApply func(firstSeq uint64)

	partHash uint64 // of all keys
	partLen  int
	buf      []byte // encoded entries, back to back
	entries  []entry
	tags     []byte   // of the entries' keys
	offs     []uint32 // of the entries, in the segment's image
	defs     []shapeDef
	seal     bool // asks the leader to make the end of the log provable

	seg      *Segment // nil for a barrier, which has no record
	end      int64    // where the record ends in the segment
	firstSeq uint64   // of a barrier: behind what it waits for
	firstTS  edm.Ticks

	links

	err error
	// lead says, when wake is signalled, that the commit is not finished and
	// its goroutine is to lead the next group.
	lead bool
	wake chan struct{}
}

// Guard decides at the last moment whether a record may enter the log.
type Guard interface {
	// Check returns why the record may not enter the log, nil if it may. It
	// runs under the log mutex and must not call the Log.
	Check() error
}

// entry is one entry of a commit.
type entry struct {
	start, end int // in buf
	keyHash    uint64
	shape      *codec.Shape // nil for a delete
}

// shapeDef is a shape that a record defines in its segment.
type shapeDef struct {
	id    uint16
	off   uint32 // of the definition: in the segment's image once it has its place
	shape *codec.Shape
}

// NewCommit returns an empty Commit.
func NewCommit() *Commit { return &Commit{wake: make(chan struct{}, 1)} }

// maxKeptBytes is the largest buffer that Reset keeps.
const maxKeptBytes = 1 << 20

// Reset empties c and keeps its memory.
func (c *Commit) Reset() {
	clear(c.entries)
	clear(c.defs)
	buf := c.buf[:0]
	if cap(buf) > maxKeptBytes {
		buf = nil
	}
	*c = Commit{buf: buf, entries: c.entries[:0], tags: c.tags[:0], offs: c.offs[:0], defs: c.defs[:0], wake: c.wake}
}

// SetPartition says that the keys of all entries are in the partition that has
// the given codec.PartitionHash and codec.PartitionLen. Without OnApply it must
// be told.
func (c *Commit) SetPartition(hash uint64, n int) { c.partHash, c.partLen = hash, n }

// Put adds a put of key, a user key whose codec.KeyHash is keyHash, and returns
// the size of its entry. The time stamp is filled in when the record enters the
// log.
func (c *Commit) Put(key []byte, keyHash uint64, shape *codec.Shape, props edm.Properties) (size int) {
	start := len(c.buf)
	c.buf = codec.AppendPut(c.buf, key, shape, props)
	c.add(entry{start: start, end: len(c.buf), keyHash: keyHash, shape: shape})
	return len(c.buf) - start
}

func (c *Commit) add(e entry) {
	c.entries = append(c.entries, e)
	c.tags = append(c.tags, tagOf(e.keyHash))
}

// Delete adds a delete of key.
func (c *Commit) Delete(key []byte, keyHash uint64) {
	start := len(c.buf)
	c.buf = codec.AppendEntry(c.buf, codec.Entry{Kind: codec.KindDelete, Key: key})
	c.add(entry{start: start, end: len(c.buf), keyHash: keyHash})
}

// FirstTimestamp returns the time stamp of the first entry; each further one has
// the next tick. It is known once the record has its place.
func (c *Commit) FirstTimestamp() edm.Ticks { return c.firstTS }
