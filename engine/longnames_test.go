package engine_test

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestLoadOfLongNames loads entities of one partition whose names of properties take nearly all of
// their bytes, and of which no two have the same: the section of the shapes is as long as the file.
func TestLoadOfLongNames(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes 90 MB")
	}
	const rows = 450
	db := mustCreate(t, engine.Options{FS: vfs.NewMem(), FileBytes: 64 << 20, CacheBytes: 1 << 20, Testing: engine.TestHooks{Manual: true, LoadBytes: 1 << 30}})
	entities := func() iter.Seq2[edm.Entity, error] {
		return func(yield func(edm.Entity, error) bool) {
			for i := range rows {
				e := edm.Entity{Key: edm.Key{Partition: "p", Row: fmt.Sprintf("%06d", i)}}
				for n := range edm.MaxProperties {
					name := fmt.Sprintf("P%03d%06d", n, i)
					name += strings.Repeat("丁", 255-len(name))
					e.Properties = append(e.Properties, edm.Property{Name: name, Value: edm.Boolean(true)})
				}
				if !yield(e, nil) {
					return
				}
			}
		}
	}
	result, err := db.Load(t.Context(), table, entities(), engine.LoadOptions{})
	check(t, "Load", err)
	if result.Entities != rows {
		t.Errorf("%d rows, want %d", result.Entities, rows)
	}
	check(t, "Close", db.Close())
}
