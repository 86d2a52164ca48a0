//go:build linux || darwin

package disk

import (
	"errors"
	"os"
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

// TestHeldLocks releases the lock of the system, as happens if locks belong to a process:
// TakeLock and LockHolder must still report the lock.
func TestHeldLocks(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	lock, _, err := TakeLock(name)
	if err != nil || lock == nil {
		t.Fatal(err)
	}
	err = lock.f.control("unlock", func(fd uintptr) error { return unix.Flock(int(fd), unix.LOCK_UN) })
	if err != nil {
		t.Fatal(err)
	}
	if second, holder, err := TakeLock(name); second != nil || err != nil || holder == "" {
		t.Errorf("second lock: %v, %q, %v; want none and a holder", second, holder, err)
	}
	if holder, locked, err := LockHolder(name); !locked || err != nil || holder == "" {
		t.Errorf("holder %q, %v, %v; want one", holder, locked, err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

// TestOpenFlags opens without the first check of Open, as if the name changed after it.
func TestOpenFlags(t *testing.T) {
	dir := t.TempDir()
	fifo, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(fifo, link); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(fifo, os.O_RDONLY|openFlags, 0) // must not wait for a writer
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if f, err := os.OpenFile(link, os.O_RDONLY|openFlags, 0); !isLinkError(err) {
		t.Errorf("a link opens: %v, %v", f, err)
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
				return errors.New("a child process would inherit it")
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
