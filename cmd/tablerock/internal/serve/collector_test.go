package serve

import (
	"runtime"
	"testing"
)

// TestCollectorReserve checks at which size of the heap the next collection begins. A
// server with the settings of the environment has no reserve.
func TestCollectorReserve(t *testing.T) {
	for _, c := range []struct {
		name, gogc, limit string
		reserve           bool
	}{
		{"without settings", "", "", true},
		{"GOGC", "100", "", false},
		{"GOMEMLIMIT", "", "1GiB", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("GOGC", c.gogc)
			t.Setenv("GOMEMLIMIT", c.limit)
			least := nextCollection() + gcReserveBytes
			restore := tuneCollector(0)
			during := nextCollection()
			restore()
			if (during >= least) != c.reserve {
				t.Errorf("the next collection begins at %d bytes; at least %d is %v", during, least, !c.reserve)
			}
			if after := nextCollection(); after >= least {
				t.Errorf("the next collection begins at %d bytes after restore, want less than %d", after, least)
			}
		})
	}
}

// nextCollection returns the size of the heap at which the collection after one now begins.
func nextCollection() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NextGC
}
