package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/tablerock-db/tablerock/vfs"
)

const (
	firstGrowth = 256 << 10 // what a segment that was not prewritten gets at first
	growthRatio = 4         // and how it grows from there, up to its capacity
)

// Record describes a record to append.
type Record struct {
	FirstSeq uint64 // must be the sequence that follows the previous record's last
	Count    uint16 // sequence numbers that the record consumes
	Flags    uint8  // given back by Replay, without meaning here
}

// Segment is a segment that is being written. It has two sides, which may be
// used concurrently with each other:
//
//   - Memory: Append, Begin, Commit, AppendSeal and Room, under one mutex of the
//     caller's. They touch memory only.
//   - File: Open, Write, Sync, Seal and Close, by one goroutine at a time.
//
// Tail and Synced may be called by anyone. Bytes of the image below Tail never
// change, so readers need no lock for them.
type Segment struct {
	header      Header
	place       place
	image       []byte
	preallocate bool // space is made ahead of the writes

	// Memory side.
	nextSeq uint64
	chain   uint32
	begun   int64 // payload bytes that Begin gave out; -1 none
	sealed  bool  // the last record is a seal

	tail   atomic.Int64 // end of the last appended record
	synced atomic.Int64 // the file is durable up to here

	// File side.
	file      vfs.File
	written   int64 // the file holds the image up to here
	allocated int64 // the file has space up to here
	err       error // the first failure; final
}

// Header returns what the segment was created with.
func (s *Segment) Header() Header { return s.header }

// Tail returns the end of the last appended record.
func (s *Segment) Tail() int64 { return s.tail.Load() }

// Synced returns up to where the file is durable. It is the end of a record.
func (s *Segment) Synced() int64 { return s.synced.Load() }

// Room returns the greatest payload that Begin would take, or a negative number
// if there is room for none.
func (s *Segment) Room() int64 {
	return (int64(len(s.image)) - maxSealBytes - s.tail.Load() - RecordHeaderLen) &^ (align - 1)
}

// Append copies parts into the image as one record and returns the offset of
// its payload. If the record does not fit, nothing changes and ok is false.
func (s *Segment) Append(r Record, parts ...[]byte) (payloadOff int64, ok bool) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	payload, off, ok := s.Begin(n)
	if !ok {
		return 0, false
	}
	for _, p := range parts {
		payload = payload[copy(payload, p):]
	}
	s.Commit(r)
	return off, true
}

// Begin returns the place in the image where the payload of the next record
// goes, n bytes of any content, and its offset. The record exists once Commit
// is called; a Begin without Commit is undone by the next one. If the record
// does not fit, ok is false.
func (s *Segment) Begin(n int) (payload []byte, off int64, ok bool) {
	s.begun = -1
	if n < 0 || int64(n) > s.Room() {
		return nil, 0, false
	}
	s.begun = int64(n)
	off = s.tail.Load() + RecordHeaderLen
	return s.image[off : off+int64(n) : off+int64(n)], off, true
}

// Commit turns what Begin gave out into a record. It panics without a Begin and
// when the record's sequences do not follow the previous record's.
func (s *Segment) Commit(r Record) {
	if s.begun < 0 {
		panic("wal: Commit without Begin")
	}
	if r.FirstSeq != s.nextSeq {
		panic(fmt.Sprintf("wal: record begins at sequence %d, want %d", r.FirstSeq, s.nextSeq))
	}
	s.commit(kindData, r)
}

func (s *Segment) commit(kind uint8, r Record) {
	off := s.tail.Load()
	end := off + recordBytes(s.begun)
	rec := s.image[off:end]
	clear(rec[RecordHeaderLen+s.begun:])
	sum := encodeRecord(rec, recordHeader{
		length:   uint32(s.begun),
		number:   uint32(s.header.Number),
		kind:     kind,
		flags:    r.Flags,
		count:    r.Count,
		firstSeq: r.FirstSeq,
		syncedTo: uint32(s.synced.Load()),
		chain:    s.chain,
	}, s.place.at(off))
	s.begun = -1
	s.chain = uint32(sum)
	s.nextSeq += uint64(r.Count)
	s.sealed = kind == kindSeal
	s.tail.Store(end)
}

// AppendSeal appends the marker that proves everything before it durable, and
// reports whether the log now ends with one. It appends nothing when that is so
// already, nor when a record is not yet synced. The marker takes effect with
// the next Sync.
func (s *Segment) AppendSeal() bool {
	if s.sealed {
		return true
	}
	off := s.tail.Load()
	if s.synced.Load() != off {
		return false
	}
	second := (off + RecordHeaderLen + sealSector - 1) &^ (sealSector - 1)
	s.sealPart(second - off - RecordHeaderLen)
	s.sealPart(0)
	return true
}

// sealPart appends one of the two records of a seal. Room keeps maxSealBytes
// free, so that it always fits.
func (s *Segment) sealPart(n int64) {
	s.begun = n
	off := s.tail.Load() + RecordHeaderLen
	clear(s.image[off : off+n])
	s.commit(kindSeal, Record{FirstSeq: s.nextSeq})
}

// Write hands the image up to upto, the end of a record, to the file system.
// After the first failure of Write, Sync or Seal all of them return that
// failure: what the file holds beyond Synced is unknown from then on.
func (s *Segment) Write(upto int64) error {
	if s.err != nil {
		return s.err
	}
	if upto <= s.written {
		return nil
	}
	if s.file == nil {
		panic("wal: Write before Open")
	}
	if tail := s.tail.Load(); upto > tail {
		panic(fmt.Sprintf("wal: write up to %d, but the last record ends at %d", upto, tail))
	}
	if err := s.grow(upto); err != nil {
		return s.fail("grow", err)
	}
	if _, err := s.file.WriteAt(s.image[s.written:upto], s.written); err != nil {
		return s.fail("write", err)
	}
	s.written = upto
	return nil
}

// Sync makes the image durable up to upto at least.
func (s *Segment) Sync(upto int64) error {
	if err := s.Write(upto); err != nil {
		return err
	}
	if upto <= s.synced.Load() {
		return nil
	}
	if err := s.file.Sync(); err != nil {
		return s.fail("sync", err)
	}
	s.synced.Store(s.written)
	return nil
}

// Seal syncs the segment and adds a durable marker behind it, so that no damage
// to the file at rest can pass for a torn tail. Nobody may append meanwhile; a
// caller that cannot exclude that calls Sync, AppendSeal under its log mutex,
// and Sync again.
func (s *Segment) Seal() error {
	if err := s.Sync(s.tail.Load()); err != nil {
		return err
	}
	s.AppendSeal()
	return s.Sync(s.tail.Load())
}

// Close releases the file and leaves the image alone. It syncs nothing. A second
// Close returns nil.
func (s *Segment) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	if s.err == nil {
		s.err = fmt.Errorf("segment %d is closed", s.header.Number)
	}
	if err != nil {
		return fmt.Errorf("close segment %d: %w", s.header.Number, err)
	}
	return nil
}

func (s *Segment) fail(step string, err error) error {
	s.err = fmt.Errorf("%s segment %d: %w", step, s.header.Number, err)
	return s.err
}

// grow makes space for the file up to upto, ahead of need. When the disk has no
// room for a large step it asks for what is needed only.
func (s *Segment) grow(upto int64) error {
	if !s.preallocate || upto <= s.allocated {
		return nil
	}
	capacity := int64(len(s.image))
	want := max(s.allocated, firstGrowth)
	for want < upto {
		want *= growthRatio
	}
	want = min(want, capacity)
	err := s.file.Preallocate(s.allocated, want-s.allocated)
	if need := min((upto+firstGrowth-1)/firstGrowth*firstGrowth, capacity); need < want && errors.Is(err, syscall.ENOSPC) {
		want = need
		err = s.file.Preallocate(s.allocated, want-s.allocated)
	}
	if err != nil {
		return err
	}
	s.allocated = want
	return nil
}

// newSegment returns a segment whose header counts as synced: no record reaches
// a file before Open has made it so.
func newSegment(h Header, image []byte) *Segment {
	s := &Segment{
		header:  h,
		place:   newPlace(h.DBID, h.Number),
		image:   image,
		nextSeq: h.FirstSeq,
		chain:   uint32(binary.LittleEndian.Uint64(image[headerSumOff:])),
		begun:   -1,
		written: HeaderLen,
	}
	s.tail.Store(HeaderLen)
	s.synced.Store(HeaderLen)
	return s
}
