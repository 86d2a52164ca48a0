package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSilentPipes interrupts commands that read or write a named pipe whose other end no program
// has opened.
func TestSilentPipes(t *testing.T) {
	dir := t.TempDir()
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"table", "create", "Rows", "--data", dir}, nil, &stderr, &stderr); code != exitOK {
		t.Fatalf("exit code %d, %s", code, &stderr)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, command := range []string{"import Rows", "import Rows - --ack", "export Rows"} {
		t.Run(command, func(t *testing.T) {
			pipe := filepath.Join(t.TempDir(), "pipe.csv")
			args := append(strings.Fields(command), pipe, "--data", dir)
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			done := make(chan int, 1)
			go func() { done <- run(ctx, args, strings.NewReader(""), &stdout, &stderr) }()
			select {
			case code := <-done:
				if code != exitInterrupted {
					t.Errorf("exit code %d, %s; want %d", code, &stderr, exitInterrupted)
				}
			case <-time.After(time.Minute):
				t.Error("the command does not end")
			}
			other, err := os.OpenFile(pipe, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			_ = other.Close()
		})
	}
}
