package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	dirMode  = 0o700
	fileMode = 0o600
)

// OS returns the operating system's file system. Relative names are relative
// to the working directory.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) Create(name string) (File, error) {
	f, err := os.OpenFile(filepath.FromSlash(name), os.O_RDWR|os.O_CREATE|os.O_EXCL|openFlags, fileMode)
	if err != nil {
		return nil, err
	}
	return newOSFile(f), nil
}

func (osFS) Open(name string) (File, error) {
	return openOSFile(name, os.O_RDONLY)
}

func (osFS) OpenReadWrite(name string) (File, error) {
	return openOSFile(name, os.O_RDWR)
}

func openOSFile(name string, flag int) (File, error) {
	f, err := openRegular(name, flag)
	if err != nil {
		return nil, err
	}
	return newOSFile(f), nil
}

// openRegular opens what is a regular file before and after the open. The
// first look keeps it from opening a device, which can act on being opened;
// the second one judges what was really opened. With os.O_CREATE a missing
// file is made.
func openRegular(name string, flag int) (*os.File, error) {
	name = filepath.FromSlash(name)
	refuse := func() error { return &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular} }
	info, err := os.Lstat(name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, refuse()
	case err != nil && !(flag&os.O_CREATE != 0 && errors.Is(err, fs.ErrNotExist)):
		return nil, err
	}
	f, err := os.OpenFile(name, flag|openFlags, fileMode)
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
	return f, nil
}

func (osFS) Rename(oldname, newname string) error {
	return os.Rename(filepath.FromSlash(oldname), filepath.FromSlash(newname))
}

func (osFS) Link(oldname, newname string) error {
	return os.Link(filepath.FromSlash(oldname), filepath.FromSlash(newname))
}

func (osFS) Remove(name string) error { return os.Remove(filepath.FromSlash(name)) }

func (osFS) List(dir string) ([]string, error) {
	d, err := openDir(filepath.FromSlash(dir))
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

func (osFS) Stat(name string) (Info, error) {
	info, err := os.Lstat(filepath.FromSlash(name))
	if err != nil {
		return Info{}, err
	}
	return Info{Size: info.Size(), Dir: info.IsDir(), Regular: info.Mode().IsRegular()}, nil
}

func (osFS) MkdirAll(dir string) error { return os.MkdirAll(filepath.FromSlash(dir), dirMode) }

func (osFS) SyncDir(dir string) error { return syncDir(filepath.FromSlash(dir)) }

func (osFS) FreeSpace(dir string) (uint64, error) { return freeSpace(filepath.FromSlash(dir)) }

// osFile keeps the system calls that package os lacks beside the os.File,
// which retries on EINTR, completes short writes, and lets Close race with
// other calls.
type osFile struct {
	*os.File
	closed atomic.Bool
}

func newOSFile(f *os.File) *osFile { return &osFile{File: f} }

func (f *osFile) Sync() error {
	return f.control("sync", syncFile)
}

func (f *osFile) Preallocate(off, n int64) error {
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

// fillZeros grows the file to end by writing, which reserves the space where
// no system call does. It leaves bytes that exist alone.
func (f *osFile) fillZeros(end int64) error {
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

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *osFile) Close() error {
	if f.closed.Swap(true) {
		return nil
	}
	return f.File.Close()
}

// control runs a system call on the descriptor while Close waits.
func (f *osFile) control(op string, call func(fd uintptr) error) error {
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

// fileID names a file whatever path leads to it.
type fileID struct{ dev, ino uint64 }

// held lists the lock files that this process holds. The system's locks belong
// to a process on some file systems, where a second lock of the same process
// would be granted and its release would release both.
var held = struct {
	mu sync.Mutex
	// +checklocks:mu
	ids map[fileID]struct{}
}{ids: map[fileID]struct{}{}}

func (osFS) Lock(name string) (io.Closer, error) {
	held.mu.Lock()
	defer held.mu.Unlock()

	// The check comes before the open: where locks belong to a process,
	// closing any descriptor of the file releases them.
	if info, err := os.Lstat(filepath.FromSlash(name)); err == nil && info.Mode().IsRegular() {
		id, err := identify(filepath.FromSlash(name))
		if err != nil {
			return nil, err
		}
		if _, ok := held.ids[id]; ok {
			return nil, &LockedError{Name: name, Holder: self() + ", this process"}
		}
	}
	f, err := openRegular(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	l := &osLock{f: newOSFile(f)}
	busy, err := l.take()
	if busy {
		err = &LockedError{Name: name, Holder: readHolder(f)}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	held.ids[l.id] = struct{}{}
	l.writeHolder()
	return l, nil
}

type osLock struct {
	f  *osFile
	id fileID
}

// take locks the file or reports that it is busy.
func (l *osLock) take() (busy bool, err error) {
	err = l.f.control("lock", func(fd uintptr) (err error) {
		if busy, err = tryLock(fd); err != nil || busy {
			return err
		}
		l.id, err = identifyFD(fd)
		return err
	})
	return busy, err
}

// writeHolder leaves a word for whoever finds the lock taken. The lock holds
// without it, and on a full disk a database must open to make room, so
// failing to write is no error. Overwriting first needs no new block.
func (l *osLock) writeHolder() {
	text := self() + "\n"
	if _, err := l.f.WriteAt([]byte(text), 0); err == nil {
		_ = l.f.Truncate(int64(len(text)))
	}
}

// Close releases the lock with the descriptor that holds it.
func (l *osLock) Close() error {
	held.mu.Lock()
	defer held.mu.Unlock()
	if l.f.closed.Load() {
		return nil
	}
	delete(held.ids, l.id)
	return l.f.Close()
}

func self() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return "pid " + strconv.Itoa(os.Getpid()) + " on host " + host
}

// readHolder returns what the lock file says, made safe to print: the file may
// hold anything.
func readHolder(f io.ReaderAt) string {
	b := make([]byte, 128)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return "another process"
	}
	text, _, _ := strings.Cut(string(b[:n]), "\n")
	if text == "" {
		return "another process"
	}
	if quoted := strconv.Quote(text); quoted != `"`+text+`"` {
		return quoted
	}
	return text
}
