//go:build !race

package arena

import "golang.org/x/sys/unix"

// adviseHuge asks the system for huge pages. An error means that it has none.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }

// populate makes the pages of b resident. An error means that the system cannot.
func populate(b []byte) { _ = unix.Madvise(b, unix.MADV_POPULATE_WRITE) }
