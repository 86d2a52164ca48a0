package wal

import "github.com/tablerock-db/tablerock/vfs"

// hookFS asks before each operation that can change something whether it fails.
type hookFS struct {
	vfs.FS
	before func(vfs.Op) error
}

func (h *hookFS) Create(name string) (vfs.File, error) {
	if err := h.before(vfs.Op{Kind: vfs.OpCreate, Name: name}); err != nil {
		return nil, err
	}
	f, err := h.FS.Create(name)
	return h.wrap(f, name), err
}

func (h *hookFS) OpenReadWrite(name string) (vfs.File, error) {
	f, err := h.FS.OpenReadWrite(name)
	return h.wrap(f, name), err
}

func (h *hookFS) Rename(oldname, newname string) error {
	if err := h.before(vfs.Op{Kind: vfs.OpRename, Name: oldname, NewName: newname}); err != nil {
		return err
	}
	return h.FS.Rename(oldname, newname)
}

func (h *hookFS) wrap(f vfs.File, name string) vfs.File {
	if f == nil {
		return nil
	}
	return &hookFile{File: f, fs: h, name: name}
}

type hookFile struct {
	vfs.File
	fs   *hookFS
	name string
}

func (f *hookFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.fs.before(vfs.Op{Kind: vfs.OpWrite, Name: f.name, Off: off, Len: int64(len(p))}); err != nil {
		n, _ := f.File.WriteAt(p[:len(p)/2], off)
		return n, err
	}
	return f.File.WriteAt(p, off)
}

func (f *hookFile) Sync() error {
	if err := f.fs.before(vfs.Op{Kind: vfs.OpSync, Name: f.name}); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *hookFile) Preallocate(off, n int64) error {
	if err := f.fs.before(vfs.Op{Kind: vfs.OpPreallocate, Name: f.name, Off: off, Len: n}); err != nil {
		return err
	}
	return f.File.Preallocate(off, n)
}
