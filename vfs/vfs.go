package vfs

import (
	"io"

	"github.com/tablerock-db/tablerock/vfs/internal/disk"
)

// ErrNotRegular reports that the name passed to Open, OpenReadWrite or Lock is a
// symbolic link, a directory, a FIFO, a socket or a device.
var ErrNotRegular = disk.ErrNotRegular

// FS is a file system. Its methods may be called concurrently.
type FS interface {
	// Create creates a file that must not exist and opens it for reading and
	// writing. The name is durable after SyncDir of its directory.
	Create(name string) (File, error)
	// Open opens an existing regular file for reading. If the name is anything
	// else, the error is ErrNotRegular.
	Open(name string) (File, error)
	// OpenReadWrite opens an existing regular file for reading and writing.
	OpenReadWrite(name string) (File, error)
	// Rename renames a file and replaces a file of the new name. Close both before: Windows
	// renames and replaces no open file.
	Rename(oldname, newname string) error
	// Link adds a name to an existing file. The new name must not exist.
	Link(oldname, newname string) error
	// Remove deletes a file or an empty directory.
	Remove(name string) error
	// List returns the sorted names in a directory.
	List(dir string) ([]string, error)
	// Stat describes a file or directory. It does not follow a symbolic link in
	// the last element.
	Stat(name string) (Info, error)
	// MkdirAll creates a directory and its parents if they do not exist. Each new
	// one is durable after SyncDir of its parent.
	MkdirAll(dir string) error
	// SyncDir makes creations, renames and removals in a directory durable.
	SyncDir(dir string) error
	// Lock locks a file, which it creates if it does not exist, or fails at once
	// with a LockedError. Close of the result releases the lock; the file stays.
	Lock(name string) (io.Closer, error)
	// Locked reports whether the file is locked, and the holder. It does not lock
	// and does not write. A file that does not exist is not locked. During the
	// call, Lock of another process can fail.
	Locked(name string) (holder string, held bool, err error)
	// Space describes the volume that contains a directory. The error is
	// errors.ErrUnsupported if the volume has no limit or it is not known.
	Space(dir string) (Space, error)
}

// File is an open file. ReadAt may be called concurrently with all methods. Do not call
// the others concurrently with each other.
type File interface {
	// ReadAt implements io.ReaderAt: a short read returns an error.
	ReadAt(p []byte, off int64) (int, error)
	// WriteAt writes all of p or returns an error. It may grow the file.
	WriteAt(p []byte, off int64) (int, error)
	// Sync makes contents and size durable. After an error the unsynced contents
	// are undefined, and a later Sync proves nothing. Windows syncs only files that are open for
	// writing.
	Sync() error
	// Preallocate reserves space for n bytes at off. It does not change existing
	// bytes and grows the file with zeros to off+n at least.
	Preallocate(off, n int64) error
	// Size returns the current size.
	Size() (int64, error)
	// Close closes the file. A second Close returns nil.
	Close() error
}

// DataSeeker is an optional interface of a File that knows which of its parts were never
// written, such as the space that Preallocate reserved.
type DataSeeker interface {
	// NextData returns the first part [from, to) of the file at or after off that may have
	// other bytes than zeros. If there is none, both are the size of the file.
	NextData(off int64) (from, to int64, err error)
}

// NextData is that of f. If f is no DataSeeker, it returns everything behind off.
func NextData(f File, off int64) (from, to int64, err error) {
	if s, ok := f.(DataSeeker); ok {
		return s.NextData(off)
	}
	size, err := f.Size()
	return min(off, size), size, err
}

// Info describes a file.
type Info struct {
	Size    int64 // in bytes
	Dir     bool  // a directory
	Regular bool  // a regular file, which Open accepts
}

// Space describes a volume.
type Space struct {
	Total int64 // size in bytes
	Free  int64 // bytes that files of this user can still allocate
}

// LockedError reports that a lock has another holder.
type LockedError struct {
	Name   string // the lock file
	Holder string // description that the holder wrote, such as "pid 12 on host h"
}

// Error returns the name of the lock and its holder.
func (e *LockedError) Error() string { return e.Name + " is locked by " + e.Holder }
