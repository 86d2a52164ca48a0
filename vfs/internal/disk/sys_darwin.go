package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// syncFile flushes the cache of the drive, which fsync does not do on macOS. File systems without
// that call, such as SMB, get an fsync.
func syncFile(fd uintptr) error {
	return retry(func() error {
		_, err := unix.FcntlInt(fd, unix.F_FULLFSYNC, 0)
		if errors.Is(err, unix.ENOTSUP) {
			err = unix.Fsync(int(fd))
		}
		return err
	})
}

// syncDirFD is syncFile: names need the same flush.
func syncDirFD(fd uintptr) error { return syncFile(fd) }

func blockBytes(st *unix.Statfs_t) int64 { return int64(st.Bsize) }

func allocate(uintptr, int64, int64) error { return errors.ErrUnsupported }

func nextData(uintptr, int64) (from, to int64, err error) { return 0, 0, errors.ErrUnsupported }

func advise(uintptr, bool) error { return errors.ErrUnsupported }
