//go:build !unix

package bench

import "time"

// CPUTime returns zero: this system does not report the time of a process.
func CPUTime() time.Duration { return 0 }
