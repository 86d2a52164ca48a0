// Package race tells tests whether the race detector is on.
package race

import "testing"

// SkipOneGoroutine skips a long test that has one goroutine if the race detector is on: it makes
// the test ten times slower and finds nothing in it. The stage test of .ci/run runs the test
// with arena.Poisons, which makes a use of freed memory visible there as the race detector does.
func SkipOneGoroutine(tb testing.TB) {
	tb.Helper()
	if Enabled {
		tb.Skip("the race detector finds nothing in one goroutine")
	}
}
