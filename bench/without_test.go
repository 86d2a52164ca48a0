package bench

import (
	"testing"
	"time"
)

// TestWithout checks the time of a pass of which generating took the greater part, or alone
// longer than all of it.
func TestWithout(t *testing.T) {
	steps := []time.Duration{2, 3}
	for _, c := range []struct{ fill, pass, want time.Duration }{{4, 10, 6}, {0, 10, 10}, {9, 10, 5}, {12, 10, 5}} {
		if got := without(c.fill, c.pass, steps); got != c.want {
			t.Errorf("without(%d, %d): got %d, want %d", c.fill, c.pass, got, c.want)
		}
	}
}
