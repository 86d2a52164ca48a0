// Package openfile opens files that can be named pipes, and refuses pipes where a wait would be wrong.
package openfile

import (
	"context"
	"os"
)

// Open opens a file as os.OpenFile does. It fails when ctx ends, also while it waits for a program
// at the other end of a named pipe.
func Open(ctx context.Context, name string, flag int, perm os.FileMode) (*os.File, error) {
	var f *os.File
	opened := make(chan error, 1)
	go func() {
		var err error
		f, err = os.OpenFile(name, flag, perm)
		opened <- err
	}()
	select {
	case err := <-opened:
		return f, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
