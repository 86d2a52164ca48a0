package explorer

import (
	"runtime"
	"testing"
)

// Every start of a server loads the pages, and what that allocates stays in the memory of an
// idle server.
func TestLoadPagesMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := loadPages("1")
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 6<<20 {
		t.Errorf("%d assets took %d bytes", len(p.assets), n)
	}
}
