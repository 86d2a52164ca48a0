package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestQueriesMergeRuns makes queries of some runs of the same keys. They are compacted into one once the
// queries have spent as much on merging them, and not before, nor for queries that merge nothing.
func TestQueriesMergeRuns(t *testing.T) {
	const runs, rows = 3, 10_000
	whole := store.Query{}
	for _, c := range []struct {
		name    string
		key     func(i int) int // of entity i, which is in run i/(rows/runs)
		bottom  bool            // the oldest run is the bottom
		q       store.Query
		queries int // after so many nothing is compacted
		most    int // after so many all is compacted, 0 for never
	}{
		// Merging one run costs as much as a compaction of 256 bytes, and of 8 for each entity, and that
		// of the least compaction as much as one of 4 MiB.
		{"all entities", func(i int) int { return i * runs % rows }, false, whole, 25, 27},
		{"all entities, one run above the bottom", func(i int) int { return i * runs % rows }, true, whole, 25, 80},
		{"an entity", func(i int) int { return i * runs % rows }, false, store.Query{Limit: 1}, 7000, 8500},
		{"few entities by columns", func(i int) int { return i * runs % rows }, false, store.Query{Filter: filter.MustParse("N eq 7L")}, 1000, 0},
		{"runs apart", func(i int) int { return i }, false, whole, 200, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := mustCreate(t, engine.Options{FS: vfs.NewMem(), NoSync: true})
				for i := range rows {
					apply(t, db, store.InsertOrReplace(entity("p", fmt.Sprintf("%06d", c.key(i)), int64(i), 20)))
					if i%(rows/runs) == rows/runs-1 {
						check(t, "Flush", db.Flush(t.Context()))
						if c.bottom && i < rows/runs {
							check(t, "Compact", db.Compact(t.Context()))
						}
					}
				}
				check(t, "Flush", db.Flush(t.Context()))
				runsNow := func() int {
					synctest.Wait()
					stats, err := db.Stats()
					check(t, "Stats", err)
					return stats.RunsMax
				}
				before := runsNow()
				for n := 1; ; n++ {
					cursor := db.Query(t.Context(), table, c.q)
					for cursor.Next() {
					}
					check(t, "Query", cursor.Err())
					check(t, "Close", cursor.Close())
					if n == c.queries && runsNow() != before {
						t.Fatalf("after %d queries %d runs are %d", n, before, runsNow())
					}
					if n >= c.queries && c.most == 0 || n == c.most {
						break
					}
				}
				if got := runsNow(); c.most > 0 && got != 1 {
					t.Errorf("after %d queries there are %d runs, want 1", c.most, got)
				}
			})
		})
	}
}
