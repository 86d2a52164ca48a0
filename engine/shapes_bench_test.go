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
// with property names of its own: in one log segment, in four overlapping sstables, and
// compacted.
func BenchmarkManyShapes(b *testing.B) {
	const rows = 400_000
	for _, layout := range []string{"memory", "overlapping", "compacted"} {
		o := engine.Options{FS: vfs.NewMem(), NoSync: true, SegmentBytes: 256 << 20}
		o.Testing.Manual = true
		db := mustCreate(b, o)
		var ops []store.Op
		for i := range rows {
			ops = append(ops, store.InsertOrReplace(edm.Entity{
				Key: edm.Key{Partition: "p", Row: fmt.Sprintf("%06d", i*7919%rows)},
				Properties: edm.Properties{
					{Name: fmt.Sprint("a", i), Value: edm.Int32(int32(i))},
					{Name: "N", Value: edm.Int64(int64(i))},
					{Name: fmt.Sprint("b", i), Value: edm.String("some text")},
				},
			}))
			if len(ops) == 100 {
				apply(b, db, ops...)
				ops = ops[:0]
			}
			if layout != "memory" && (i+1)%(rows/4) == 0 {
				check(b, "Flush", db.Flush(b.Context()))
			}
		}
		if layout == "compacted" {
			check(b, "Compact", db.Compact(b.Context()))
		}
		for _, text := range []string{"N eq -1", "Missing eq 1", "a5 eq 5", "N lt 4000"} {
			for _, cold := range []bool{true, false} {
				b.Run(fmt.Sprintf("layout=%s/cold=%v/filter=%s", layout, cold, text), func(b *testing.B) {
					q := store.Query{Filter: filter.MustParse(text)}
					var used time.Duration
					examined := 0
					for b.Loop() {
						if cold && layout != "memory" {
							check(b, "Close", db.Close())
							var err error
							db, err = engine.Open("db", o)
							check(b, "Open", err)
						}
						start := bench.CPUTime()
						n := 0
						c := db.Query(b.Context(), table, q)
						for c.Next() {
							n++
						}
						check(b, "Query", c.Err())
						examined = c.(store.Examiner).Examined()
						check(b, "Close", c.Close())
						used += bench.CPUTime() - start
						if want := map[string]int{"a5 eq 5": 1, "N lt 4000": 4000}[text]; n != want {
							b.Fatalf("%d entities, want %d", n, want)
						}
					}
					b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms/op")
					b.ReportMetric(float64(examined), "examined")
				})
			}
		}
		check(b, "Close", db.Close())
	}
}
