//go:build linux || darwin

package vfs_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tablerock-db/tablerock/vfs"
)

func TestOSNotRegular(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real")
	if err := os.WriteFile(real, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	made := map[string]func(name string) error{
		"link":     func(name string) error { return os.Symlink(real, name) },
		"dangling": func(name string) error { return os.Symlink(filepath.Join(dir, "nothing"), name) },
		"fifo":     func(name string) error { return unix.Mkfifo(name, 0o600) },
		"dir":      func(name string) error { return os.Mkdir(name, 0o700) },
	}
	fsys := vfs.OS()
	for kind, mk := range made {
		t.Run(kind, func(t *testing.T) {
			name := filepath.Join(dir, kind)
			if err := mk(name); err != nil {
				t.Fatal(err)
			}
			if _, err := fsys.Open(name); !errors.Is(err, vfs.ErrNotRegular) {
				t.Errorf("Open: got %v, want %v", err, vfs.ErrNotRegular)
			}
			if _, err := fsys.OpenReadWrite(name); !errors.Is(err, vfs.ErrNotRegular) {
				t.Errorf("OpenReadWrite: got %v, want %v", err, vfs.ErrNotRegular)
			}
			if _, err := fsys.Lock(name); !errors.Is(err, vfs.ErrNotRegular) {
				t.Errorf("Lock: got %v, want %v", err, vfs.ErrNotRegular)
			}
			if _, err := fsys.Create(name); !errors.Is(err, os.ErrExist) {
				t.Errorf("Create: got %v, want %v", err, os.ErrExist)
			}
			if kind != "dir" {
				if _, err := fsys.List(name); err == nil {
					t.Error("List: got nil")
				}
				if info, err := fsys.Stat(name); err != nil || info.Regular || info.Dir {
					t.Errorf("Stat: got %+v, %v; want neither a file nor a directory", info, err)
				}
			}
		})
	}
	t.Run("device", func(t *testing.T) {
		if _, err := fsys.Open(os.DevNull); !errors.Is(err, vfs.ErrNotRegular) {
			t.Errorf("Open: got %v, want %v", err, vfs.ErrNotRegular)
		}
	})
}

func TestOSModes(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	dir := filepath.Join(t.TempDir(), "d", "e")
	fsys := vfs.OS()
	if err := fsys.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	f, err := fsys.Create(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lock, err := fsys.Lock(filepath.Join(dir, "LOCK"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for name, want := range map[string]os.FileMode{
		dir: 0o700, filepath.Dir(dir): 0o700, filepath.Join(dir, "f"): 0o600, filepath.Join(dir, "LOCK"): 0o600,
	} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
}

// TestOSLockProcess locks against another process, in both directions.
func TestOSLockProcess(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	if err := os.WriteFile(name, []byte(strings.Repeat("older and longer holder\n", 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	lock, err := vfs.OS().Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	self := "pid " + strconv.Itoa(os.Getpid()) + " on host " + host
	if got, err := os.ReadFile(name); err != nil || string(got) != self+"\n" {
		t.Errorf("lock file holds %q, %v; want %q", got, err, self+"\n")
	}

	child, said := startLocker(t, name)
	if want := name + " is locked by " + self; said != want {
		t.Errorf("another process says %q, want %q", said, want)
	}
	child.stop(t)
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}

	child, said = startLocker(t, name)
	if said != "locked" {
		t.Fatalf("another process says %q of a free lock", said)
	}
	holder, held, err := vfs.OS().Locked(name)
	if err != nil || !held || !strings.HasPrefix(holder, "pid "+strconv.Itoa(child.cmd.Process.Pid)+" ") {
		t.Errorf("Locked is %q, %v, %v; want the other process", holder, held, err)
	}
	_, err = vfs.OS().Lock(name)
	want := name + " is locked by pid " + strconv.Itoa(child.cmd.Process.Pid) + " on host " + host
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	child.stop(t)
	lock, err = vfs.OS().Lock(name)
	if err != nil {
		t.Fatalf("lock after the holder ended: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

func TestOSLockHolderIsQuoted(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	child, _ := startLocker(t, name)
	defer child.stop(t)
	if err := os.WriteFile(name, []byte("pid 1\x1b[2J\x00\xff"+strings.Repeat("x", 9000)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := vfs.OS().Lock(name)
	var locked *vfs.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("got %v, want a LockedError", err)
	}
	if want := `"pid 1\x1b[2J\x00\xff`; !strings.HasPrefix(locked.Holder, want) || len(locked.Holder) > 200 {
		t.Errorf("holder is %q, want it short and to begin with %q", locked.Holder, want)
	}
}

type locker struct {
	cmd *exec.Cmd
	in  interface{ Close() error }
}

// startLocker runs this test binary as a process that locks a file, and returns its
// output.
func startLocker(t *testing.T, name string) (locker, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lockChild+"="+name)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return locker{cmd, in}, strings.TrimSpace(said)
}

func (l locker) stop(t *testing.T) {
	t.Helper()
	_ = l.in.Close()
	if err := l.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestOSLockNotInherited(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	lock, err := vfs.OS().Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	// A child process that outlives the lock must not keep it.
	sleeper := exec.Command(os.Args[0])
	sleeper.Env = append(os.Environ(), lockChild+"="+filepath.Join(filepath.Dir(name), "other"))
	in, err := sleeper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := vfs.OS().Lock(name)
	if err != nil {
		t.Errorf("lock while a child process of the former holder runs: %v", err)
	} else if err := again.Close(); err != nil {
		t.Error(err)
	}
	_ = in.Close()
	_ = sleeper.Wait()
}
