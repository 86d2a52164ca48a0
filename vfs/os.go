package vfs

import (
	"io"
	"os"
	"path/filepath"

	"github.com/tablerock-db/tablerock/vfs/internal/disk"
)

// OS returns the file system of the operating system. Relative names are relative to
// the working directory.
func OS() FS { return osFS{} }

type osFS struct{}

// file returns a nil File, not a File with a nil *disk.File, on an error.
func file(f *disk.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osFS) Create(name string) (File, error) {
	return file(disk.Create(filepath.FromSlash(name)))
}

func (osFS) Open(name string) (File, error) {
	return file(disk.Open(filepath.FromSlash(name), os.O_RDONLY))
}

func (osFS) OpenReadWrite(name string) (File, error) {
	return file(disk.Open(filepath.FromSlash(name), os.O_RDWR))
}

func (osFS) Rename(oldname, newname string) error {
	return os.Rename(filepath.FromSlash(oldname), filepath.FromSlash(newname))
}

func (osFS) Link(oldname, newname string) error {
	return os.Link(filepath.FromSlash(oldname), filepath.FromSlash(newname))
}

func (osFS) Remove(name string) error { return os.Remove(filepath.FromSlash(name)) }

func (osFS) List(dir string) ([]string, error) { return disk.List(filepath.FromSlash(dir)) }

func (osFS) Stat(name string) (Info, error) {
	info, err := os.Lstat(filepath.FromSlash(name))
	if err != nil {
		return Info{}, err
	}
	return Info{Size: info.Size(), Dir: info.IsDir(), Regular: info.Mode().IsRegular()}, nil
}

func (osFS) MkdirAll(dir string) error {
	return os.MkdirAll(filepath.FromSlash(dir), disk.DirMode)
}

func (osFS) SyncDir(dir string) error { return disk.SyncDir(filepath.FromSlash(dir)) }

func (osFS) Space(dir string) (Space, error) {
	total, free, err := disk.Space(filepath.FromSlash(dir))
	return Space{Total: total, Free: free}, err
}

func (osFS) Locked(name string) (string, bool, error) {
	return disk.LockHolder(filepath.FromSlash(name))
}

func (osFS) Lock(name string) (io.Closer, error) {
	lock, holder, err := disk.TakeLock(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	if lock == nil {
		return nil, &LockedError{Name: name, Holder: holder}
	}
	return lock, nil
}
