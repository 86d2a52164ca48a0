package engine_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
)

// heap returns how many bytes of the heap are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the second frees the memory of pools
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// grown compares the growth of the heap since before with a limit.
func grown(t *testing.T, what string, before, most int64) {
	t.Helper()
	n := heap() - before
	t.Logf("%s: %d KiB", what, n>>10)
	if n > most {
		t.Errorf("%s: the heap grew by %d bytes, want at most %d", what, n, most)
	}
}

// oddNames returns the most properties that an entity can have. One of them has a
// name that only i has.
func oddNames(i int) edm.Properties {
	props := make(edm.Properties, edm.MaxProperties)
	for k := range props {
		props[k] = edm.Property{Name: fmt.Sprintf("Property%d", k), Value: edm.Boolean(true)}
	}
	props[i%len(props)].Name = fmt.Sprintf("New%d", i)
	return props
}

// TestShapesCostLittleMemory writes entities of many properties that differ in one
// name. Writing, the recovered log and the sstable must not take a multiple of their
// bytes.
func TestShapesCostLittleMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("what is elsewhere otherwise is on the heap")
	}
	entities := 6000
	if testing.Short() {
		entities = 1000
	}
	dir := t.TempDir()
	o := engine.Options{NoSync: true, Testing: engine.TestHooks{Manual: true}, CacheBytes: 1 << 20}
	before := heap()
	db := mustOpen(t, dir, o)
	check(t, "CreateTable", db.CreateTable(t.Context(), table))
	for i := range entities {
		apply(t, db, store.Insert(edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprint(i)}, Properties: oddNames(i)}))
	}
	grown(t, "writing", before, 12<<20)
	check(t, "Close", closeAtOnce(db))

	before = heap()
	db = mustOpen(t, dir, o)
	grown(t, "open with a log", before, 12<<20)
	read := func() {
		t.Helper()
		for e, err := range store.Entities(db.Query(t.Context(), table, store.Query{})) {
			if err != nil || len(e.Properties) != edm.MaxProperties {
				t.Fatalf("%v has %d properties, %v", e.Key, len(e.Properties), err)
			}
		}
	}
	read()
	grown(t, "reading the log", before, 12<<20)
	check(t, "Flush", db.Flush(t.Context()))
	check(t, "Close", closeAtOnce(db))

	before = heap()
	db = mustOpen(t, dir, o)
	stats, err := db.Stats()
	check(t, "Stats", err)
	grown(t, "open with a sstable", before, stats.SSTableBytes+(4<<20))
	read()
	grown(t, "reading the sstable", before, stats.SSTableBytes+(6<<20))
}

// TestCraftedShapesCostLittleMemory opens a log that is full of shapes with the
// shortest names.
func TestCraftedShapesCostLittleMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("what is elsewhere otherwise is on the heap")
	}
	entities := make([]edm.Entity, 0, 4000)
	for i := range cap(entities) {
		props := make(edm.Properties, edm.MaxProperties)
		for k := range props {
			props[k] = edm.Property{Name: string(rune(0x4e00 + k)), Value: edm.Boolean(true)}
		}
		props[i%len(props)].Name = string(rune(0x5000 + i))
		entities = append(entities, edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprint(i)}, Timestamp: 1, Properties: props})
	}
	disk := craft(t, neverGiven, entities...)
	clear(entities[:cap(entities)]) // so that their memory is not counted
	o := manual(disk)
	o.CacheBytes = 1 << 20
	before := heap()
	_ = mustOpen(t, "db", o)
	grown(t, "open", before, 12<<20)
}
