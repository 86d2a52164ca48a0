package tempfile_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"testing"

	"github.com/tablerock-db/tablerock/internal/tempfile"
)

// create makes a file, or returns nil after the wanted error.
func create(t *testing.T, files *tempfile.Files, size int64, want error) *tempfile.File {
	t.Helper()
	f, err := files.Create(size)
	if !errors.Is(err, want) || (err == nil) != (want == nil) {
		t.Fatalf("a file for %d bytes: error %v, want %v", size, err, want)
	}
	return f
}

// TestLimit fills the limit with the sizes of files that were announced and with bytes that
// were written above them; a closed file gives its bytes back.
func TestLimit(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	files := tempfile.New(100)
	a := create(t, files, 60, nil)
	create(t, files, 41, tempfile.ErrLimit)
	b := create(t, files, 0, nil)
	if n, err := b.Write(make([]byte, 40)); n != 40 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if n, err := b.Write([]byte{1}); n != 0 || !errors.Is(err, tempfile.ErrLimit) {
		t.Fatalf("above the limit: %d, %v", n, err)
	}
	if n, err := a.Write(bytes.Repeat([]byte{7}, 60)); n != 60 || err != nil || a.Size() != 60 {
		t.Fatalf("the announced bytes: %d, %v, size %d", n, err, a.Size())
	}
	if text, err := io.ReadAll(io.NewSectionReader(a, 0, 60)); err != nil || !bytes.Equal(text, bytes.Repeat([]byte{7}, 60)) {
		t.Errorf("the file has %q, %v", text, err)
	}
	a.Close()
	a.Close()
	if _, err := a.Write([]byte{1}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a write after Close: %v", err)
	}
	create(t, files, 61, tempfile.ErrLimit)
	c := create(t, files, 60, nil)
	b.Close()
	c.Close()
	create(t, files, 100, nil).Close()
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("%v are left: %v", left, err)
	}
}

// TestFreeSpace refuses a file that does not fit on the disk before anything is written.
func TestFreeSpace(t *testing.T) {
	files := tempfile.New(math.MaxInt64)
	create(t, files, math.MaxInt64/4, tempfile.ErrFull)
	create(t, files, 1, nil).Close()
}
