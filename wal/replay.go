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

// ErrUnfinished says that a file holds no valid header and no record: the
// creation of the segment was cut short, before anything could be acknowledged
// from it. The error wraps a *corrupt.Error as well, which is what it means for
// a segment that a manifest lists.
var ErrUnfinished = errors.New("segment was never finished")

// ErrHeadless says that a file holds records of the segment behind a header that
// is not valid. The error wraps a *corrupt.Error as well. Where nobody needs the
// segment any more it shows whose the file was: another was to take it over.
var ErrHeadless = errors.New("segment has records and no valid header")

// ErrChanged says that a live writer got in the way: it made another segment of
// the file, or let it outgrow the image. The reader looks at the manifest again.
var ErrChanged = errors.New("segment changed while it was read")

// ReplayOptions says what is known of a segment from elsewhere.
type ReplayOptions struct {
	DBID   [16]byte
	Number uint64
	// Sealed is the exact end of the log in this segment, as the manifest
	// states it: nothing behind it is read. 0 leaves the end open, and the
	// fields below count.
	Sealed int64
	// Proven is what the next segment's header or the manifest states: this one
	// is durable up to here at least. 0 when unknown.
	Proven int64
	// NextSeq is the first sequence of the next segment, if that holds a record
	// (see Inspect): this log must end right before it. 0 says that no later
	// segment holds one, so that what no sync has proven may be a torn tail.
	NextSeq uint64
}

// RecordView is a replayed record. Payload is a part of the image.
type RecordView struct {
	FirstSeq   uint64
	Count      uint16
	Flags      uint8
	PayloadOff int64
	Payload    []byte
}

// End says where and how the log of a segment ended.
type End struct {
	Offset  int64  // end of the last accepted record
	Proven  int64  // the file is durable up to here for certain; at most Offset, 0 if not even the header is
	LastSeq uint64 // last sequence of the accepted records
	Records int    // accepted records, seals not counted
	Torn    bool   // behind Offset stand neither zeros nor a record of the file's earlier life
	Sealed  bool   // the log ends with a seal, which proves all records
}

// Replay reads a segment, verifies every record once, and calls fn for each in
// order. It fills the image, which must be zeroed and at least as long as the
// file, with the file's bytes up to the end of the log; behind that it stays
// zero. Records that fn was given count only if Replay returns no error. An
// error of fn ends the replay and is returned as it is.
//
// Damage is a *corrupt.Error, unless it can only be a torn tail: the segment is
// the last one, and the accepted records reach every offset that a sync is
// known to have covered; that of a header is ErrHeadless, too. Other errors are
// ErrNewerFormat, ErrUnfinished and those of the file system.
func Replay(fs vfs.FS, name string, o ReplayOptions, image []byte, fn func(RecordView) error) (Header, End, error) {
	r, err := open(fs, name, o.DBID, o.Number)
	if err != nil {
		return Header{}, End{}, err
	}
	end, err := r.replay(o, image, fn)
	return r.header, end, errors.Join(err, r.close())
}

// ReplayDurable is Replay beside a live writer, from another process: it shows
// records only below an offset that a sync is known to have covered, because
// what the page cache shows beyond may still vanish. A segment that a later one
// with records follows is durable as a whole. It returns ErrChanged when the
// file became another segment or outgrew the image.
func ReplayDurable(fs vfs.FS, name string, o ReplayOptions, image []byte, fn func(RecordView) error) (Header, End, error) {
	r, err := open(fs, name, o.DBID, o.Number)
	if err != nil {
		return Header{}, End{}, err
	}
	end, err := r.replayDurable(o, image, fn)
	return r.header, end, errors.Join(err, r.close())
}

func (r *reader) replayDurable(o ReplayOptions, image []byte, fn func(RecordView) error) (End, error) {
	need := r.size
	if o.Sealed == 0 && o.NextSeq == 0 {
		// Only what is read after its proof was seen is complete, so the
		// proofs are collected first.
		size := r.size
		r.size = min(size, int64(len(image)))
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
	if int64(len(image)) < need {
		return End{}, fmt.Errorf("%w: %s has %d bytes to read, the image %d", ErrChanged, r.name, need, len(image))
	}
	end, err := r.replay(o, image, fn)
	if err == nil || !errors.Is(err, corrupt.ErrCorrupt) {
		return end, err
	}
	if herr := r.readHeader(); herr != nil {
		return end, errors.Join(err, herr)
	}
	return end, err
}

// Info describes a segment that was not replayed.
type Info struct {
	Header  Header
	Bytes   int64 // size of the file; no image of it needs more
	Records bool  // a valid record of this segment stands somewhere in it
}

// Inspect reads a segment's header and looks for a record. Errors are those of
// Replay.
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
	place  place
	header Header
	sum    uint64 // the header's

	image  []byte
	limit  int64 // nothing at or behind it is looked at
	filled int64 // the image holds the file up to here
}

// open opens a segment and verifies its header.
func open(fs vfs.FS, name string, dbid [16]byte, number uint64) (*reader, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	r := &reader{file: f, name: path.Base(name), dbid: dbid, number: number, place: newPlace(dbid, number)}
	r.size, err = f.Size()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("size of segment: %w", err), r.close())
	}
	if r.size > MaxSegmentBytes {
		err := corrupt.Newf(r.name, MaxSegmentBytes, "segment of %d bytes, at most %d can be", r.size, int64(MaxSegmentBytes))
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

// readHeader reads the header and compares it with what the reader wants.
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

// readAt fills p from off. A file that ends earlier than it said is an error.
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

// fill makes the image hold the file up to upto.
func (r *reader) fill(upto int64) error {
	if upto <= r.filled {
		return nil
	}
	upto = min(max(upto, r.filled+readChunk), r.limit)
	if err := r.readAt(r.image[r.filled:upto], r.filled); err != nil {
		return err
	}
	r.filled = upto
	return nil
}

// refill reads what stands at an offset once more, where the log merely seems
// to end only if a record's header reads differently.
func (r *reader) refill(off int64, what found) error {
	if what != foundBad {
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

// found is what stands at an offset.
type found uint8

const (
	foundRecord  found = iota + 1
	foundNothing       // zeros, or the end of the file
	foundStale         // a record of an earlier segment that the file once was
	foundBad           // anything else
)

// at looks at an offset and returns the record's header if there is one whose
// place and sums are right.
func (r *reader) at(off int64) (found, recordHeader, error) {
	if err := r.fill(min(off+RecordHeaderLen, r.limit)); err != nil {
		return 0, recordHeader{}, err
	}
	src := r.image[off:min(off+RecordHeaderLen, r.limit)]
	if isZero(src) {
		return foundNothing, recordHeader{}, nil
	}
	if len(src) < RecordHeaderLen {
		return foundBad, recordHeader{}, nil
	}
	h := decodeRecordHeader(src)
	bind := r.place.at(off)
	if !isRecord(src, h, r.number, bind) {
		if older, ok := staleNumber(r.number, h.number); ok && isRecord(src, h, older, newPlace(r.dbid, older).at(off)) {
			return foundStale, recordHeader{}, nil
		}
		return foundBad, recordHeader{}, nil
	}
	end := off + recordBytes(int64(h.length))
	if end > r.limit {
		return foundBad, recordHeader{}, nil
	}
	if err := r.fill(end); err != nil {
		return 0, recordHeader{}, err
	}
	if xxhash.Sum64(r.image[off+8:end])^bind != h.sum {
		return foundBad, recordHeader{}, nil
	}
	return foundRecord, h, nil
}

// walk accepts records from the beginning until something else stands there.
type walk struct {
	end     End
	dataEnd int64  // end of the last record that is not a seal
	chain   uint32 // what the next record must carry
	stop    found
}

func (r *reader) walk(fn func(RecordView) error) (walk, error) {
	w := walk{
		end:     End{Offset: HeaderLen, Proven: HeaderLen, LastSeq: r.header.FirstSeq - 1},
		dataEnd: HeaderLen,
		chain:   uint32(r.sum),
	}
	again := false
	for {
		off := w.end.Offset
		what, h, err := r.at(off)
		if err != nil {
			return w, err
		}
		if what != foundRecord {
			// What a read got wrong once must not shorten the log.
			if again {
				w.stop = what
				return w, nil
			}
			again = true
			if err := r.refill(off, what); err != nil {
				return w, err
			}
			continue
		}
		again = false
		if err := w.accept(r.name, h); err != nil {
			return w, err
		}
		if h.kind == kindSeal {
			continue
		}
		start := off + RecordHeaderLen
		err = fn(RecordView{
			FirstSeq: h.firstSeq, Count: h.count, Flags: h.flags,
			PayloadOff: start, Payload: r.image[start : start+int64(h.length) : start+int64(h.length)],
		})
		if err != nil {
			return w, err
		}
	}
}

// accept adds a record whose sums are right. What it says of its surroundings
// must be true: no crash makes a record that is whole and in the wrong company.
func (w *walk) accept(name string, h recordHeader) error {
	off := w.end.Offset
	switch {
	case h.chain != w.chain:
		return corrupt.Newf(name, off, "record follows another one than the one before it")
	case h.firstSeq != w.end.LastSeq+1:
		return corrupt.Newf(name, off, "record begins at sequence %d, want %d", h.firstSeq, w.end.LastSeq+1)
	case h.firstSeq+uint64(h.count) > MaxSeq+1:
		return corrupt.Newf(name, off, "record passes the greatest sequence")
	case int64(h.syncedTo) < w.end.Proven || int64(h.syncedTo) > off:
		return corrupt.Newf(name, off, "record says that %d was synced, want %d to %d", h.syncedTo, w.end.Proven, off)
	}
	w.end.Offset = off + recordBytes(int64(h.length))
	w.end.Proven = int64(h.syncedTo)
	w.end.LastSeq += uint64(h.count)
	w.chain = uint32(h.sum)
	w.end.Sealed = h.kind == kindSeal && w.end.Proven >= w.dataEnd
	if h.kind == kindData {
		w.end.Records++
		w.dataEnd = w.end.Offset
	}
	return nil
}

// replay walks the log and judges how it ended.
func (r *reader) replay(o ReplayOptions, image []byte, fn func(RecordView) error) (end End, err error) {
	r.limit = r.size
	if o.Sealed != 0 {
		if o.Sealed > r.size || o.Sealed < HeaderLen {
			return End{}, corrupt.Newf(r.name, min(max(o.Sealed, 0), r.size),
				"log is sealed at %d, the file has %d bytes", o.Sealed, r.size)
		}
		r.limit = o.Sealed
	}
	if int64(len(image)) < r.limit {
		return End{}, fmt.Errorf("replay %s: image of %d bytes, want %d", r.name, len(image), r.limit)
	}
	r.image, r.filled = image, 0
	defer func() { clear(r.image[end.Offset:r.filled]) }()
	if err := r.fill(HeaderLen); err != nil {
		return End{}, err
	}
	w, err := r.walk(fn)
	if err != nil {
		return w.end, err
	}
	return r.judge(o, w)
}

// judge applies the one rule that tells torn from rotten: the accepted records
// must reach everything that a sync is known to have covered. A record behind
// the damage proves nothing but what it says was synced before it, since the
// sectors of one group land in any order.
func (r *reader) judge(o ReplayOptions, w walk) (End, error) {
	end := w.end
	if o.Sealed != 0 {
		if end.Offset != o.Sealed {
			return end, corrupt.Newf(r.name, end.Offset, "no valid record, but the log is sealed at %d", o.Sealed)
		}
		end.Proven = end.Offset
		return end, r.checkNext(o, end)
	}
	if end.Offset == HeaderLen {
		// Only a record shows that the header was synced, and there is none.
		end.Proven = 0
	}
	end.Proven = max(end.Proven, o.Proven)
	end.Torn = w.stop == foundBad
	// Nothing of this segment can stand behind the record that the next one
	// continues.
	if o.NextSeq == 0 || end.LastSeq+1 != o.NextSeq {
		s, err := r.scan(end.Offset+align, 0)
		if err != nil {
			return w.end, err
		}
		end.Proven = max(end.Proven, s.proven)
		end.Torn = end.Torn || s.found > 0
	}
	if end.Proven > end.Offset {
		return w.end, corrupt.Newf(r.name, end.Offset, "no valid record, but the log was synced to %d", end.Proven)
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
