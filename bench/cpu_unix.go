//go:build unix

package bench

import (
	"syscall"
	"time"
)

// CPUTime returns the user and system time that the process has used, in all
// its threads.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
