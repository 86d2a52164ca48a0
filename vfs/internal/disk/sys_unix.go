//go:build linux || darwin

package disk

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openFlags make an open fail for a symbolic link and not wait for the other end of a
// FIFO. Package os adds O_CLOEXEC.
const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

func isLinkError(err error) bool { return errors.Is(err, unix.ELOOP) }

// openDir opens a directory. It fails for other files and does not block on a FIFO.
func openDir(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := openDir(dir)
	if err != nil {
		return err
	}
	f := &File{File: d}
	return errors.Join(f.control("sync", syncDirFD), f.Close())
}

func tryLock(fd uintptr) (busy bool, err error) { return flock(fd, unix.LOCK_EX) }

func tryShare(fd uintptr) (busy bool, err error) { return flock(fd, unix.LOCK_SH) }

func flock(fd uintptr, how int) (busy bool, err error) {
	err = retry(func() error { return unix.Flock(int(fd), how|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

func identify(name string) (fileID, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Lstat(name, &st) }); err != nil {
		return fileID{}, &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	return fileID{dev: uint64(st.Dev), ino: st.Ino}, nil
}

// identifyFD returns the id and the number of links of an open file.
func identifyFD(fd uintptr) (id fileID, names uint64, err error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(int(fd), &st) }); err != nil {
		return fileID{}, 0, err
	}
	return fileID{dev: uint64(st.Dev), ino: st.Ino}, uint64(st.Nlink), nil
}

// Space returns the size of the volume of a directory and its free bytes.
func Space(dir string) (total, free int64, err error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Statfs(dir, &st) }); err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if st.Blocks == 0 {
		return 0, 0, &fs.PathError{Op: "statfs", Path: dir, Err: errors.ErrUnsupported}
	}
	block := blockBytes(&st)
	return int64(st.Blocks) * block, int64(st.Bavail) * block, nil
}

// retry repeats a call while a signal interrupts it.
func retry(call func() error) error {
	for {
		err := call()
		if err != unix.EINTR {
			return err
		}
	}
}
