package bulk

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/atomicfile"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/openfile"
)

// NewAckFile creates or replaces the file for acknowledgements, or continues standard output if
// name is a link to it. Write each one with its own system call, so that it survives if the
// program is killed. NewAckFile fails when ctx ends while it waits for the reader of a named pipe.
func NewAckFile(ctx context.Context, name string) (*os.File, error) {
	if atomicfile.IsOutput(name) {
		return os.Stdout, nil
	}
	f, err := openfile.Open(ctx, name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("--ack: %w", err)
	}
	return f, nil
}

// IsFile reports whether the file called name is the regular file that info describes, under
// this name or another. info may be nil.
func IsFile(name string, info fs.FileInfo) bool {
	there, err := os.Stat(name)
	return err == nil && there.Mode().IsRegular() && info != nil && os.SameFile(there, info)
}
