package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/vfs"
)

// readChunk is how much Replay reads at a time.
const readChunk = 1 << 20

// ErrUnfinished reports a file with neither a valid header nor a record: a crash
// interrupted the creation of the segment, before any write in it could be
// acknowledged. The error also wraps a *corrupt.Error, because a segment that the
// manifest lists must have a header.
var ErrUnfinished = errors.New("segment was never finished")

// ErrHeadless reports a file whose header is invalid and that holds records of the
// segment. The error also wraps a *corrupt.Error. If the segment is obsolete, the
// records still show which database the file belongs to: a crash interrupted its
// reuse for a new segment.
var ErrHeadless = errors.New("segment has records and no valid header")

// ErrChanged reports that a live writer reused the file for another segment, or
// that the file outgrew the image. The reader must read the manifest again.
var ErrChanged = errors.New("segment changed while it was read")

// ReplayOptions names a segment and states what the manifest and later segments
// say about it.
type ReplayOptions struct {
	DBID   [16]byte
	Number uint64
	// Image receives the contents of the segment. It must be zeroed and at least
	// as long as the file (see Inspect) or, if that is set, as Sealed.
	Image []byte
	// BeforeRead is called before the image up to end is read. nil does nothing.
	BeforeRead func(end int64)
	// Sealed is the exact end of the log in this segment, according to the
	// manifest. Nothing behind it is read. 0 leaves the end open; then Proven
	// and NextSeq apply.
	Sealed int64
	// Proven is an offset up to which this segment is durable, according to the
	// manifest or the header of the next segment. 0 if unknown.
	Proven int64
	// NextSeq is the first sequence number of the next segment if a later
	// segment holds a record (see Inspect) and this one was complete before that: this log must
	// end right before it. 0 says that neither is known; then the log may have a torn tail
	// behind the last proven offset.
	NextSeq uint64
}

// RecordView is a replayed record. Payload is a slice of the image.
type RecordView struct {
	FirstSeq   uint64
	Count      uint16
	Flags      uint8
	PayloadOff int64
	Payload    []byte
}

// End describes the end of the log in a segment.
type End struct {
	Offset  int64  // end of the last accepted record
	Proven  int64  // the file is certainly durable up to here; at most Offset, 0 if not even the header is
	LastSeq uint64 // last sequence number of the accepted records
	Records int    // accepted records without seals
	Torn    bool   // Offset is followed by neither zeros nor a record of an earlier segment in this file
	Sealed  bool   // the log ends with a seal, which proves all records
}

// Replay reads a segment, verifies each record once, and calls apply for each in
// order. It fills the image with the bytes of the file up to the end of the log;
// the rest stays zero. If Replay returns an error, the caller must discard the
// records that it applied. An error of apply ends the replay and is returned
// unchanged.
//
// Damage is a *corrupt.Error unless it can only be a torn tail, that is, NextSeq is 0
// and the accepted records reach every offset that a sync is known to have covered.
// A damaged header with records behind it is also ErrHeadless. Other errors are
// ErrNewerFormat, ErrUnfinished, ErrChanged and those of the file system.
func Replay(fs vfs.FS, name string, o ReplayOptions, apply func(RecordView) error) (End, error) {
	return replayFile(fs, name, o, apply, (*reader).replay)
}

// ReplayDurable is Replay for a reader beside a live writer in another process.
// It returns only records below an offset that a sync is known to have covered,
// because a crash may still take back what is only in the page cache. With NextSeq
// this segment is durable as a whole. ReplayDurable returns
// ErrChanged if the file became another segment or outgrew the image.
func ReplayDurable(fs vfs.FS, name string, o ReplayOptions, apply func(RecordView) error) (End, error) {
	return replayFile(fs, name, o, apply, (*reader).replayDurable)
}

func replayFile(
	fs vfs.FS, name string, o ReplayOptions, apply func(RecordView) error,
	replay func(*reader, ReplayOptions, func(RecordView) error) (End, error),
) (End, error) {
	r, err := open(fs, name, o.DBID, o.Number)
	if err != nil {
		return End{}, err
	}
	end, err := replay(r, o, apply)
	return end, errors.Join(err, r.close())
}

func (r *reader) replayDurable(o ReplayOptions, apply func(RecordView) error) (End, error) {
	need := r.size
	if o.Sealed == 0 && o.NextSeq == 0 {
		// Collect the proofs first: only bytes read after their proof are
		// certainly complete.
		size := r.size
		r.size = min(size, int64(len(o.Image)))
		s, err := r.scan(HeaderLen, 0)
		if err != nil {
			return End{}, err
		}
		r.size = size
		o.Sealed = max(s.proven, o.Proven, HeaderLen)
	}
	if o.Sealed != 0 {
		need = min(o.Sealed, r.size)
	}
	if int64(len(o.Image)) < need {
		return End{}, fmt.Errorf("%w: %s has %d bytes to read, the image %d", ErrChanged, r.name, need, len(o.Image))
	}
	end, err := r.replay(o, apply)
	if err == nil || !errors.Is(err, corrupt.ErrCorrupt) {
		return end, err
	}
	if herr := r.readHeader(); herr != nil {
		return end, errors.Join(err, herr)
	}
	return end, err
}

// Info is what Inspect finds out about a segment.
type Info struct {
	Header  Header
	Bytes   int64 // size of the file, which is enough for an image
	Records bool  // the file holds a valid record of this segment
}

// Inspect reads the header of a segment and searches for a record. Its errors are
// those of Replay.
func Inspect(fs vfs.FS, name string, dbid [16]byte, number uint64) (Info, error) {
	r, err := open(fs, name, dbid, number)
	if err != nil {
		return Info{}, err
	}
	s, err := r.scan(HeaderLen, 1)
	return Info{Header: r.header, Bytes: r.size, Records: s.found > 0}, errors.Join(err, r.close())
}

// reader reads one segment file.
type reader struct {
	file   vfs.File
	name   string // within its directory, for errors
	size   int64
	dbid   [16]byte
	number uint64
	seed   sumSeed
	header Header
	sum    uint64 // the header's
	parts  []part // of scan

	image      []byte
	beforeRead func(end int64)
	limit      int64 // Replay reads the file up to here
	filled     int64 // the image holds the file up to here
}

// open opens a segment and verifies its header.
func open(fs vfs.FS, name string, dbid [16]byte, number uint64) (*reader, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	r := &reader{file: f, name: path.Base(name), dbid: dbid, number: number, seed: newSumSeed(dbid, number)}
	r.size, err = f.Size()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("size of segment: %w", err), r.close())
	}
	if r.size > MaxSegmentBytes {
		err := corrupt.Newf(r.name, MaxSegmentBytes, "segment of %d bytes, at most %d can be", r.size, int64(MaxSegmentBytes))
		return nil, errors.Join(err, r.close())
	}
	if err := r.findParts(scanChunk); err != nil {
		return nil, errors.Join(err, r.close())
	}
	if err := r.readHeader(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *reader) close() error {
	if err := r.file.Close(); err != nil {
		return fmt.Errorf("close segment: %w", err)
	}
	return nil
}

// readHeader reads the header and checks that it is that of the wanted segment.
func (r *reader) readHeader() error {
	page := make([]byte, min(r.size, HeaderLen))
	if err := r.readAt(page, 0); err != nil {
		return err
	}
	h, err := decodeHeader(page)
	switch {
	case errors.Is(err, ErrNewerFormat):
		return fmt.Errorf("%s: %w", r.name, err)
	case err != nil:
		damage := corrupt.Newf(r.name, 0, "%v", err)
		s, err := r.scan(HeaderLen, 1)
		if err != nil {
			return err
		}
		if s.found > 0 {
			return fmt.Errorf("%w: %w", ErrHeadless, damage)
		}
		return fmt.Errorf("%w: %w", ErrUnfinished, damage)
	case h.DBID != r.dbid:
		return corrupt.Newf(r.name, 16, "segment of database %x, want %x", h.DBID, r.dbid)
	case h.Number > r.number:
		return fmt.Errorf("%w: %w", ErrChanged,
			corrupt.Newf(r.name, 32, "header of segment %d, want %d", h.Number, r.number))
	case h.Number < r.number:
		return corrupt.Newf(r.name, 32, "header of segment %d, want %d", h.Number, r.number)
	}
	r.header = h
	r.sum = headerSum(page)
	return nil
}

// readAt fills p from off. A file that ends before its size is an error.
func (r *reader) readAt(p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	n, err := r.file.ReadAt(p, off)
	if n == len(p) && (err == nil || errors.Is(err, io.EOF)) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read %s at %d: %w", r.name, off, err)
}

// fill reads the file into the image up to an offset at least.
func (r *reader) fill(upto int64) error {
	if upto <= r.filled {
		return nil
	}
	upto = min(max(upto, r.filled+readChunk), r.limit)
	if r.beforeRead != nil {
		r.beforeRead(upto)
	}
	if err := r.readAt(r.image[r.filled:upto], r.filled); err != nil {
		return err
	}
	r.filled = upto
	return nil
}

// reread reads the rest of the image again from an offset that holds no valid
// record. If zeros or a stale record end the log there, it rereads the record
// header alone, and the rest only if that has changed.
func (r *reader) reread(off int64, found content) error {
	if found != contentInvalid {
		head := make([]byte, min(r.filled-off, RecordHeaderLen))
		if err := r.readAt(head, off); err != nil {
			return err
		}
		if bytes.Equal(head, r.image[off:off+int64(len(head))]) {
			return nil
		}
	}
	return r.readAt(r.image[off:r.filled], off)
}

// content is what a segment file holds at an offset.
type content uint8

const (
	contentRecord  content = iota + 1
	contentEmpty           // zeros, or the end of the file
	contentStale           // a record of an earlier segment in this file
	contentInvalid         // anything else
)

// recordAt reports what the file holds at an offset. If it is a record of this
// segment with valid sums, recordAt returns its header.
func (r *reader) recordAt(off int64) (content, recordHeader, error) {
	if err := r.fill(min(off+RecordHeaderLen, r.limit)); err != nil {
		return 0, recordHeader{}, err
	}
	src := r.image[off:min(off+RecordHeaderLen, r.limit)]
	if isZero(src) {
		return contentEmpty, recordHeader{}, nil
	}
	if len(src) < RecordHeaderLen {
		return contentInvalid, recordHeader{}, nil
	}
	h := decodeRecordHeader(src)
	mask := r.seed.mask(off)
	if !isRecord(src, h, r.number, mask) {
		if older, ok := staleNumber(r.number, h.number); ok && isRecord(src, h, older, newSumSeed(r.dbid, older).mask(off)) {
			return contentStale, recordHeader{}, nil
		}
		return contentInvalid, recordHeader{}, nil
	}
	end := off + recordBytes(int64(h.length))
	if end > r.limit {
		return contentInvalid, recordHeader{}, nil
	}
	if err := r.fill(end); err != nil {
		return 0, recordHeader{}, err
	}
	if xxhash.Sum64(r.image[off+8:end])^mask != h.sum {
		return contentInvalid, recordHeader{}, nil
	}
	return contentRecord, h, nil
}

// progress is the state of a replay: the log as far as its records were accepted.
type progress struct {
	end     End
	dataEnd int64   // end of the last record that is not a seal
	chain   uint32  // the chain field that the next record must have
	stop    content // what follows the last record
}

// readRecords accepts records from the first on and ends at an offset that holds
// anything else.
func (r *reader) readRecords(apply func(RecordView) error) (progress, error) {
	p := progress{
		end:     End{Offset: HeaderLen, Proven: HeaderLen, LastSeq: r.header.FirstSeq - 1},
		dataEnd: HeaderLen,
		chain:   uint32(r.sum),
	}
	reread := false
	for {
		off := p.end.Offset
		found, h, err := r.recordAt(off)
		if err != nil {
			return p, err
		}
		if found != contentRecord {
			if reread {
				p.stop = found
				return p, nil
			}
			// One wrong read must not shorten the log.
			reread = true
			if err := r.reread(off, found); err != nil {
				return p, err
			}
			continue
		}
		reread = false
		if err := p.accept(r.name, h); err != nil {
			return p, err
		}
		if h.kind == kindSeal {
			continue
		}
		start := off + RecordHeaderLen
		err = apply(RecordView{
			FirstSeq: h.firstSeq, Count: h.count, Flags: h.flags,
			PayloadOff: start, Payload: r.image[start : start+int64(h.length) : start+int64(h.length)],
		})
		if err != nil {
			return p, err
		}
	}
}

// accept adds a record with valid sums. Its fields must agree with the records
// before it: no crash leaves a whole record in the wrong sequence.
func (p *progress) accept(name string, h recordHeader) error {
	off := p.end.Offset
	switch {
	case h.chain != p.chain:
		return corrupt.Newf(name, off, "chain is %08x, want %08x", h.chain, p.chain)
	case h.firstSeq != p.end.LastSeq+1:
		return corrupt.Newf(name, off, "record begins at sequence %d, want %d", h.firstSeq, p.end.LastSeq+1)
	case h.firstSeq+uint64(h.count) > MaxSeq+1:
		return corrupt.Newf(name, off, "record exceeds the greatest sequence")
	case int64(h.syncedTo) < p.end.Proven || int64(h.syncedTo) > off:
		return corrupt.Newf(name, off, "synced-to is %d, want %d to %d", h.syncedTo, p.end.Proven, off)
	}
	p.end.Offset = off + recordBytes(int64(h.length))
	p.end.Proven = int64(h.syncedTo)
	p.end.LastSeq += uint64(h.count)
	p.chain = uint32(h.sum)
	p.end.Sealed = h.kind == kindSeal && p.end.Proven >= p.dataEnd
	if h.kind == kindData {
		p.end.Records++
		p.dataEnd = p.end.Offset
	}
	return nil
}

// replay reads the records and checks the end of the log.
func (r *reader) replay(o ReplayOptions, apply func(RecordView) error) (end End, err error) {
	r.limit = r.size
	if o.Sealed != 0 {
		if o.Sealed > r.size || o.Sealed < HeaderLen {
			return End{}, corrupt.Newf(r.name, min(max(o.Sealed, 0), r.size),
				"log is sealed at %d, the file has %d bytes", o.Sealed, r.size)
		}
		r.limit = o.Sealed
	}
	if int64(len(o.Image)) < r.limit {
		return End{}, fmt.Errorf("replay %s: image of %d bytes, want %d", r.name, len(o.Image), r.limit)
	}
	r.image, r.beforeRead, r.filled = o.Image, o.BeforeRead, 0
	defer func() { clear(r.image[end.Offset:r.filled]) }()
	if err := r.fill(HeaderLen); err != nil {
		return End{}, err
	}
	p, err := r.readRecords(apply)
	if err != nil {
		return p.end, err
	}
	return r.checkEnd(o, p)
}

// checkEnd tells a torn tail from damage by one rule: the accepted records must
// reach every offset that a sync is known to have covered. A record behind the
// damage proves only the offset in its own synced-to field, because the sectors of
// one group reach the disk in any order.
func (r *reader) checkEnd(o ReplayOptions, p progress) (End, error) {
	end := p.end
	if o.Sealed != 0 {
		if end.Offset != o.Sealed {
			return end, corrupt.Newf(r.name, end.Offset, "no valid record, but the log is sealed at %d", o.Sealed)
		}
		end.Proven = end.Offset
		return end, r.checkNext(o, end)
	}
	if end.Offset == HeaderLen {
		// Only a record proves that the header was synced, and there is none.
		end.Proven = 0
	}
	end.Proven = max(end.Proven, o.Proven)
	end.Torn = p.stop == contentInvalid
	// If the next segment continues the last record, no record of this segment
	// can follow it.
	if o.NextSeq == 0 || end.LastSeq+1 != o.NextSeq {
		s, err := r.scan(end.Offset+align, 0)
		if err != nil {
			return p.end, err
		}
		end.Proven = max(end.Proven, s.proven)
		end.Torn = end.Torn || s.found > 0
	}
	if end.Proven > end.Offset {
		return p.end, corrupt.Newf(r.name, end.Offset, "no valid record, but the log was synced to %d", end.Proven)
	}
	return end, r.checkNext(o, end)
}

// checkNext verifies that the next segment continues this one.
func (r *reader) checkNext(o ReplayOptions, end End) error {
	if o.NextSeq == 0 || end.LastSeq+1 == o.NextSeq {
		return nil
	}
	return corrupt.Newf(r.name, end.Offset, "log ends at sequence %d, the next segment begins at %d", end.LastSeq, o.NextSeq)
}
