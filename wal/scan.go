package wal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/vfs"
)

// scanChunk is how much a scan holds of the file.
const scanChunk = 256 << 10

// scanned is what a scan found.
type scanned struct {
	found  int   // valid records of the segment
	proven int64 // the greatest synced-to among them
}

// scan looks for valid records of the segment at every 8 bytes from off on, and
// stops early once it has found stop of them, unless stop is 0.
func (r *reader) scan(off int64, stop int) (scanned, error) {
	s := scanner{r: r, buf: make([]byte, max(0, min(scanChunk, r.size-off)))}
	for off+RecordHeaderLen <= r.size && (stop == 0 || s.found < stop) {
		n := min(int64(len(s.buf)), r.size-off)
		window := s.buf[:n]
		if err := r.readAt(window, off); err != nil {
			return scanned{}, err
		}
		next, err := s.window(window, off, stop)
		if err != nil {
			return scanned{}, err
		}
		off = next
	}
	return s.scanned, nil
}

// scanner goes over a file window by window.
type scanner struct {
	scanned
	r      *reader
	buf    []byte
	wasted int64 // bytes summed for nothing
}

// window looks at a part of the file that begins at base, and returns where the
// next part begins.
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
		ok := isRecord(src, h, s.r.number, s.r.place.at(off)) && off+length <= s.r.size &&
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
		p += length
		if s.found == stop {
			break
		}
	}
	return base + p, nil
}

// verify sums a record that begins at src, which may hold only a part of it.
// Records do not overlap, so an honest file never wastes more than its size;
// one that was made to waste time is damaged.
func (s *scanner) verify(src []byte, h recordHeader, off, length int64) (bool, error) {
	var sum uint64
	if length <= int64(len(src)) {
		sum = xxhash.Sum64(src[8:length])
	} else {
		d := xxhash.New()
		buf := make([]byte, min(length, scanChunk))
		for at := off + 8; at < off+length; {
			part := buf[:min(int64(len(buf)), off+length-at)]
			if err := s.r.readAt(part, at); err != nil {
				return false, err
			}
			_, _ = d.Write(part) // never fails
			at += int64(len(part))
		}
		sum = d.Sum64()
	}
	if sum^s.r.place.at(off) == h.sum {
		return true, nil
	}
	s.wasted += length
	if s.wasted > s.r.size {
		return false, corrupt.Newf(s.r.name, off, "damaged records overlap")
	}
	return false, nil
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// Blank reports whether a file carries nothing behind the place of a header:
// what the creation of a database leaves when it is cut short, whatever its
// first 4 KiB are.
func Blank(fs vfs.FS, name string) (bool, error) {
	f, err := fs.Open(name)
	if err != nil {
		return false, fmt.Errorf("open segment: %w", err)
	}
	r := reader{file: f, name: name}
	blank, err := r.blank()
	return blank, errors.Join(err, r.close())
}

func (r *reader) blank() (bool, error) {
	size, err := r.file.Size()
	if err != nil {
		return false, fmt.Errorf("size of segment: %w", err)
	}
	if size > MaxSegmentBytes {
		return false, nil
	}
	buf := make([]byte, max(0, min(scanChunk, size-HeaderLen)))
	for off := int64(HeaderLen); off < size; {
		part := buf[:min(int64(len(buf)), size-off)]
		if err := r.readAt(part, off); err != nil {
			return false, err
		}
		if !isZero(part) {
			return false, nil
		}
		off += int64(len(part))
	}
	return true, nil
}

// Repair writes the part of the log that no sync has proven, from Proven to
// Offset, again in place and syncs it, so that what was accepted from the page
// cache is durable before anyone builds on it. The caller syncs the directory,
// since the name may be as young. The image is the one that Replay
// filled. A crash during it leaves a log that replays to the same end or, where
// nothing was acknowledged, to an earlier one.
func Repair(fs vfs.FS, name string, image []byte, end End) error {
	if end.Proven >= end.Offset {
		return nil
	}
	f, err := fs.OpenReadWrite(name)
	if err != nil {
		return fmt.Errorf("repair segment: %w", err)
	}
	if err := repair(f, image, end); err != nil {
		return fmt.Errorf("repair segment: %w", errors.Join(err, f.Close()))
	}
	if err := f.Close(); err != nil {
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
