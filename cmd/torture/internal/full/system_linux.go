package full

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// CheckSystem returns ErrCannotMount if this process lacks what a mount needs.
func CheckSystem() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: only root can mount", ErrCannotMount)
	}
	for _, name := range []string{"mkfs.ext4", "mount", "umount"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%w: %w", ErrCannotMount, err)
		}
	}
	return nil
}

// available returns the bytes that a file system has left.
func available(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// allocated returns the bytes that a file takes on its file system.
func allocated(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }

// ownGroup starts cmd in its own process group, so that Ctrl-C does not reach it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
