package wal

import (
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/vfs"
)

// CreateOptions says where the file of a segment comes from.
type CreateOptions struct {
	// Prepared names a file to take over instead of making one: a segment that
	// no manifest lists any more. It must not be open elsewhere for writing.
	// Empty makes a file.
	Prepared string
	// NoPreallocate lets the file grow by its writes alone.
	NoPreallocate bool
}

// New returns a segment that is memory only: records can be appended, and Open
// must come before the first Write, Sync or Seal. The image is the caller's
// memory, of any content, at least SegmentBytes(0) and at most MaxSegmentBytes
// long; its length is the segment's capacity, and it must stay until the segment
// is closed.
func New(h Header, image []byte) (*Segment, error) {
	if n := int64(len(image)); n < SegmentBytes(0) || n > MaxSegmentBytes {
		return nil, fmt.Errorf("segment %d: image of %d bytes, want %d to %d",
			h.Number, n, SegmentBytes(0), int64(MaxSegmentBytes))
	}
	if err := h.check(); err != nil {
		return nil, fmt.Errorf("segment %d: %w", h.Number, err)
	}
	appendHeader(image[:0:HeaderLen], h)
	return newSegment(h, image), nil
}

// Open gives the segment its file, path. It belongs to the file side. What the
// header states of the previous segment must be durable by then.
//
// The header is durable when Open returns, the name is not: the caller syncs
// the directory. A prepared file gets its header, synced, under its old name
// and is renamed then, so that no crash leaves a foreign header under path.
// After an error a file that Open made is gone, if it can be removed, a
// prepared file is of no further use, and the segment has failed.
func (s *Segment) Open(fs vfs.FS, path string, o CreateOptions) error {
	s.preallocate = !o.NoPreallocate
	open := s.createFile
	if o.Prepared != "" {
		open = s.takeOver
	}
	if err := open(fs, path, o); err != nil {
		s.file = nil
		return s.fail("create", err)
	}
	return nil
}

func (s *Segment) createFile(fs vfs.FS, path string, _ CreateOptions) error {
	f, err := fs.Create(path)
	if err != nil {
		return err
	}
	if err := s.start(f, 0); err != nil {
		return errors.Join(err, f.Close(), fs.Remove(path))
	}
	return nil
}

func (s *Segment) takeOver(fs vfs.FS, path string, o CreateOptions) error {
	f, err := fs.OpenReadWrite(o.Prepared)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil {
		err = s.start(f, size)
	}
	if err == nil && o.Prepared != path {
		err = fs.Rename(o.Prepared, path)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

// start makes f, which has allocated bytes, the segment's file and its header
// durable.
func (s *Segment) start(f vfs.File, allocated int64) error {
	s.file, s.allocated = f, allocated
	if err := s.grow(HeaderLen); err != nil {
		return fmt.Errorf("preallocate: %w", err)
	}
	if _, err := s.file.WriteAt(s.image[:HeaderLen], 0); err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync header: %w", err)
	}
	return nil
}
