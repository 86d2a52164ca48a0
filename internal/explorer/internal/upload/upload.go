// Package upload receives a file in chunks of several requests, and reads the entities in it.
//
// The chunks come one after the other, each at the offset where the one before ended. Most
// files are read while they arrive. One of Parquet, whose index is at its end, is first kept as
// a temporary file. An Upload is safe for concurrent use.
package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/internal/tempfile"
	"github.com/tablerock-db/tablerock/internal/transfer"
)

// idleTime limits the time between two chunks.
const idleTime = 10 * time.Minute

// The errors of chunks.
var (
	ErrBusy  = errors.New("another chunk of the file is under way")
	ErrEnded = errors.New("the file is not read any more")
)

// OffsetError is the error of a chunk that does not begin where the one before ended.
type OffsetError struct{ Next int64 }

// Error returns the offset of the next chunk.
func (e *OffsetError) Error() string { return fmt.Sprintf("the next chunk begins at %d", e.Next) }

// Upload is a file that is received.
type Upload struct {
	size     int64
	received atomic.Int64
	busy     atomic.Bool    // a chunk is received
	w        io.WriteCloser // a pipe, or a temporary file
	end      func()
	open     func(context.Context, transfer.ReadOptions) (*transfer.Reader, error)
	complete chan struct{} // closed when all is received
	idle     *time.Timer   // set by Begin
}

// New returns an Upload of size bytes, which is read while it arrives. A chunk waits until it
// is read.
func New(size int64) *Upload {
	r, w := io.Pipe()
	u := &Upload{size: size, w: w, complete: make(chan struct{})}
	u.end = func() { _ = r.Close() } // never fails
	u.open = func(_ context.Context, o transfer.ReadOptions) (*transfer.Reader, error) {
		return transfer.NewReader(r, o), nil
	}
	return u
}

// NewParquet returns an Upload of size bytes in the format Parquet. It fails as
// tempfile.Files.Create does.
func NewParquet(size int64, files *tempfile.Files) (*Upload, error) {
	file, err := files.Create(size)
	if err != nil {
		return nil, err
	}
	failed := make(chan error, 1)
	u := &Upload{size: size, w: &spool{file, failed}, end: file.Close, complete: make(chan struct{})}
	u.open = func(ctx context.Context, o transfer.ReadOptions) (*transfer.Reader, error) {
		select {
		case <-u.complete:
			return transfer.NewParquetReader(file, size, o), nil
		case err := <-failed:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return u, nil
}

// spool writes to a file and reports the first error, which ends the import.
type spool struct {
	file   *tempfile.File
	failed chan error
}

func (s *spool) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	if err != nil {
		select {
		case s.failed <- err:
		default:
		}
	}
	return n, err
}

// Close keeps the file for its reader.
func (s *spool) Close() error { return nil }

// Begin begins to wait for chunks, and calls idle if none comes for ten minutes. Call it once,
// before Receive.
func (u *Upload) Begin(idle func()) {
	u.idle = time.AfterFunc(idleTime, idle)
	if u.size == 0 {
		u.finish()
	}
}

// Open returns a Reader of the file as soon as it can be read. It returns the error of a
// temporary file that cannot be written, or that of ctx.
func (u *Upload) Open(ctx context.Context, o transfer.ReadOptions) (*transfer.Reader, error) {
	return u.open(ctx, o)
}

// End ends the file before its end: its Reader fails, and chunks get ErrEnded. It removes a
// temporary file. Call it in any case when the file is not read any more.
func (u *Upload) End() { u.end() }

// Receive receives the bytes of chunk, which it calls if this is the chunk that comes next. A
// complete file accepts a chunk at its end, whose bytes it ignores: the response to the last one
// may be lost. The errors are ErrBusy, an *OffsetError, ErrEnded, that of the bytes, and that
// of a temporary file. The bytes before the last two are received.
func (u *Upload) Receive(offset int64, chunk func() io.Reader) error {
	if !u.busy.CompareAndSwap(false, true) {
		return ErrBusy
	}
	defer u.busy.Store(false)
	if next := u.received.Load(); offset != next {
		return &OffsetError{next}
	}
	if offset == u.size {
		return nil
	}
	u.idle.Reset(idleTime)
	n, err := io.Copy(u.w, chunk())
	if u.received.Add(n) == u.size { // what follows in this chunk does not count
		u.finish()
	}
	if errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) {
		return ErrEnded
	}
	return err
}

// finish ends a file that is complete.
func (u *Upload) finish() {
	u.idle.Stop()
	_ = u.w.Close() // never fails
	close(u.complete)
}

// Size returns the size of the whole file.
func (u *Upload) Size() int64 { return u.size }

// Received returns how many bytes are received.
func (u *Upload) Received() int64 { return u.received.Load() }
