package engine_test

import (
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

// BenchmarkLoad loads entities by Load and, in batches of 100 without syncs, by Apply until
// the last one is flushed. Compare cpu-ns/op of the two; the generation of the entities is
// included. With -benchtime 300000x it takes 20 seconds.
func BenchmarkLoad(b *testing.B) {
	for _, shapeName := range []string{"grid", bench.Singles} {
		for _, order := range []string{"sorted", "random"} {
			for _, by := range []string{"apply", "load"} {
				b.Run(fmt.Sprintf("shape=%s/order=%s/by=%s", shapeName, order, by), func(b *testing.B) {
					shape, err := bench.ShapeOf(shapeName, b.N+1000) // a grid has up to 999 entities less
					if err != nil {
						b.Fatal(err)
					}
					data := bench.NewDataset(shape, 1)
					index := func(i int) int { return i }
					if order == "random" {
						list := data.Order(1)
						index = func(i int) int { return int(list[i]) }
					}
					db := mustOpen(b, b.TempDir(), engine.Options{NoSync: true})
					check(b, "CreateTable", db.CreateTable(b.Context(), table))
					load := applyAll
					if by == "load" {
						load = loadAll
					}
					batch := bench.Batch(1)
					entities := func(yield func(edm.Entity, error) bool) {
						for i := range b.N {
							data.Fill(index(i), i, &batch[0])
							if !yield(batch[0], nil) {
								return
							}
						}
					}
					b.ResetTimer()
					cpu := bench.CPUTime()
					load(b, db, entities)
					b.ReportMetric(float64((bench.CPUTime()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
					b.StopTimer()
					check(b, "Close", db.Close())
				})
			}
		}
	}
}

func loadAll(b *testing.B, db *engine.DB, entities func(func(edm.Entity, error) bool)) {
	b.Helper()
	_, err := db.Load(b.Context(), table, entities, engine.LoadOptions{})
	check(b, "Load", err)
}

// applyAll writes adjacent entities of one partition in one transaction.
func applyAll(b *testing.B, db *engine.DB, entities func(func(edm.Entity, error) bool)) {
	b.Helper()
	ops := make([]store.Op, 0, edm.MaxBatchOps)
	flush := func() {
		if len(ops) > 0 {
			_, err := db.Apply(b.Context(), table, ops...)
			check(b, "Apply", err)
		}
		ops = ops[:0]
	}
	props := make([]edm.Properties, edm.MaxBatchOps)
	for e := range entities {
		if len(ops) == cap(ops) || len(ops) > 0 && ops[0].Entity.Key.Partition != e.Key.Partition {
			flush()
		}
		n := len(ops)
		props[n] = append(props[n][:0], e.Properties...) // the sequence reuses them
		e.Properties = props[n]
		ops = append(ops, store.InsertOrReplace(e))
	}
	flush()
	check(b, "Flush", db.Flush(b.Context()))
}
