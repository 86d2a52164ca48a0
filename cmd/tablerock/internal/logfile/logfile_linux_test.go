package logfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// makePipe makes a named pipe and returns its name.
func makePipe(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestReopenPipe opens a pipe again whose reader has ended. It must not wait for another one.
func TestReopenPipe(t *testing.T) {
	name := makePipe(t)
	reader, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(t.Context(), "--debug", name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reader.Close()
	reopened := make(chan error, 1)
	go func() { reopened <- f.Reopen() }()
	select {
	case err := <-reopened:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("Reopen waits for a reader")
	}
}

// TestReopenReplaced opens a log file again in whose place is a pipe without a reader, or a directory.
// It must not wait, and the file that was open stays.
func TestReopenReplaced(t *testing.T) {
	for kind, replace := range map[string]func(name string) error{
		"a pipe":      func(name string) error { return syscall.Mkfifo(name, 0o600) },
		"a directory": func(name string) error { return os.Mkdir(name, 0o700) },
	} {
		t.Run(kind, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "log")
			f, err := Open(t.Context(), "--debug", name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			renamed := name + ".1"
			if err := errors.Join(os.Rename(name, renamed), replace(name)); err != nil {
				t.Fatal(err)
			}
			reopened := make(chan error, 1)
			go func() { reopened <- f.Reopen() }()
			select {
			case err := <-reopened:
				if err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("Reopen: %v, want an error that names %s", err, name)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("Reopen waits for a reader")
			}
			if _, err := f.Write([]byte("line")); err != nil {
				t.Errorf("Write: %v", err)
			}
			if text, err := os.ReadFile(renamed); string(text) != "line" {
				t.Errorf("the file that was open has %q, error %v", text, err)
			}
		})
	}
}

// TestFullPipe writes to a pipe that nobody reads: a write waits for a time, and the next ones do
// not wait as long. What is written after a read arrives.
func TestFullPipe(t *testing.T) {
	name := makePipe(t)
	reader, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	f, err := Open(t.Context(), "--debug", name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	written := make(chan error, 1)
	go func() {
		var err error
		for range 100 { // more than a pipe has room for
			_, err = f.Write(make([]byte, 4096))
		}
		written <- err
	}()
	select {
	case err := <-written:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Write waits for the reader")
	}
	if _, err := reader.Read(make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	for range 1000 { // on a busy machine the short time of a write can end before it begins
		if _, err = f.Write([]byte("line")); err == nil {
			break
		}
	}
	if err != nil {
		t.Errorf("Write after a read: %v", err)
	}
}

// TestOpenPipe ends a call of Open that waits for the reader of a pipe.
func TestOpenPipe(t *testing.T) {
	before := goleak.IgnoreCurrent()
	name := makePipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := Open(ctx, "--debug", name)
		failed <- err
	}()
	select {
	case err := <-failed:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Open: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("Open waits for a reader")
	}
	// What opens the pipe has to end before the directory is removed: it creates the file there.
	reader, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	for goleak.Find(before) != nil {
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
}
