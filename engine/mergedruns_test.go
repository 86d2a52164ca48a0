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
// queries have spent as much on merging them, and not before, nor for queries that merge little.
func TestQueriesMergeRuns(t *testing.T) {
	const runs, rows = 3, 9_999
	type after struct{ queries, runs int }
	mixed := func(i int) int { return i * 2 % rows }
	border := func(i int) int { // entities of each run are behind the first ones of the next
		if j := i % (rows / runs); j == 0 && i > 0 {
			return i - 50
		} else if j == rows/runs-50 && i < rows-50 {
			return i + 50
		}
		return i
	}
	whole := store.Query{}
	cases := []struct {
		name   string
		key    func(i int) int // of entity i, which is in run i/(rows/runs)
		bottom bool            // the oldest run is the bottom
		q      store.Query
		want   []after
	}{
		// Merging one run costs as much as a compaction of 256 bytes, and of 8 for each entity, and the
		// least compaction as much as one of 4 MiB.
		{"all entities", mixed, false, whole, []after{{26, 3}, {27, 1}}},
		{"all entities, the oldest in the bottom", mixed, true, whole, []after{{26, 3}, {27, 2}, {77, 2}, {95, 1}}},
		{"an entity", mixed, false, store.Query{Limit: 1}, []after{{7700, 3}, {8100, 1}}},
		{"few entities by columns", mixed, false, store.Query{Filter: filter.MustParse("N eq 7L")}, []after{{100, 3}}},
		{"runs that hardly overlap", border, false, whole, []after{{40, 2}}},
		{"runs apart", func(i int) int { return i }, false, whole, []after{{40, 1}}},
	}
	for _, c := range cases[:len(cases)/stride(3)] {
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
				queries := 0
				for _, want := range c.want {
					for ; queries < want.queries; queries++ {
						cursor := db.Query(t.Context(), table, c.q)
						for cursor.Next() {
						}
						check(t, "Query", cursor.Err())
						check(t, "Close", cursor.Close())
					}
					synctest.Wait()
					stats, err := db.Stats()
					check(t, "Stats", err)
					if stats.RunsMax != want.runs {
						t.Errorf("after %d queries %d runs overlap, want %d", queries, stats.RunsMax, want.runs)
					}
				}
			})
		})
	}
}
