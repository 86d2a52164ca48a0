package main

import (
	"time"

	"github.com/tablerock-db/tablerock/bench"
)

// waitQuiet waits until the process uses nearly no CPU time, which shows that
// compactions have ended in stores that do not tell. It returns for how long that has been.
func waitQuiet() (idle time.Duration) {
	const (
		span   = 20 * time.Millisecond
		little = span / 10
		enough = 5 // successive spans
	)
	since := time.Now()
	for quiet := 0; quiet < enough; quiet++ {
		before := bench.CPUTime()
		time.Sleep(span)
		if bench.CPUTime()-before > little {
			quiet, since = -1, time.Now()
		}
	}
	return time.Since(since)
}
