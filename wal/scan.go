package wal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/vfs"
)

// scanChunk is the number of bytes of the file that a scan holds in memory.
const scanChunk = 256 << 10

// scanResult is what a scan found.
type scanResult struct {
	found  int   // valid records of the segment
	proven int64 // the greatest synced-to among them
	data   int64 // end of the last of them that is not a seal
}

// maxParts limits the parts of a file, because a list of more is of little use. The last part
// has the rest of the file.
const maxParts = 64

// part is the bytes [from, to) of a file.
type part struct{ from, to int64 }

// findParts sets the parts of the file where a record can begin, with the first
// RecordHeaderLen bytes of the record. Space that was reserved and never written is in none:
// a segment of 64 MiB often has much of it. Call it before anything else is read, because
// file systems do not tell pages that were read from written ones. The first bytes after the
// header are always in a part: a log with records must not be taken for one without, if a
// file system reports wrong holes.
func (r *reader) findParts(first int64) error {
	off := HeaderLen + first
	r.parts = append(r.parts, part{HeaderLen, min(off+RecordHeaderLen, r.size)})
	for off < r.size {
		from, to, err := vfs.NextData(r.file, off)
		if err != nil {
			return fmt.Errorf("written parts of segment: %w", err)
		}
		if from >= r.size {
			break
		}
		if len(r.parts) == maxParts-1 {
			to = r.size
		}
		// The header of a record can begin before or end behind the part.
		r.parts = append(r.parts, part{(from - RecordHeaderLen) / align * align, min(to+RecordHeaderLen, r.size)})
		off = max(to, off+1)
	}
	return nil
}

// scan searches the parts for valid records of the segment at every multiple of 8 bytes
// from off. It stops after the given number of records; 0 searches all parts.
func (r *reader) scan(off int64, stop int) (scanResult, error) {
	s := scanner{r: r, buf: make([]byte, max(0, min(scanChunk, r.size-off)))}
	for _, p := range r.parts {
		off = max(off, p.from)
		to := min(p.to, r.size) // ReplayDurable lowers the size
		for off+RecordHeaderLen <= to && (stop == 0 || s.found < stop) {
			n := min(int64(len(s.buf)), to-off)
			window := s.buf[:n]
			if err := r.readAt(window, off); err != nil {
				return scanResult{}, err
			}
			next, err := s.window(window, off, stop)
			if err != nil {
				return scanResult{}, err
			}
			off = next
		}
	}
	return s.scanResult, nil
}

// scanner scans a file window by window.
type scanner struct {
	scanResult
	r      *reader
	buf    []byte
	wasted int64 // bytes of candidates whose sum was wrong
}

// window scans the bytes of the file from base on and returns the base of the next
// window.
func (s *scanner) window(window []byte, base int64, stop int) (int64, error) {
	low := uint32(s.r.number)
	p := int64(0)
	for p+RecordHeaderLen <= int64(len(window)) {
		if binary.LittleEndian.Uint32(window[p+16:]) != low {
			p += align
			continue
		}
		src := window[p : p+RecordHeaderLen]
		h, off := decodeRecordHeader(src), base+p
		length := recordBytes(int64(h.length))
		ok := isRecord(src, h, s.r.number, s.r.seed.mask(off)) && off+length <= s.r.size &&
			int64(h.syncedTo) >= HeaderLen && int64(h.syncedTo) <= off
		if ok {
			var err error
			if ok, err = s.verify(window[p:], h, off, length); err != nil {
				return 0, err
			}
		}
		if !ok {
			p += align
			continue
		}
		s.found++
		s.proven = max(s.proven, int64(h.syncedTo))
		if h.kind != kindSeal {
			s.data = off + length
		}
		p += length
		if s.found == stop {
			break
		}
	}
	return base + p, nil
}

// verify checks the sum of a record whose beginning is src. Records do not overlap,
// so a file that Tablerock wrote never wastes more than its size; a file crafted to
// waste time is damaged.
func (s *scanner) verify(src []byte, h recordHeader, off, length int64) (bool, error) {
	var sum uint64
	if length <= int64(len(src)) {
		sum = xxhash.Sum64(src[8:length])
	} else {
		d := xxhash.New()
		buf := make([]byte, min(length, scanChunk))
		for at := off + 8; at < off+length; {
			chunk := buf[:min(int64(len(buf)), off+length-at)]
			if err := s.r.readAt(chunk, at); err != nil {
				return false, err
			}
			_, _ = d.Write(chunk) // never fails
			at += int64(len(chunk))
		}
		sum = d.Sum64()
	}
	if sum^s.r.seed.mask(off) == h.sum {
		return true, nil
	}
	s.wasted += length
	if s.wasted > s.r.size {
		return false, corrupt.Newf(s.r.name, off, "damaged records overlap")
	}
	return false, nil
}

// Unproven returns the offset up to which a reader beside a live writer finds records in a
// segment, and the offset up to which they are known to be durable. The next record, or a
// seal, makes these known to be durable, too. The errors are those of Inspect.
func Unproven(fs vfs.FS, name string, dbid [16]byte, number uint64) (end, proven int64, err error) {
	r, err := open(fs, name, dbid, number)
	if err != nil {
		return 0, 0, err
	}
	s, err := r.scan(HeaderLen, 0)
	return s.data, s.proven, errors.Join(err, r.close())
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// Blank reports whether a file holds only zeros behind the header's 4 KiB, whatever
// those are: an interrupted creation of a database leaves such a file.
func Blank(fs vfs.FS, name string) (bool, error) { return zerosFrom(fs, name, HeaderLen) }

// Zeros reports whether a file holds only zeros, or nothing: a process leaves such a file that
// ends before it has written the header of a new segment.
func Zeros(fs vfs.FS, name string) (bool, error) { return zerosFrom(fs, name, 0) }

func zerosFrom(fs vfs.FS, name string, off int64) (bool, error) {
	f, err := fs.Open(name)
	if err != nil {
		return false, fmt.Errorf("open segment: %w", err)
	}
	r := reader{file: f, name: name}
	zeros, err := r.zerosFrom(off)
	return zeros, errors.Join(err, r.close())
}

func (r *reader) zerosFrom(off int64) (bool, error) {
	size, err := r.file.Size()
	if err != nil {
		return false, fmt.Errorf("size of segment: %w", err)
	}
	if size > MaxSegmentBytes {
		return false, nil
	}
	buf := make([]byte, max(0, min(scanChunk, size-off)))
	for off < size {
		chunk := buf[:min(int64(len(buf)), size-off)]
		if err := r.readAt(chunk, off); err != nil {
			return false, err
		}
		if !isZero(chunk) {
			return false, nil
		}
		off += int64(len(chunk))
	}
	return true, nil
}

// Repair rewrites the bytes from end.Proven to end.Offset in place and syncs them.
// Replay accepted them although they may have been in the page cache alone; after
// Repair they are durable and the caller can build on them. The caller must also
// sync the directory, because the name may be as new. The image is the one that
// Replay filled. A crash during Repair leaves a log that replays to the same end
// or, if nothing behind end.Proven was acknowledged, to an earlier one.
func Repair(fs vfs.FS, name string, image []byte, end End) error {
	if end.Proven >= end.Offset {
		return nil
	}
	f, err := fs.OpenReadWrite(name)
	if err != nil {
		return fmt.Errorf("repair segment: %w", err)
	}
	if err := errors.Join(repair(f, image, end), f.Close()); err != nil {
		return fmt.Errorf("repair segment: %w", err)
	}
	return nil
}

func repair(f vfs.File, image []byte, end End) error {
	if _, err := f.WriteAt(image[end.Proven:end.Offset], end.Proven); err != nil {
		return err
	}
	return f.Sync()
}
