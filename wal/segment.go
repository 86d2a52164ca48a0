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
	firstGrowth = 256 << 10 // first preallocation of a new file
	growthRatio = 4         // growth of later preallocations, up to the capacity
	leastGrowth = 4 << 10   // growth on a full disk is a multiple of it

	// maxZeros limits the zeros that a sync writes behind the records.
	maxZeros = 256 << 10
	// zerosAtOnce is the size of a write of zeros. File systems keep what one write
	// adds in few large units of memory, and larger ones make each later sync slower.
	zerosAtOnce = 16 << 10
)

// zeros are written to files and never changed.
var zeros [zerosAtOnce]byte

// Record describes a record to append.
type Record struct {
	FirstSeq uint64 // must follow the last sequence number of the previous record
	Count    uint16 // sequence numbers that the record consumes
	Flags    uint8  // returned by Replay; package wal ignores them
}

// Segment is a segment that is being written. Its methods form two groups, which may
// run concurrently with each other:
//
//   - Memory: Begin, Commit and AppendSeal, under one mutex of the caller. They
//     change memory only.
//   - File: Open, Write, Sync, Seal and Close, by one goroutine at a time.
//
// Tail and Synced may be called by any goroutine. Bytes of the image below Tail
// never change, so readers need no lock for them.
type Segment struct {
	header      Header
	seed        sumSeed
	image       []byte
	preallocate bool // reserve space ahead of the writes

	// For the methods of the memory.
	nextSeq uint64
	chain   uint32
	begun   int64 // payload bytes of the last Begin, -1 if it was committed
	sealed  bool  // the last record is a seal

	tail   atomic.Int64 // end of the last appended record
	synced atomic.Int64 // the file is durable up to here

	// For the methods of the file.
	fs        vfs.FS
	dir       string
	file      vfs.File
	written   int64 // the file holds the image up to here
	allocated int64 // the file has space up to here
	zeroed    int64 // the file has been written up to here, with zeros behind written
	err       error // the first failure, which all later calls return
}

// Tail returns the end of the last appended record.
func (s *Segment) Tail() int64 { return s.tail.Load() }

// Synced returns the offset up to which the file is durable, the end of a record.
func (s *Segment) Synced() int64 { return s.synced.Load() }

// maxPayload returns the size of the largest payload that Begin accepts. It is
// negative if the segment is full.
func (s *Segment) maxPayload() int64 {
	return (int64(len(s.image)) - maxSealBytes - s.tail.Load() - RecordHeaderLen) &^ (align - 1)
}

// Begin returns the n bytes of the image for the payload of the next record, with
// any contents, and their offset. Fill them and call Commit to append the record.
// The next Begin discards one without Commit. If the record does not fit, ok is
// false.
func (s *Segment) Begin(n int) (payload []byte, off int64, ok bool) {
	s.begun = -1
	if n < 0 || int64(n) > s.maxPayload() {
		return nil, 0, false
	}
	s.begun = int64(n)
	off = s.tail.Load() + RecordHeaderLen
	return s.image[off : off+int64(n) : off+int64(n)], off, true
}

// Commit appends the record whose payload Begin returned. It panics without a Begin
// and if the sequence numbers do not follow those of the previous record.
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
	}, s.seed.mask(off))
	s.begun = -1
	s.chain = uint32(sum)
	s.nextSeq += uint64(r.Count)
	s.sealed = kind == kindSeal
	s.tail.Store(end)
}

// AppendSeal appends a seal, which proves that everything before it is durable, and
// reports whether the log now ends with a seal. It appends nothing if the log does
// already, or if a record is not synced yet. The seal takes effect with the next
// Sync.
func (s *Segment) AppendSeal() bool {
	if s.sealed {
		return true
	}
	off := s.tail.Load()
	if s.synced.Load() != off {
		return false
	}
	second := (off + RecordHeaderLen + sealSector - 1) &^ (sealSector - 1)
	s.appendSealRecord(second - off - RecordHeaderLen)
	s.appendSealRecord(0)
	return true
}

// appendSealRecord appends one of the two records of a seal. maxPayload keeps
// maxSealBytes free, so it always fits.
func (s *Segment) appendSealRecord(n int64) {
	s.begun = n
	off := s.tail.Load() + RecordHeaderLen
	clear(s.image[off : off+n])
	s.commit(kindSeal, Record{FirstSeq: s.nextSeq})
}

// Write writes the image to the file up to upto, the end of a record. After the
// first failure of Write, Sync or Seal all of them return that failure, because the
// contents of the file beyond Synced are unknown.
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

// Sync makes the image durable at least up to upto.
func (s *Segment) Sync(upto int64) error {
	if err := s.Write(upto); err != nil {
		return err
	}
	if upto <= s.synced.Load() {
		return nil
	}
	if err := s.writeZeros(); err != nil {
		return s.fail("write", err)
	}
	if err := s.file.Sync(); err != nil {
		return s.fail("sync", err)
	}
	s.synced.Store(s.written)
	return nil
}

// Seal syncs the segment and appends a durable seal, so that later damage to the
// file cannot look like a torn tail. Do not append during Seal. If other goroutines
// may append, call Sync, then AppendSeal under the log mutex, then Sync again.
func (s *Segment) Seal() error {
	if err := s.Sync(s.tail.Load()); err != nil {
		return err
	}
	s.AppendSeal()
	return s.Sync(s.tail.Load())
}

// Close closes the file without a sync and does not touch the image. A second Close
// returns nil.
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

// grow preallocates the file up to upto or further. If the disk has little space, it
// asks for the needed space only, and if there is none, the write that follows has to
// allocate it.
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
	need := min((upto+leastGrowth-1)/leastGrowth*leastGrowth, capacity)
	err := error(syscall.ENOSPC)
	if s.ample(want - s.allocated) {
		err = s.file.Preallocate(s.allocated, want-s.allocated)
	}
	if noSpace(err) {
		want = need
		err = s.file.Preallocate(s.allocated, want-s.allocated)
	}
	if noSpace(err) {
		return nil
	}
	if err != nil {
		return err
	}
	s.allocated = want
	return nil
}

// writeZeros overwrites preallocated space behind the records with zeros, once the
// records have reached its end. A file system may have to commit metadata with the sync
// of the first write to preallocated space. Later writes then need no such commit: for
// records of 21 KB a sync takes half the time and three quarters of the CPU
// (BenchmarkSync).
func (s *Segment) writeZeros() error {
	if s.written <= s.zeroed {
		return nil
	}
	end := min(s.written+max(zerosAtOnce, min(s.written, maxZeros)), s.allocated)
	for s.zeroed = s.written; s.zeroed < end; {
		next := min((s.zeroed/zerosAtOnce+1)*zerosAtOnce, end)
		if _, err := s.file.WriteAt(zeros[:next-s.zeroed], s.zeroed); noSpace(err) {
			return nil // the next record may fit
		} else if err != nil {
			return err
		}
		s.zeroed = next
	}
	return nil
}

// ample reports whether the disk has much more space than n bytes. A preallocation that
// fails may take all the space that is left.
func (s *Segment) ample(n int64) bool {
	space, err := s.fs.Space(s.dir)
	return err != nil || space.Free/2 >= n
}

func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// newSegment returns a segment whose header counts as synced: Open syncs it before
// any record is written.
func newSegment(h Header, image []byte) *Segment {
	s := &Segment{
		header:  h,
		seed:    newSumSeed(h.DBID, h.Number),
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
