package disk

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// openFlags is empty: Open checks the type before and after the open, and Windows has no
// FIFOs in directories.
const openFlags = 0

func isLinkError(error) bool { return false }

func openDir(dir string) (*os.File, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: windows.ERROR_DIRECTORY}
	}
	return os.Open(dir)
}

// SyncDir checks that the directory exists. Windows cannot flush it.
func SyncDir(dir string) error {
	d, err := openDir(dir)
	if err != nil {
		return err
	}
	return d.Close()
}

// Space returns the size of the volume of a directory and its free bytes.
func Space(dir string) (total, free int64, err error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	var available, size uint64
	if err := windows.GetDiskFreeSpaceEx(name, &available, &size, nil); err != nil {
		return 0, 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(size), int64(available), nil
}

func syncFile(fd uintptr) error { return windows.FlushFileBuffers(windows.Handle(fd)) }

func allocate(uintptr, int64, int64) error { return errors.ErrUnsupported }

func nextData(uintptr, int64) (from, to int64, err error) { return 0, 0, errors.ErrUnsupported }

// tryLock locks one byte far beyond the end, because other processes cannot read locked
// bytes and must read the text of the file.
func tryLock(fd uintptr) (busy bool, err error) {
	return lockFile(fd, windows.LOCKFILE_EXCLUSIVE_LOCK)
}

func tryShare(fd uintptr) (busy bool, err error) { return lockFile(fd, 0) }

func lockFile(fd uintptr, how uint32) (busy bool, err error) {
	at := windows.Overlapped{OffsetHigh: 1 << 30}
	err = windows.LockFileEx(windows.Handle(fd),
		how|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return true, nil
	}
	return false, err
}

func identify(name string) (fileID, error) {
	f, err := os.Open(name)
	if err != nil {
		return fileID{}, err
	}
	id, _, err := identifyFD(f.Fd())
	return id, errors.Join(err, f.Close())
}

// identifyFD returns the id and the number of links of an open file.
func identifyFD(fd uintptr) (id fileID, names uint64, err error) {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(fd), &info); err != nil {
		return fileID{}, 0, err
	}
	return fileID{
		dev: uint64(info.VolumeSerialNumber),
		ino: uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow),
	}, uint64(info.NumberOfLinks), nil
}

func advise(uintptr, bool) error { return errors.ErrUnsupported }
