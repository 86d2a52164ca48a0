package disk

import (
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
