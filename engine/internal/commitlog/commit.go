package commitlog

import (
	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/space"
)

// Commit is one record from its encoding to its publication. One goroutine uses
// it at a time. It may be used again after Reset, once Wait has returned.
type Commit struct {
	// Guard, if set, is called under the log mutex right before the record is
	// appended. If it returns an error, Append returns that error and the record
	// is not in the log. It must not call the Log.
	Guard func() error
	// Use says whether the record only deletes, so that it is admitted on a disk that
	// is full for others. The default is space.Write.
	Use space.Use
	// Deferred says that its goroutine does other things before it calls Wait, so that it
	// must not lead a group before. Commits of others can make it durable meanwhile.
	Deferred bool
	// OnAppend, if set, is called under the log mutex with the last sequence
	// number of the record when the record is in the log.
	OnAppend func(lastSeq uint64)
	// OnApply, if set, is called when the record is published; snapshots see both
	// or neither. Such a commit needs no BeginPart, and Log.Pending does not find its
	// entries.
	OnApply func(firstSeq uint64)

	parts   []part
	buf     []byte // encoded entries, back to back
	entries []entry
	tags    []byte   // tagOf the entries' keys
	offs    []uint32 // of the entries in the segment's memory
	defs    []shapeDef
	seal    bool // asks the leader to append a seal

	seg      *Segment // nil for a barrier, which has no record
	end      int64    // offset of the record's end in the segment
	firstSeq uint64   // of a barrier: the first sequence number it does not wait for
	firstTS  edm.Ticks

	err error
	// lead says, when wake is signalled, that the commit is not finished and that
	// its goroutine must lead the next group.
	lead bool
	wake chan struct{}
}

// part is consecutive entries of one partition.
type part struct {
	hash     uint64 // codec.PartitionHash of the keys
	keyLen   int    // codec.PartitionLen of the keys
	from, to int    // of entries
	// commit has the part. It is set while the part is in the overlay.
	commit *Commit
	links
}

// entry is one entry of a commit.
type entry struct {
	start, end int // in buf
	keyHash    uint64
	shape      *codec.Shape // nil for a delete
}

// shapeDef is a shape that a record defines in its segment.
type shapeDef struct {
	id uint16
	// off is the offset of the definition, first in the record, and in the
	// segment's memory once the record is there.
	off   uint32
	shape *codec.Shape
}

// NewCommit returns an empty Commit.
func NewCommit() *Commit { return &Commit{wake: make(chan struct{}, 1)} }

// maxKeptBytes is the largest buffer that Reset keeps.
const maxKeptBytes = 1 << 20

// Reset empties c and keeps its buffers.
func (c *Commit) Reset() {
	clear(c.entries)
	clear(c.defs)
	clear(c.parts)
	buf := c.buf[:0]
	if cap(buf) > maxKeptBytes {
		buf = nil
	}
	*c = Commit{parts: c.parts[:0], buf: buf, entries: c.entries[:0], tags: c.tags[:0], offs: c.offs[:0], defs: c.defs[:0], wake: c.wake}
}

// BeginPart begins a part. The keys of the entries that follow are of one partition and have
// the codec.PartitionHash hash and the codec.PartitionLen n. Readers see all entries of a part
// at once.
func (c *Commit) BeginPart(hash uint64, n int) {
	c.parts = append(c.parts, part{hash: hash, keyLen: n, from: len(c.entries), to: len(c.entries)})
}

// DropPart drops the last part.
func (c *Commit) DropPart() {
	last := len(c.parts) - 1
	from := c.parts[last].from
	if from < len(c.entries) {
		c.buf = c.buf[:c.entries[from].start]
	}
	c.parts, c.entries, c.tags = c.parts[:last], c.entries[:from], c.tags[:from]
}

// Put adds a put of key, a user key whose codec.KeyHash is keyHash, and returns
// the size of its entry. Append fills in the Timestamp.
func (c *Commit) Put(key []byte, keyHash uint64, shape *codec.Shape, props edm.Properties) (size int) {
	start := len(c.buf)
	c.buf = codec.AppendPut(c.buf, key, shape, props)
	c.add(entry{start: start, end: len(c.buf), keyHash: keyHash, shape: shape})
	return len(c.buf) - start
}

// Delete adds a delete of key, whose codec.KeyHash is keyHash.
func (c *Commit) Delete(key []byte, keyHash uint64) {
	start := len(c.buf)
	c.buf = codec.AppendEntry(c.buf, codec.Entry{Kind: codec.KindDelete, Key: key})
	c.add(entry{start: start, end: len(c.buf), keyHash: keyHash})
}

func (c *Commit) add(e entry) {
	c.entries = append(c.entries, e)
	c.tags = append(c.tags, tagOf(e.keyHash))
	if n := len(c.parts); n > 0 {
		c.parts[n-1].to = len(c.entries)
	}
}

// Len returns the number of entries.
func (c *Commit) Len() int { return len(c.entries) }

// Bytes returns the size of the entries.
func (c *Commit) Bytes() int { return len(c.buf) }

// lastSeq returns the last sequence number of the record.
func (c *Commit) lastSeq() uint64 { return c.firstSeq + uint64(len(c.entries)) - 1 }

// FirstTimestamp returns the Timestamp of the first entry. Each further entry
// has the next tick. Call it after Append.
func (c *Commit) FirstTimestamp() edm.Ticks { return c.firstTS }
