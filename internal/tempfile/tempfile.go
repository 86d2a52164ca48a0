// Package tempfile makes temporary files whose total size has a limit.
package tempfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/tablerock-db/tablerock/vfs"
)

// The errors of a file that cannot get more bytes.
var (
	ErrLimit = errors.New("the temporary files would exceed their limit")
	ErrFull  = errors.New("the disk of temporary files is full")
)

// Files makes temporary files. It is safe for concurrent use.
type Files struct {
	limit int64

	mu sync.Mutex
	// granted is the number of bytes that the files can have, and pending how many of these
	// are not written.
	granted int64 // +checklocks:mu
	pending int64 // +checklocks:mu
}

// New returns Files that have at most limit bytes together.
func New(limit int64) *Files { return &Files{limit: limit} }

// Create makes a file for size bytes; it grows if more are written. It returns ErrLimit, or
// ErrFull if the file would need more than half of the free space of the disk. Close the file.
func (f *Files) Create(size int64) (*File, error) {
	free := int64(-1)
	if space, err := vfs.OS().Space(filepath.ToSlash(os.TempDir())); err == nil {
		free = space.Free
	}
	if err := f.grant(size, free); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "tablerock-*")
	if err != nil {
		f.release(size, size)
		return nil, fmt.Errorf("make a temporary file: %w", err)
	}
	_ = os.Remove(file.Name()) // so that a crash leaves nothing; Windows refuses, and Close does it
	return &File{files: f, file: file, granted: size}, nil
}

// grant grants n bytes on a disk with free bytes, or -1 without that check.
func (f *Files) grant(n, free int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case n > f.limit-f.granted:
		return ErrLimit
	case free >= 0 && n > (free-f.pending)/2:
		return ErrFull
	}
	f.granted += n
	f.pending += n
	return nil
}

// release takes back granted bytes, of which some are pending.
func (f *Files) release(granted, pending int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.granted -= granted
	f.pending -= pending
}

// File is a temporary file. Its methods may be called concurrently, but Write by one goroutine
// only.
type File struct {
	files *Files
	file  *os.File

	mu      sync.Mutex
	granted int64 // +checklocks:mu
	written int64 // +checklocks:mu
	closed  bool  // +checklocks:mu
}

// Write appends p. It returns ErrLimit, ErrFull, or os.ErrClosed after Close.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, os.ErrClosed
	}
	if more := f.written + int64(len(p)) - f.granted; more > 0 {
		if err := f.files.grant(more, -1); err != nil {
			return 0, err
		}
		f.granted += more
	}
	n, err := f.file.Write(p)
	f.written += int64(n)
	f.files.release(0, int64(n))
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	return n, err
}

// ReadAt reads the bytes at an offset.
func (f *File) ReadAt(p []byte, at int64) (int, error) { return f.file.ReadAt(p, at) }

// Size returns the number of bytes that were written.
func (f *File) Size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.written
}

// Close removes the file. A second Close does nothing.
func (f *File) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.closed = true
	_ = f.file.Close() // its bytes are not needed any more
	_ = os.Remove(f.file.Name())
	f.files.release(f.granted, f.granted-f.written)
}
