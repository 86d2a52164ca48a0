package engine_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestQueryAfterOneFault fails each read of an sstable once, from its first use on, and works
// again. A query must return an error, or each row once. The first walk over rows ends after 128.
func TestQueryAfterOneFault(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, rows := range []int{127, 128, 129, 384} {
		disk := vfs.NewMem()
		o := engine.Options{FS: disk, CacheBytes: 4 << 20, SegmentBytes: 4 << 20, FileBytes: 4 << 20, Testing: engine.TestHooks{Manual: true}}
		db := mustCreate(t, o)
		check(t, "Flush", db.Flush(t.Context())) // the catalog has a file of its own
		fill(t, db, "q", rows, 1000)
		check(t, "Close", db.Close())
		names := files(t, disk, "db", ".sst")
		name := "db/" + names[len(names)-1]
		for _, text := range []string{"PartitionKey eq 'q'", "PartitionKey eq 'q' and N ge 0L"} {
			for _, kind := range []string{"rows", "columns", "rows in reverse"} {
				failed := true
				for n := uint64(1); failed; n++ {
					failed = false
					nth := errorfs.FailNth(n, func(op vfs.Op) bool { return op.Kind == "read" && op.Name == name }, errorfs.Fault{Err: syscall.EIO}, false)
					o.FS = errorfs.Wrap(disk, func(op vfs.Op) *errorfs.Fault {
						f := nth(op)
						failed = failed || f != nil
						return f
					})
					db := mustOpen(t, "db", o)
					c := db.Query(t.Context(), table, store.Query{Filter: filter.MustParse(text), Reverse: kind == "rows in reverse"}).(store.ColumnCursor)
					seen := map[string]int{}
					for {
						var columns store.Columns
						if kind == "columns" {
							columns = c.NextColumns()
						}
						if columns != nil {
							for i := range columns.Len() {
								seen[string(columns.AppendRow(nil, i))]++
							}
						} else if c.Next() {
							seen[c.Row().Key().Row]++
						} else {
							break
						}
					}
					err := errors.Join(c.Err(), c.Close())
					for i := range rows {
						if key := fmt.Sprintf("%06d", i); seen[key] > 1 || seen[key] == 0 && err == nil {
							t.Fatalf("%d rows, %s, %s, read %d failed: row %s was returned %d times, %v", rows, text, kind, n, key, seen[key], err)
						}
					}
					check(t, "Close", closeAtOnce(db))
				}
			}
		}
	}
}
