package disk

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// syncFile asks the drive to flush its cache, which fsync does not do here.
func syncFile(fd uintptr) error {
	return retry(func() error {
		_, err := unix.FcntlInt(fd, unix.F_FULLFSYNC, 0)
		return err
	})
}

// syncDirFD is syncFile: a directory's names need the same flush.
func syncDirFD(fd uintptr) error { return syncFile(fd) }

func allocate(uintptr, int64, int64) error { return errors.ErrUnsupported }

// FreeSpace returns the bytes that can still be written below dir.
func FreeSpace(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Statfs(dir, &st) }); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return st.Bavail * uint64(st.Bsize), nil
}
