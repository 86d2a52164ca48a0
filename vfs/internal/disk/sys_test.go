//go:build linux || darwin

package disk

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRetry(t *testing.T) {
	calls := 0
	err := retry(func() error {
		calls++
		if calls < 4 {
			return unix.EINTR
		}
		return unix.EIO
	})
	if calls != 4 || err != unix.EIO {
		t.Errorf("%d calls and %v, want 4 and EIO", calls, err)
	}
}

func TestDescriptorsCloseOnExec(t *testing.T) {
	f, err := Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lock, holder, err := TakeLock(f.Name())
	if err != nil || lock == nil {
		t.Fatalf("lock: %q, %v", holder, err)
	}
	defer lock.Close()
	for _, open := range []*File{f, lock.f} {
		err := open.control("fcntl", func(fd uintptr) error {
			flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0)
			if err == nil && flags&unix.FD_CLOEXEC == 0 {
				return errors.New("a child would inherit it")
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
