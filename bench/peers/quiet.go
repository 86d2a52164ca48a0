package main

import (
	"time"

	"github.com/tablerock-db/tablerock/bench"
)

// waitQuiet waits until the process uses nearly no CPU time, which shows that
// compactions have ended in stores that do not tell.
func waitQuiet() {
	const (
		span   = 20 * time.Millisecond
		little = span / 10
		enough = 5 // successive spans
	)
	for quiet := 0; quiet < enough; quiet++ {
		before := bench.CPUTime()
		time.Sleep(span)
		if bench.CPUTime()-before > little {
			quiet = -1
		}
	}
}
