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

// Segment is a log segment: its file, the memory that mirrors it, and the
// memtable that indexes the memory.
type Segment struct {
	Number uint64
	Table  *memtable.Table

	memory *arena.Memory
	image  []byte
	// pool gets the memory back. If it is nil the memory is freed.
	pool *spareMemory
	// refs counts the read states that use the memory.
	refs atomic.Int32
	// file writes the segment. It is nil for a recovered segment.
	file *wal.Segment
	// opened says that file exists on disk. Only the leader, or in NoSync mode the
	// holder of Log.fileMu, reads and writes it.
	opened bool
	// written is the offset up to which file has been written.
	written atomic.Int64
	// end is the offset at which the records of a recovered segment end.
	end int64
	// appliedSeq is the last sequence number that is in the memtable and not in
	// the overlay.
	appliedSeq atomic.Uint64
	// frozen says that nothing is appended to the segment any more. next, set
	// before, is the segment after it.
	frozen atomic.Bool
	next   *Segment

	// Log.mu guards the rest until the segment is frozen.

	// shapes has the ids of recently defined shapes, which take shapeBytes of
	// memory. defined is the last id.
	shapes     map[*codec.Shape]uint16
	shapeBytes int
	defined    int

	lastSeq uint64 // the last sequence number appended
	// resident is the end of the memory that is, or soon will be, resident. ahead is the last
	// page of it, nil if the records have reached that.
	resident int64
	ahead    *pageAhead
}

// Recovered returns a segment with memory for a file of the given size, which
// the caller replays into it.
func Recovered(number uint64, bytes int64) (*Segment, error) {
	memory, err := arena.New(int(max(bytes, wal.SegmentBytes(0))))
	if err != nil {
		return nil, fmt.Errorf("memory of segment %d: %w", number, err)
	}
	return newSegment(number, memory), nil
}

func newSegment(number uint64, memory *arena.Memory) *Segment {
	s := &Segment{Number: number, memory: memory, image: memory.Bytes()}
	s.Table = memtable.New(s.image)
	return s
}

// When less than populateAhead of resident memory is behind populateFrom bytes of records or
// more, the next huge page is made resident. A writer that is the first to touch one waits for
// 2 to 8 ms on a virtual machine. A segment with few records stays small.
const (
	populateAhead = arena.HugeSlabBytes
	populateFrom  = 1 << 20
)

// pageAhead is a page behind the records that a goroutine makes resident.
type pageAhead struct {
	off   int64         // in the segment
	taken atomic.Bool   // by the goroutine, or by a writer that came before it
	done  chan struct{} // closed when the goroutine has made the page resident
}

// populate makes the memory behind the records resident, beside the writers. Its goroutine may
// outlive Close: Populate does nothing after Free. The caller holds Log.mu.
func (s *Segment) populate() {
	tail := s.file.Tail()
	from := max(s.resident, (tail+arena.HugeSlabBytes-1)/arena.HugeSlabBytes*arena.HugeSlabBytes)
	if tail < populateFrom || tail+populateAhead <= from || from >= int64(len(s.image)) {
		return
	}
	to := min(from+arena.HugeSlabBytes, int64(len(s.image)))
	page := &pageAhead{off: from, done: make(chan struct{})}
	s.resident, s.ahead = to, page
	go func() {
		if page.taken.CompareAndSwap(false, true) {
			s.memory.Populate(int(from), int(to))
			close(page.done)
		}
	}()
}

// awaitPage waits until the memory up to end is resident, if populate is making it so. Without
// the wait, the system clears a page for the writer too, and one of the two is thrown away:
// where clearing is slow, an ordered load spends a seventh more time on it (bench/peers,
// load/order=sorted). The caller holds Log.mu.
func (s *Segment) awaitPage(end int64) {
	page := s.ahead
	if page == nil || end <= page.off {
		return
	}
	s.ahead = nil
	if !page.taken.CompareAndSwap(false, true) {
		<-page.done
	}
}

// PopulateTo makes the memory of a recovered segment up to end resident, and the rest of its
// page. The first page stays as it is, so that a log with few records needs little memory.
// Where huge pages are slow, recovery needs 38 % less CPU (bench/peers, reopen/from=log).
func (s *Segment) PopulateTo(end int64) {
	s.resident = max(s.resident, min(arena.HugeSlabBytes, int64(len(s.image))))
	for s.resident < end {
		from := s.resident
		s.resident = min(from+arena.HugeSlabBytes, int64(len(s.image)))
		s.memory.Populate(int(from), int(s.resident))
	}
}

// SetReplayed sets the end that the replay of the segment returned.
func (s *Segment) SetReplayed(end wal.End) {
	s.end, s.lastSeq = end.Offset, end.LastSeq
	s.appliedSeq.Store(end.LastSeq)
}

// Image returns the memory, which mirrors the file up to Tail.
func (s *Segment) Image() []byte { return s.image }

// Ref keeps the memory until Unref. The last Unref frees it.
func (s *Segment) Ref() { s.refs.Add(1) }

// Unref undoes one Ref.
func (s *Segment) Unref() {
	if s.refs.Add(-1) == 0 {
		s.Free()
	}
}

// Free frees the memory of a segment without a Ref.
func (s *Segment) Free() {
	used := int(max(s.Tail(), s.resident))
	if s.pool == nil {
		s.memory.Free(used)
		return
	}
	s.pool.put(s.memory, s.resident, used)
}

// maxShapeBytes limits the memory of Segment.shapes.
const maxShapeBytes = 4 << 20

// define remembers the id of a shape.
func (s *Segment) define(d shapeDef) {
	s.shapes[d.shape] = d.id
	s.shapeBytes += d.shape.MemBytes()
	s.defined = int(d.id)
}

// shapeID returns the id of shape, or 0 if s does not have it or shape is nil,
// the shape of a delete.
func (s *Segment) shapeID(shape *codec.Shape) uint16 { return s.shapes[shape] }

// forgetShapes forgets all shapes if they take too much memory. If one is used
// again, it is defined again.
func (s *Segment) forgetShapes() {
	if s.shapeBytes > maxShapeBytes {
		clear(s.shapes)
		s.shapeBytes = 0
	}
}

// Tail returns the offset at which the records of s end.
func (s *Segment) Tail() int64 {
	if s.file == nil {
		return s.end
	}
	return s.file.Tail()
}

// Empty reports whether s holds no record.
func (s *Segment) Empty() bool { return s.Tail() <= wal.HeaderLen }

// Durable returns the offset up to which the records of s are durable, 0 if no
// record is.
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

// Applied reports whether all records of a frozen segment are durable and in its
// memtable, so that it can be flushed.
func (s *Segment) Applied() bool { return s.appliedSeq.Load() == s.lastSeq }

// unsynced reports whether s has records that are not durable.
func (s *Segment) unsynced() bool {
	return s.file != nil && !s.Empty() && s.file.Synced() < s.file.Tail()
}

// closeFile closes the file, if it is open.
func (s *Segment) closeFile() error {
	if s.file == nil || !s.opened {
		return nil
	}
	return s.file.Close()
}

// hasFile reports whether the file of s exists on disk.
func (s *Segment) hasFile() bool { return s.file == nil || s.opened }

// start prepares s for records. The first one will have the sequence number
// firstSeq.
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
