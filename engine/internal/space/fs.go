package space

import (
	"path"

	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/vfs"
)

// FS returns the file system of the database. When the disk has no space to create or
// write a manifest, a segment or an sstable, it releases files of the reserve and tries
// again. Preallocation does not use the reserve, because it asks for more than is needed.
func (r *Reserve) FS() vfs.FS {
	if r.file == 0 {
		return r.fs
	}
	return reserveFS{FS: r.fs, r: r}
}

// reserveFS is the file system with the reserve.
type reserveFS struct {
	vfs.FS
	r *Reserve
}

// leaves returns how many files of the reserve the writes of a file leave, and false if
// the file must not use the reserve.
func (r *Reserve) leaves(name string) (n int, ok bool) {
	if path.Dir(path.Clean(name)) != path.Clean(r.dir) {
		return 0, false
	}
	base := path.Base(name)
	if base == filename.ManifestTemp {
		return 0, true
	}
	switch kind, _ := filename.Parse(base); kind {
	case filename.WAL:
		return 0, true
	case filename.SSTable:
		return files * outputsLeave / levels, true
	default:
		return 0, false
	}
}

// Create implements vfs.FS.
func (f reserveFS) Create(name string) (vfs.File, error) { return f.open(name, f.FS.Create) }

// OpenReadWrite implements vfs.FS.
func (f reserveFS) OpenReadWrite(name string) (vfs.File, error) {
	return f.open(name, f.FS.OpenReadWrite)
}

func (f reserveFS) open(name string, open func(string) (vfs.File, error)) (vfs.File, error) {
	leave, ok := f.r.leaves(name)
	if !ok {
		return open(name)
	}
	under, err := open(name)
	for NoSpace(err) && f.r.release(1, leave) {
		under, err = open(name)
	}
	if err != nil {
		return nil, err
	}
	return &file{File: under, r: f.r, leave: leave}, nil
}

// Rename implements vfs.FS.
func (f reserveFS) Rename(oldname, newname string) error {
	err := f.FS.Rename(oldname, newname)
	for NoSpace(err) && f.r.release(1, 0) {
		err = f.FS.Rename(oldname, newname)
	}
	return err
}

// file is a file whose writes may use the reserve.
type file struct {
	vfs.File
	r     *Reserve
	leave int
}

// NextData implements vfs.DataSeeker.
func (f *file) NextData(off int64) (from, to int64, err error) { return vfs.NextData(f.File, off) }

// WriteAt implements vfs.File.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	for NoSpace(err) && f.r.release(int64(len(p)-n), f.leave) {
		var more int
		more, err = f.File.WriteAt(p[n:], off+int64(n))
		n += more
	}
	return n, err
}
