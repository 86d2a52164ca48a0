package full

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	readyTimeout = time.Minute
	stopTimeout  = time.Minute
)

// server is a process of the program that serves the database.
type server struct {
	*client
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed when the process has ended
	// ending is set before the process gets a signal, after which connections may break.
	ending atomic.Bool
}

// startServer starts the program on a data directory and waits until it is ready. Its log
// is a file in dir.
func startServer(ctx context.Context, program, data, segment, dir string) (*server, error) {
	ready := filepath.Join(dir, "ready.json")
	if err := os.Remove(ready); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	s := &server{log: filepath.Join(dir, "log"), ended: make(chan struct{})}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.cmd = exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--ready-file", ready, "--data", data, "--segment-size", segment)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	ownGroup(s.cmd)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait() // ProcessState has the result
		close(s.ended)
	}()
	if err := s.awaitReady(ctx, ready); err != nil {
		s.end(syscall.SIGKILL)
		return nil, fmt.Errorf("serve: %w: %s", err, s.tail())
	}
	return s, nil
}

// awaitReady waits for the ready file of the program.
func (s *server) awaitReady(ctx context.Context, file string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		var ready struct {
			Connection string `json:"connection_string"`
		}
		text, err := os.ReadFile(file)
		if err == nil {
			if err := json.Unmarshal(text, &ready); err != nil {
				return err
			}
			s.client, err = newClient(ready.Connection)
			return err
		}
		select {
		case <-s.ended:
			return fmt.Errorf("ended before it was ready, %s", s.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("is not ready: %w", ctx.Err())
		case <-look.C:
		}
	}
}

// end sends the process a signal, waits for its end and returns its exit code, -1 after a
// signal that killed it.
func (s *server) end(sig syscall.Signal) int {
	s.ending.Store(true)
	_ = s.cmd.Process.Signal(sig) // fails if the process has ended
	select {
	case <-s.ended:
	case <-time.After(stopTimeout):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	if s.client != nil {
		s.Close()
	}
	return s.cmd.ProcessState.ExitCode()
}

// tail returns the last line of the log.
func (s *server) tail() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	text = bytes.TrimSpace(text)
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}

// failure returns the first line of the log that a full disk must not cause, or "".
func (s *server) failure() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "log failed") || strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
