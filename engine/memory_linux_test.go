package engine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

// mapped returns the size of the address space of the process.
func mapped(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmSize:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Skip(err)
	}
	return kib << 10
}

// TestOpenAndCloseLeakNoMemory opens a database repeatedly, for writing and for
// reading. The memory of every segment must be freed.
func TestOpenAndCloseLeakNoMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("race builds keep segments on the heap")
	}
	const segment, rounds = 256 << 20, 8
	dir := t.TempDir()
	o := engine.Options{SegmentBytes: segment, Testing: engine.TestHooks{Manual: true}, CacheBytes: 1 << 20}
	cycle := func(i int, readOnly bool) {
		t.Helper()
		o.ReadOnly = readOnly
		db := mustOpen(t, dir, o)
		if !readOnly {
			apply(t, db, store.InsertOrReplace(entity("p", fmt.Sprint(i), 1, 10)))
		}
		check(t, "Close", closeAtOnce(db))
	}
	db := mustOpen(t, dir, o)
	check(t, "CreateTable", db.CreateTable(t.Context(), table))
	check(t, "Close", closeAtOnce(db))
	before := mapped(t)
	for i := range rounds {
		cycle(i, false)
		cycle(i, true)
	}
	if grown := mapped(t) - before; grown > rounds*segment {
		t.Errorf("%d opens and closes left %d MiB mapped", 2*rounds, grown>>20)
	}
}
