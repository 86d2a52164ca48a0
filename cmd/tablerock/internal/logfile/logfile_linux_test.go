package logfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestReopenPipe opens a pipe again whose reader has ended. It must not wait for another one.
func TestReopenPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open("--debug", name)
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
	case <-time.After(10 * time.Second):
		t.Error("Reopen waits for a reader")
	}
}
