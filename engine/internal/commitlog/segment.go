package commitlog

import (
	"fmt"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/arena"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/wal"
)

// Segment is a log segment with its memory and its memtable.
type Segment struct {
	Number uint64
	Table  *memtable.Table

	memory *arena.Memory
	image  []byte
	// from is where the memory goes back to; nil frees it.
	from *spare
	// refs counts who reads the memory.
	refs atomic.Int32
	// file writes the segment; nil for one that was recovered.
	file *wal.Segment
	// opened says that file has its file on disk. Only a leader, or in NoSync
	// mode the holder of Log.out, touches it.
	opened bool
	// follows says that the segment before s is whole on disk, in NoSync mode.
	follows atomic.Bool
	// written is how far the file system has been given the segment.
	written atomic.Int64
	// end is where the records of a recovered segment end.
	end int64
	// appliedSeq is the last sequence number in the memtable and not in the
	// overlay.
	appliedSeq atomic.Uint64
	// frozen says that nothing more is appended, and next is the segment that
	// records go to instead.
	frozen atomic.Bool
	next   *Segment

	// What follows is guarded by Log.mu until the segment is frozen.

	// shapes has the ids of shapes that were defined lately, shapeBytes is what
	// they take, and defined is the last id.
	shapes     map[*codec.Shape]uint16
	shapeBytes int
	defined    int
	// The shape asked for last and its id: most writers write one for long.
	lastShape *codec.Shape
	lastID    uint16

	lastSeq uint64 // the last sequence number appended
}

// Recovered returns the segment into whose memory a file is to be replayed.
func Recovered(number uint64, bytes int64) (*Segment, error) {
	memory, err := arena.New(int(max(bytes, wal.SegmentBytes(0))))
	if err != nil {
		return nil, fmt.Errorf("memory of segment %d: %w", number, err)
	}
	return newSegment(number, memory), nil
}

func newSegment(number uint64, memory *arena.Memory) *Segment {
	s := &Segment{Number: number, memory: memory, image: memory.Bytes()}
	s.Table = memtable.New(memtable.Options{Image: s.image})
	return s
}

// SetReplayed says what a replay has put into s.
func (s *Segment) SetReplayed(end wal.End) {
	s.end, s.lastSeq = end.Offset, end.LastSeq
	s.appliedSeq.Store(end.LastSeq)
}

// Image returns the memory, which mirrors the file up to Tail.
func (s *Segment) Image() []byte { return s.image }

// Ref keeps the memory until Unref; the last Unref gives it back.
func (s *Segment) Ref() { s.refs.Add(1) }

// Unref undoes one Ref.
func (s *Segment) Unref() {
	if s.refs.Add(-1) == 0 {
		s.Free()
	}
}

// Free gives the memory back of a segment that nobody has taken a Ref of.
func (s *Segment) Free() {
	if s.from == nil {
		s.memory.Free()
		return
	}
	s.from.give(s.memory)
}

// maxShapeBytes is what the shapes take that a segment knows again when they
// come.
const maxShapeBytes = 4 << 20

// define remembers the id of a shape.
func (s *Segment) define(d shapeDef) {
	s.shapes[d.shape] = d.id
	s.lastShape, s.lastID = d.shape, d.id
	s.shapeBytes += d.shape.MemBytes()
	s.defined = int(d.id)
}

// shapeID returns the id of shape, 0 if s does not know it, and for a delete,
// whose shape is nil.
func (s *Segment) shapeID(shape *codec.Shape) uint16 {
	if shape != s.lastShape {
		s.lastShape, s.lastID = shape, s.shapes[shape]
	}
	return s.lastID
}

// forgetShapes makes room for others if there are too many: those that come
// again are defined again.
func (s *Segment) forgetShapes() {
	if s.shapeBytes > maxShapeBytes {
		clear(s.shapes)
		s.shapeBytes = 0
	}
}

// Tail returns where the records of s end.
func (s *Segment) Tail() int64 {
	if s.file == nil {
		return s.end
	}
	return s.file.Tail()
}

// Empty reports whether s holds no record.
func (s *Segment) Empty() bool { return s.Tail() <= wal.HeaderLen }

// Durable returns up to where the records of s are on disk, 0 if none is.
func (s *Segment) Durable() int64 {
	switch {
	case s.Empty():
		return 0
	case s.file == nil:
		return s.end
	}
	if end := s.file.Synced(); end > wal.HeaderLen {
		return end
	}
	return 0
}

// LastSeq returns the last sequence number of a frozen segment.
func (s *Segment) LastSeq() uint64 { return s.lastSeq }

// Applied reports whether all of a frozen segment's records are durable and in
// its memtable, so that it can be flushed.
func (s *Segment) Applied() bool { return s.appliedSeq.Load() == s.lastSeq }

// closeFile closes the file, if s has one open.
func (s *Segment) closeFile() error {
	if s.file == nil || !s.opened {
		return nil
	}
	return s.file.Close()
}

// hasFile reports whether there is a file of s on disk.
func (s *Segment) hasFile() bool { return s.file == nil || s.opened }

// start makes s, whose first record will have the sequence number firstSeq, a
// segment that can be written.
func (s *Segment) start(dbid [16]byte, firstSeq uint64, highWater edm.Ticks, prevEnd int64) error {
	file, err := wal.New(wal.Header{
		DBID:      dbid,
		Number:    s.Number,
		FirstSeq:  firstSeq,
		HighWater: uint64(highWater),
		PrevEnd:   prevEnd,
	}, s.image)
	if err != nil {
		return err
	}
	s.file = file
	s.lastSeq = firstSeq - 1
	s.appliedSeq.Store(s.lastSeq)
	s.shapes = make(map[*codec.Shape]uint16)
	return nil
}
