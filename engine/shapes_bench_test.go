package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// BenchmarkManyShapes measures the CPU time of filtered queries over 400,000 entities, each
// with property names of its own.
func BenchmarkManyShapes(b *testing.B) {
	const rows = 400_000
	o := engine.Options{FS: vfs.NewMem(), NoSync: true, SegmentBytes: 256 << 20}
	o.Testing.Manual = true
	db := mustCreate(b, o)
	var ops []store.Op
	for i := range rows {
		ops = append(ops, store.InsertOrReplace(edm.Entity{
			Key: edm.Key{Partition: "p", Row: fmt.Sprintf("%06d", i)},
			Properties: edm.Properties{
				{Name: fmt.Sprint("a", i), Value: edm.Int32(int32(i))},
				{Name: "N", Value: edm.Int64(int64(i * 7919 % rows))},
				{Name: fmt.Sprint("b", i), Value: edm.String("some text")},
			},
		}))
		if len(ops) == 100 {
			apply(b, db, ops...)
			ops = ops[:0]
		}
	}
	query := func(b *testing.B, db *engine.DB, q store.Query) (examined int) {
		c := db.Query(b.Context(), table, q)
		for c.Next() {
		}
		check(b, "Query", c.Err())
		examined = c.(store.Examiner).Examined()
		check(b, "Close", c.Close())
		return examined
	}
	top := b
	run := func(layout string) {
		for _, text := range []string{"N eq -1", "Missing eq 1", "N lt 4000"} {
			for _, cold := range []bool{true, false} {
				b.Run(fmt.Sprintf("layout=%s/cold=%v/filter=%s", layout, cold, text), func(b *testing.B) {
					q := store.Query{Filter: filter.MustParse(text)}
					var used time.Duration
					examined := 0
					for b.Loop() {
						if cold && layout != "memory" {
							check(b, "Close", db.Close())
							db = mustOpen(top, "db", o)
						}
						start := bench.CPUTime()
						examined = query(b, db, q)
						used += bench.CPUTime() - start
					}
					b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms/op")
					b.ReportMetric(float64(examined), "examined")
				})
			}
		}
	}
	run("memory")
	check(b, "Compact", db.Compact(b.Context()))
	run("compacted")
}
