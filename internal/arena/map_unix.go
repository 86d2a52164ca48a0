//go:build (darwin || dragonfly || freebsd || linux || netbsd || openbsd) && !race

package arena

import "golang.org/x/sys/unix"

const canMap = true

func mapBytes(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func unmapBytes(b []byte) error { return unix.Munmap(b) }

// adviseFree lets the system reclaim the pages of b. An error means that it keeps
// them.
func adviseFree(b []byte) { _ = unix.Madvise(b, unix.MADV_FREE) }

// dropPages gives the pages of b to the system. The next read of them returns zeros or,
// on some systems, the old contents.
func dropPages(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }
