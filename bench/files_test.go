package bench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestCopyIdle changes a file after it was copied, twice, and removes one before it is
// copied. The fourth copy counts.
func TestCopyIdle(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	name := filepath.Join(from, "file")
	write := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("1")
	copies := 0
	err := copyIdle(t.Context(), from, to, func(ctx context.Context, from, to string) error {
		copies++
		if copies == 3 {
			return copyFile(ctx, filepath.Join(from, "removed"), to)
		}
		err := copyDir(ctx, from, to)
		if copies < 3 {
			write("1 and more"[:copies*3])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "file")); err != nil || string(text) != "1 and " || copies != 4 {
		t.Errorf("%q, %v after %d copies, want the last text after 4", text, err, copies)
	}
}

// TestCopyFile copies files of three chunks of zeros with one other byte, or none.
func TestCopyFile(t *testing.T) {
	const size = 2<<20 + 100
	dir := t.TempDir()
	for _, at := range []int{-1, 0, 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, size - 1} {
		want := make([]byte, size)
		if at >= 0 {
			want[at] = 1
		}
		from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
		if err := os.WriteFile(from, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := copyFile(t.Context(), from, to); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, want) {
			t.Errorf("byte %d: %v, or the copy differs", at, err)
		}
	}
}
