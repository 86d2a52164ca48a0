package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestImportOfSilentPipe interrupts an import from a named pipe that no program has opened to
// write.
func TestImportOfSilentPipe(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "rows.csv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var stdout, stderr bytes.Buffer
	done := make(chan int, 1)
	go func() { done <- run(ctx, []string{"import", "Rows", pipe, "--data", dir}, nil, &stdout, &stderr) }()
	select {
	case code := <-done:
		if code != exitInterrupted {
			t.Errorf("exit code %d, %s; want %d", code, &stderr, exitInterrupted)
		}
	case <-time.After(time.Minute):
		t.Error("the import does not end")
	}
	w, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
}
