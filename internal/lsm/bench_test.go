package lsm

import (
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
)

// BenchmarkFlush and BenchmarkFullCompaction report the bytes of files written.
func BenchmarkFlush(b *testing.B) {
	h := newHarness(b, vfs.NewMem(), Options{}, 43)
	h.mem = newTestMemtable(16 << 20)
	for n := range 50_000 {
		h.write(orderedKey(n), h.text(n, 100))
	}
	last := h.seq
	for b.Loop() {
		j := h.tree.NewFlush([]*memtable.Table{h.mem.table}, manifest.Edit{LastSeq: last})
		finishJob(b, j)
	}
	s := h.tree.Stats()
	b.SetBytes(s.Counters.FlushedBytes / int64(s.Counters.Flushes))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/50_000, "ns/entry")
	b.ReportAllocs()
}

func BenchmarkFullCompaction(b *testing.B) {
	h := newHarness(b, vfs.NewMem(), Options{}, 44)
	for range 4 {
		h.mem = newTestMemtable(16 << 20)
		for range 20_000 {
			n := h.rng.IntN(50_000)
			h.write(orderedKey(n), h.text(n, 100))
		}
		h.flush()
	}
	for b.Loop() {
		finishJob(b, h.tree.NewFullCompaction())
		b.StopTimer()
		// Newer rows give the next compaction work.
		h.mem = newTestMemtable(1 << 20)
		for n := range 100 {
			h.write(orderedKey(n*500), "again")
		}
		h.flush()
		b.StartTimer()
	}
	s := h.tree.Stats()
	b.SetBytes(s.Counters.CompactedBytes / int64(b.N))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(s.Counters.EntriesIn), "ns/entry")
	b.ReportAllocs()
}

func BenchmarkGet(b *testing.B) {
	for _, runs := range []int{1, 8} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			h := newHarness(b, vfs.NewMem(), Options{}, 46)
			for i := range runs {
				h.mem = newTestMemtable(4 << 20)
				for n := i; n < 10_000; n += runs {
					h.write(orderedKey(n), h.text(n, 100))
				}
				h.flush()
			}
			v := h.tree.Version()
			defer v.Unref()
			var row sstable.Row
			key := orderedKey(4321)
			hash := codec.KeyHash(key)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, ok, err := v.Get(key, hash, h.seq, &row); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
			row.Release()
		})
	}
}
