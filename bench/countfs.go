package bench

import (
	"sync/atomic"

	"github.com/tablerock-db/tablerock/vfs"
)

// countFS counts the syncs of a file system.
type countFS struct {
	vfs.FS
	syncs *atomic.Int64
}

func (c countFS) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return countFile{f, c.syncs}, nil
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
	c.syncs.Add(1)
	return c.FS.SyncDir(dir)
}

type countFile struct {
	vfs.File
	syncs *atomic.Int64
}

// Sync implements vfs.File.
func (c countFile) Sync() error {
	c.syncs.Add(1)
	return c.File.Sync()
}
