package batch

import (
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// TestResults compares the ETags of batches with those of single time stamps.
func TestResults(t *testing.T) {
	const noon, second = edm.Ticks(130_000_000_000_000_000), edm.Ticks(10_000_000)
	var m results
	for _, first := range []edm.Ticks{0, noon, noon + 1, noon + 5, noon + second - 30, noon + 999_950, edm.MaxTicks - 98} {
		for _, deleted := range []func(i int) bool{
			func(int) bool { return false },
			func(int) bool { return true },
			func(i int) bool { return i%3 == 1 },
			func(i int) bool { return i%7 < 4 },
		} {
			ops := make([]store.Op, 99)
			for i := range ops {
				if ops[i].Kind = store.OpInsert; deleted(i) {
					ops[i].Kind = store.OpDelete
				}
			}
			for i, got := range m.of(ops, first, len(ops)) {
				var want store.Result
				if !deleted(i) {
					want.Timestamp = first + edm.Ticks(i)
					want.ETag = want.Timestamp.ETag()
				}
				if got != want {
					t.Errorf("op %d of a batch at %d: got %v, want %v", i, first, got, want)
				}
			}
		}
	}
}

func BenchmarkResults(b *testing.B) {
	var m results
	ops := make([]store.Op, 100)
	for i := range ops {
		ops[i].Kind = store.OpInsert
	}
	b.ReportAllocs()
	first := edm.Ticks(130_000_000_123_456_789)
	for b.Loop() {
		m.of(ops, first, len(ops))
		first += 101
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ops)), "ns/entity")
}
