package bench

import (
	"sync/atomic"

	"github.com/tablerock-db/tablerock/vfs"
)

// ioCounts are the counts of a countFS.
type ioCounts struct{ syncs, reads, readBytes atomic.Int64 }

// countFS counts the syncs and the reads of a file system.
type countFS struct {
	vfs.FS
	n *ioCounts
}

func (c countFS) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return countFile{f, c.n}, nil
}

// Create implements vfs.FS.
func (c countFS) Create(name string) (vfs.File, error) { return c.file(c.FS.Create(name)) }

// Open implements vfs.FS.
func (c countFS) Open(name string) (vfs.File, error) { return c.file(c.FS.Open(name)) }

// OpenReadWrite implements vfs.FS.
func (c countFS) OpenReadWrite(name string) (vfs.File, error) {
	return c.file(c.FS.OpenReadWrite(name))
}

// SyncDir implements vfs.FS.
func (c countFS) SyncDir(dir string) error {
	c.n.syncs.Add(1)
	return c.FS.SyncDir(dir)
}

type countFile struct {
	vfs.File
	n *ioCounts
}

// ReadAt implements vfs.File.
func (c countFile) ReadAt(p []byte, off int64) (int, error) {
	c.n.reads.Add(1)
	c.n.readBytes.Add(int64(len(p)))
	return c.File.ReadAt(p, off)
}

// NextData implements vfs.DataSeeker.
func (c countFile) NextData(off int64) (from, to int64, err error) { return vfs.NextData(c.File, off) }

// Sync implements vfs.File.
func (c countFile) Sync() error {
	c.n.syncs.Add(1)
	return c.File.Sync()
}
