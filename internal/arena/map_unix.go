//go:build (darwin || dragonfly || freebsd || linux || netbsd || openbsd) && !race

package arena

import "golang.org/x/sys/unix"

const canMap = true

func mapBytes(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err == nil {
		adviseHuge(b)
	}
	return b, err
}

func unmapBytes(b []byte) error { return unix.Munmap(b) }
