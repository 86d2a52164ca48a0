//go:build !race

package arena

import "golang.org/x/sys/unix"

// adviseHuge asks the system for huge pages. An error means that it has none.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
