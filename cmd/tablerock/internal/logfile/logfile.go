// Package logfile appends to a log file, and opens it again after another program has renamed it.
package logfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/openfile"
)

// File is a log file. Methods may be called concurrently. Those of a nil File do nothing, but it
// has no Write.
type File struct {
	name    string
	regular bool

	mu sync.Mutex
	f  *os.File // +checklocks:mu
	// full means that the last write to a pipe ended without success after its time.
	// +checklocks:mu
	full bool
}

// The time that a write to a pipe waits for its reader, and that of the next writes if it failed.
const (
	writeTime = time.Second
	fullTime  = time.Millisecond
)

// How a file is opened.
const (
	appending = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	private   = 0o600
)

// Open opens the file of a flag for appending, and creates it if it does not exist. It fails when
// ctx ends, also while it waits for the reader of a pipe.
func Open(ctx context.Context, flag, name string) (*File, error) {
	f, err := openfile.Open(ctx, name, appending, private)
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return nil, hint.With(fmt.Errorf("%s: open %s: %w", flag, name, path.Err), "give a file that can be written, in an existing directory")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	info, err := f.Stat()
	return &File{name: name, regular: err == nil && info.Mode().IsRegular(), f: f}, nil
}

// Write appends to the file. A pipe that stays full loses p, because its reader must not stop
// the program.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wait := writeTime
	if f.full {
		wait = fullTime
	}
	_ = f.f.SetWriteDeadline(time.Now().Add(wait)) // a regular file has no deadlines
	n, err := f.f.Write(p)
	f.full = errors.Is(err, os.ErrDeadlineExceeded)
	return n, err
}

// Reopen opens the file of that name, which can be another one by now. If it fails, Write appends
// to the file that was open. A pipe or a device is not opened again: nobody renames one, and to open
// a pipe waits for its reader. A pipe without a reader in place of a file is an error.
func (f *File) Reopen() error {
	if f == nil || !f.regular {
		return nil
	}
	next, err := os.OpenFile(f.name, appending|syscall.O_NONBLOCK, private)
	if errors.Is(err, syscall.ENXIO) {
		return hint.With(fmt.Errorf("%w: a pipe without a reader", err), "remove it, or read from it")
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.f.Close() // Write has reported what could not be written
	f.f = next
	return nil
}

// Close closes the file.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.f.Close()
}
