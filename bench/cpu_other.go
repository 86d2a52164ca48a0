//go:build !unix

package bench

import "time"

// CPUTime returns zero: the time of the process is not known here.
func CPUTime() time.Duration { return 0 }
