package wal

import (
	"errors"
	"fmt"
	"path"

	"github.com/tablerock-db/tablerock/vfs"
)

// CreateOptions says how Open gets the file of a segment.
type CreateOptions struct {
	// Prepared names a file to reuse, usually an obsolete segment. It must not
	// be open for writing. The default is a new file.
	Prepared string
	// NoPreallocate makes the file grow by its writes alone. The default is to
	// preallocate.
	NoPreallocate bool
}

// New returns a segment without a file. It accepts records; call Open before the
// first Write, Sync or Seal. The image is memory of the caller with any contents,
// from SegmentBytes(0) to MaxSegmentBytes long. Its length is the capacity of the
// segment. It must stay valid until the segment is closed.
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

// Open creates the file of the segment at name, or reuses a prepared one. It is one
// of the methods of the file. Before Open, the previous segment must be durable up
// to the PrevEnd of the header.
//
// When Open returns, the header is durable but the name is not: the caller must
// sync the directory. Open writes and syncs the header of a prepared file under its
// old name and then renames the file, so that no crash leaves a header of another
// segment at name. After an error the segment has failed, Open has tried to remove
// a file that it created, and a prepared file must not be used again.
func (s *Segment) Open(fs vfs.FS, name string, o CreateOptions) error {
	s.preallocate = !o.NoPreallocate
	s.fs, s.dir = fs, path.Dir(name)
	open := s.createFile
	if o.Prepared != "" {
		open = s.reuseFile
	}
	if err := open(fs, name, o); err != nil {
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

// reuseFile renames the file while it is closed: Windows renames no open file.
func (s *Segment) reuseFile(fs vfs.FS, path string, o CreateOptions) error {
	f, err := fs.OpenReadWrite(o.Prepared)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil {
		err = s.start(f, size)
	}
	if err == nil && o.Prepared == path {
		return nil
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(o.Prepared, path); err != nil {
		return err
	}
	if s.file, err = fs.OpenReadWrite(path); err != nil {
		return errors.Join(err, fs.Remove(path))
	}
	return nil
}

// start makes f the file of the segment and the header durable. The first allocated
// bytes of f have been written before.
func (s *Segment) start(f vfs.File, allocated int64) error {
	s.file, s.allocated, s.zeroed = f, allocated, allocated
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
