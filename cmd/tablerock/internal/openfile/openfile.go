// Package openfile opens files that can be named pipes, and refuses pipes where a wait would be wrong.
package openfile

import (
	"context"
	"os"
)

// Open opens a file as os.OpenFile does. It fails when ctx ends, also while it waits for a program
// at the other end of a named pipe.
func Open(ctx context.Context, name string, flag int, perm os.FileMode) (*os.File, error) {
	return unlessEnded(ctx, func() (*os.File, error) { return os.OpenFile(name, flag, perm) })
}

// Read reads a file as os.ReadFile does. It fails when ctx ends, also while it waits for a program
// at the other end of a named pipe.
func Read(ctx context.Context, name string) ([]byte, error) {
	return unlessEnded(ctx, func() ([]byte, error) { return os.ReadFile(name) })
}

// unlessEnded returns what call returns, or the error of ctx if it ends before. Then call may go on
// until the process ends.
func unlessEnded[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	returned := make(chan result, 1)
	go func() {
		value, err := call()
		returned <- result{value, err}
	}()
	select {
	case r := <-returned:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
