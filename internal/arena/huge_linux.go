//go:build !race

package arena

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// adviseHuge asks the system for huge pages. An error means that it has none.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }

// populate makes the pages of b resident. An error means that the system cannot.
func populate(b []byte) {
	huge := pages.choose()
	if huge {
		adviseHuge(b)
	} else {
		_ = unix.Madvise(b, unix.MADV_NOHUGEPAGE)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	from := threadTime()
	if unix.Madvise(b, unix.MADV_POPULATE_WRITE) == nil && len(b) == HugeSlabBytes {
		pages.add(huge, threadTime()-from)
	}
}

// threadTime returns the CPU time of the current thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
