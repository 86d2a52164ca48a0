package commitlog

import (
	"errors"
	"io"
	"path"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/vfs"
)

// Verify compares the durable bytes of the segment's file with the segment's memory,
// which recovery verified or the log wrote. It returns the number of bytes read.
func (s *Segment) Verify(fsys vfs.FS, name string) (read int64, err error) {
	end := s.Durable()
	if end == 0 {
		return 0, nil
	}
	f, err := fsys.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	buf := make([]byte, min(end, 256<<10))
	for read < end {
		chunk := buf[:min(int64(len(buf)), end-read)]
		n, err := f.ReadAt(chunk, read)
		want := s.Image()[read : read+int64(n)]
		for i := range want {
			if chunk[i] != want[i] {
				return read, corrupt.Newf(path.Base(name), read+int64(i), "byte is %#x, want %#x", chunk[i], want[i])
			}
		}
		read += int64(n)
		switch {
		case n == len(chunk):
		case errors.Is(err, io.EOF):
			return read, corrupt.Newf(path.Base(name), read, "file ends, want %d bytes", end)
		default:
			return read, err
		}
	}
	return read, nil
}
