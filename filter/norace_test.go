//go:build !race

package filter

// raceEnabled says that the race detector is on, under which a sync.Pool drops values at random.
const raceEnabled = false
