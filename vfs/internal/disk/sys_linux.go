package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// syncFile uses fdatasync, which writes a changed size but not the times.
func syncFile(fd uintptr) error {
	return retry(func() error { return unix.Fdatasync(int(fd)) })
}

func syncDirFD(fd uintptr) error {
	return retry(func() error { return unix.Fsync(int(fd)) })
}

// blockBytes returns the unit of the numbers of blocks. Bsize is the size of a good
// transfer, on FUSE and virtiofs often 1 MiB, and the unit only if Frsize is not set.
func blockBytes(st *unix.Statfs_t) int64 {
	if st.Frsize > 0 {
		return int64(st.Frsize)
	}
	return int64(st.Bsize)
}

// nextData returns the first data at or after off, which is before the end, or errNoData.
// Any other error means that the file system cannot tell.
func nextData(fd uintptr, off int64) (from, to int64, err error) {
	if from, err = unix.Seek(int(fd), off, unix.SEEK_DATA); err == nil {
		to, err = unix.Seek(int(fd), from, unix.SEEK_HOLE)
	}
	switch err {
	case nil:
		return from, to, nil
	case unix.ENXIO:
		return 0, 0, errNoData
	}
	return 0, 0, errors.ErrUnsupported
}

// advise says whether the next reads will be in order, so that it helps to read ahead.
func advise(fd uintptr, inOrder bool) error {
	advice := unix.FADV_RANDOM
	if inOrder {
		advice = unix.FADV_NORMAL
	}
	return unix.Fadvise(int(fd), 0, 0, advice)
}

// allocateStep limits one fallocate: on tmpfs an interrupted call undoes its work and
// restarts, so a long one may never end.
const allocateStep = 8 << 20

func allocate(fd uintptr, off, n int64) error {
	for n > 0 {
		step := min(n, allocateStep)
		err := retry(func() error { return unix.Fallocate(int(fd), 0, off, step) })
		if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
			return errors.ErrUnsupported
		}
		if err != nil {
			return err
		}
		off, n = off+step, n-step
	}
	return nil
}
