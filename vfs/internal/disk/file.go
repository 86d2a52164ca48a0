// Package disk implements files, directories and locks of the operating system with
// system calls that package os lacks.
package disk

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
)

// Modes of new directories and files: access for the owner only.
const (
	DirMode  = 0o700
	FileMode = 0o600
)

// ErrNotRegular reports that a name to open is not a regular file.
var ErrNotRegular = errors.New("not a regular file")

// Create creates a file that must not exist.
func Create(name string) (*File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|openFlags, FileMode)
	if err != nil {
		return nil, err
	}
	return &File{File: f}, nil
}

// Open opens a regular file. It checks the type before the open, because opening a
// device can have effects, and again on the opened file, because the name may have
// changed. With os.O_CREATE it creates a file that does not exist.
func Open(name string, flag int) (*File, error) {
	refuse := func() error { return &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular} }
	info, err := os.Lstat(name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, refuse()
	case err != nil && !(flag&os.O_CREATE != 0 && errors.Is(err, fs.ErrNotExist)):
		return nil, err
	}
	f, err := os.OpenFile(name, flag|openFlags, FileMode)
	if err != nil {
		if isLinkError(err) {
			return nil, refuse()
		}
		return nil, err
	}
	info, err = f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = refuse()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	file := &File{File: f}
	if flag == os.O_RDONLY {
		file.reader = newReader(file)
	}
	return file, nil
}

// List returns the sorted names in a directory.
func List(dir string) ([]string, error) {
	d, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	if err := errors.Join(err, d.Close()); err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// File adds system calls to os.File, which itself retries on EINTR, completes short
// writes, and allows Close concurrently with other calls.
type File struct {
	*os.File
	closed atomic.Bool
	reader *reader // nil unless the file is open for reading only
}

// Sync makes contents and size durable.
func (f *File) Sync() error {
	return f.control("sync", syncFile)
}

// Preallocate reserves n bytes at off and grows the file to off+n at least.
func (f *File) Preallocate(off, n int64) error {
	if off < 0 || n < 0 || off+n < off {
		return &fs.PathError{Op: "preallocate", Path: f.Name(), Err: fs.ErrInvalid}
	}
	if n == 0 {
		return nil
	}
	err := f.control("preallocate", func(fd uintptr) error { return allocate(fd, off, n) })
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return f.fillZeros(off + n)
}

// fillZeros grows the file to end by writing zeros, which reserves space on systems
// without a system call for it. It does not change existing bytes.
func (f *File) fillZeros(end int64) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	zeros := make([]byte, 64<<10)
	for size < end {
		n, err := f.WriteAt(zeros[:min(int64(len(zeros)), end-size)], size)
		if err != nil {
			return err
		}
		size += int64(n)
	}
	return nil
}

// NextData implements vfs.DataSeeker. It moves the offset of the descriptor, which no other
// method uses.
func (f *File) NextData(off int64) (from, to int64, err error) {
	size, err := f.Size()
	if err != nil || off >= size {
		return size, size, err
	}
	err = f.control("seek", func(fd uintptr) (err error) {
		from, to, err = nextData(fd, off)
		return err
	})
	switch {
	case errors.Is(err, errNoData):
		return size, size, nil
	case errors.Is(err, errors.ErrUnsupported):
		return off, size, nil
	}
	return from, to, err
}

// errNoData says that nothing was written behind an offset.
var errNoData = errors.New("no data")

// Size returns the size.
func (f *File) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Close closes the file. A second call returns nil.
func (f *File) Close() error {
	if f.closed.Swap(true) {
		return nil
	}
	return f.File.Close()
}

// control runs a system call on the descriptor. Close waits for it.
func (f *File) control(op string, call func(fd uintptr) error) error {
	var callErr error
	conn, err := f.SyscallConn()
	if err == nil {
		err = conn.Control(func(fd uintptr) { callErr = call(fd) })
	}
	if f.closed.Load() {
		err = errors.Join(fs.ErrClosed, err)
	}
	if err == nil {
		err = callErr
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: f.Name(), Err: err}
	}
	return nil
}
