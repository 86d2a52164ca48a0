package where

import (
	"sync"
	"time"
)

// noteEvery is the shortest time between two notes of Retrying: an import repeats many
// requests at once. It is below the shortest delay of package remote, 0.64 s, so that each
// repetition of one request is noted.
const noteEvery = 500 * time.Millisecond

// Retrying returns the function for remote.Options.Retrying that notes why a command waits.
func Retrying(note func(format string, args ...any)) func(cause string, n, limit int) {
	var mu sync.Mutex
	var last time.Time
	return func(cause string, n, limit int) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(last) >= noteEvery {
			last = now
			note("%s; trying again (%d of %d)", cause, n, limit)
		}
	}
}
