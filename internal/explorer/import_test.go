package explorer

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/tablerock-db/tablerock/internal/explorer/internal/upload"
	"github.com/tablerock-db/tablerock/internal/tempfile"
)

// TestChunkError requires that the chunk that finds the disk full or that is too long gets that
// reason, even if the import has ended before the response.
func TestChunkError(t *testing.T) {
	long := &http.MaxBytesError{Limit: 1}
	for _, c := range []struct {
		err     error
		running bool
		want    error
	}{
		{tempfile.ErrFull, false, tempfile.ErrFull},
		{tempfile.ErrLimit, false, tempfile.ErrLimit},
		{long, false, long},
		{io.ErrUnexpectedEOF, true, io.ErrUnexpectedEOF},
		{io.ErrUnexpectedEOF, false, errNotRunning},
		{upload.ErrEnded, true, errNotRunning},
	} {
		if got := chunkError(c.err, c.running); !errors.Is(got, c.want) {
			t.Errorf("%v, running %v: %v, want %v", c.err, c.running, got, c.want)
		}
	}
}
