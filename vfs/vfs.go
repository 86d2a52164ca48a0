package vfs

import (
	"io"

	"github.com/tablerock-db/tablerock/vfs/internal/disk"
)

// ErrNotRegular says that a name given to Open, OpenReadWrite or Lock is a
// symbolic link, a directory, a FIFO, a socket or a device.
var ErrNotRegular = disk.ErrNotRegular

// FS is a file system. All methods may be called concurrently.
type FS interface {
	// Create makes a file that must not exist and opens it for reading and
	// writing. The name is durable after SyncDir of its directory.
	Create(name string) (File, error)
	// Open opens an existing regular file for reading. Anything else of that
	// name is ErrNotRegular.
	Open(name string) (File, error)
	// OpenReadWrite opens an existing regular file for reading and writing.
	OpenReadWrite(name string) (File, error)
	// Rename moves a file, replacing any at newname.
	Rename(oldname, newname string) error
	// Link gives an existing file a second name, which must not exist.
	Link(oldname, newname string) error
	// Remove deletes a file or an empty directory.
	Remove(name string) error
	// List returns the names within a directory, sorted.
	List(dir string) ([]string, error)
	// Stat describes a file or directory without following a last symbolic link.
	Stat(name string) (Info, error)
	// MkdirAll makes a directory and its parents; existing ones are fine. Each
	// new one is durable after SyncDir of its parent.
	MkdirAll(dir string) error
	// SyncDir makes creations, renames and removals within a directory durable.
	SyncDir(dir string) error
	// Lock takes the lock file, making it if it is missing, or fails at once
	// with a LockedError. Closing the result releases the lock and leaves the
	// file.
	Lock(name string) (io.Closer, error)
	// Locked reports whether somebody holds the lock, and who, without taking
	// it and without writing. A missing lock file is held by nobody. While it
	// looks, a Lock of another process can fail.
	Locked(name string) (holder string, held bool, err error)
}

// File is an open file. ReadAt may be called concurrently with anything;
// writers do not overlap.
type File interface {
	// ReadAt reads as io.ReaderAt does: a short read comes with an error.
	ReadAt(p []byte, off int64) (int, error)
	// WriteAt writes all of p or returns an error; it may grow the file.
	WriteAt(p []byte, off int64) (int, error)
	// Sync makes contents and size durable. After an error the file's unsynced
	// contents are undefined and no later Sync means anything.
	Sync() error
	// Preallocate reserves space for n bytes at off without changing the size
	// that readers see of existing data; it may grow the file with zeros.
	Preallocate(off, n int64) error
	// Size returns the current size.
	Size() (int64, error)
	// Close releases the file. A second Close returns nil.
	Close() error
}

// Info describes a file.
type Info struct {
	Size    int64
	Dir     bool
	Regular bool
}

// LockedError says that another holder has the lock.
type LockedError struct {
	Name   string // the lock file
	Holder string // what the holder wrote of itself, such as "pid 12 on host h"
}

// Error names the lock and its holder.
func (e *LockedError) Error() string { return e.Name + " is locked by " + e.Holder }
