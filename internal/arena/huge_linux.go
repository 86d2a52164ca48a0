//go:build !race

package arena

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// adviseHuge asks the system for huge pages. An error means that it has none.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }

// adviseSmall asks the system for small pages. An error means that it has no others.
func adviseSmall(b []byte) { _ = unix.Madvise(b, unix.MADV_NOHUGEPAGE) }

// populateSlab makes the pages of b resident. An error means that the system cannot.
func populateSlab(b []byte) { _ = unix.Madvise(b, unix.MADV_POPULATE_WRITE) }

// populate makes the pages of b resident. An error means that the system cannot.
func populate(b []byte) {
	if len(b) != HugeSlabBytes {
		_ = unix.Madvise(b, unix.MADV_POPULATE_WRITE)
		return
	}
	huge := populated.choose()
	if huge {
		adviseHuge(b)
	} else {
		adviseSmall(b)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	from, faults := threadTime(), threadFaults()
	err := unix.Madvise(b, unix.MADV_POPULATE_WRITE)
	took := threadTime() - from
	if err == nil && threadFaults() > faults { // else all of b was resident, which tells nothing
		populated.add(huge, took)
	}
}

// threadTime returns the CPU time of the current thread. That of Getrusage is older.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// threadFaults returns how many page faults the current thread has had.
func threadFaults() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return int64(u.Minflt)
}
