package disk

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestBlockBytes has the sizes that a directory of macOS has in a container: blocks of
// 4 KiB, transfers of 1 MiB.
func TestBlockBytes(t *testing.T) {
	for _, c := range []struct {
		st   unix.Statfs_t
		want int64
	}{
		{unix.Statfs_t{Bsize: 1 << 20, Frsize: 4 << 10}, 4 << 10},
		{unix.Statfs_t{Bsize: 4 << 10}, 4 << 10},
	} {
		if got := blockBytes(&c.st); got != c.want {
			t.Errorf("%+v: blocks of %d bytes, want %d", c.st, got, c.want)
		}
	}
}

// TestNextData preallocates a file, writes to the middle of it and asks for its data.
func TestNextData(t *testing.T) {
	f, err := Create(filepath.Join(t.TempDir(), "a"))
	if err != nil {
		t.Fatal(err)
	}
	const size, at, most = 16 << 20, 8 << 20, 4 << 20 // file systems have parts of some length
	if err := f.Preallocate(0, size); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("x"), at); err != nil {
		t.Fatal(err)
	}
	from, to, err := f.NextData(0)
	if err == nil && from == 0 {
		t.Skip("this file system does not know what was written")
	}
	if err != nil || from > at || from < at-most || to <= at || to > at+most {
		t.Errorf("the first data is from %d to %d, %v, want %d", from, to, err, at)
	}
	if from, to, err := f.NextData(at + most); err != nil || from != size || to != size {
		t.Errorf("the data behind the last one is from %d to %d, %v, want the size %d", from, to, err, size)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.NextData(0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("NextData of a closed file: %v", err)
	}
}
