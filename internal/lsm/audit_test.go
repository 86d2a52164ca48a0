package lsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestLostEntryStopsMerge pretends that a source gave an entry that was then
// neither written nor dropped.
func TestLostEntryStopsMerge(t *testing.T) {
	w := newWorld(t, vfs.NewMem(), smallOptions(), 41)
	for n := range 300 {
		w.put(n, 60)
	}
	w.flush()
	before := w.files()
	v := w.tree.Version()
	p := w.tree.picker(v, nil).full(nil)
	p.oneFile, p.upper = false, nil
	r := w.tree.newMerge(v, nil, p)
	j := &Job{t: w.tree, what: "merge", step: r.step, abort: r.abort}
	_, err := j.Step(context.Background())
	must(t, err)
	r.in.add(testKey(1))
	if err := runErr(j); err == nil || !strings.Contains(err.Error(), "301 entries") {
		t.Fatalf("got %v, want an error about 301 entries", err)
	}
	if after := w.files(); len(after) != len(before) || after[0].Number != before[0].Number {
		t.Fatalf("the files changed from %v to %v", before, after)
	}
	w.check()
	w.finish()
}

// TestWrongCountStopsMerge has the manifest claim an entry too many.
func TestWrongCountStopsMerge(t *testing.T) {
	w := newWorld(t, vfs.NewMem(), smallOptions(), 42)
	for range 2 {
		for n := range 300 {
			w.put(n, 60)
		}
		w.flush()
	}
	w.close()
	m := mustRead(t, w.fs)
	m.Files[3].Entries++
	must(t, manifest.Write(w.fs, testDir, m))
	w.open()
	var c *corrupt.Error
	if err := runErr(w.tree.NewFullCompaction()); !errors.As(err, &c) || c.File != filename.Make(filename.SSTable, m.Files[3].Number) {
		t.Fatalf("got %v, want damage of %s", err, filename.Make(filename.SSTable, m.Files[3].Number))
	}
}

// BenchmarkFlush and BenchmarkFullCompaction read as bytes of files written.
func BenchmarkFlush(b *testing.B) {
	w := newWorld(b, vfs.NewMem(), Options{}, 43)
	w.mem = newMemory(16 << 20)
	for n := range 50_000 {
		w.write(orderedKey(n), w.text(n, 100))
	}
	last := w.seq
	for b.Loop() {
		j := w.tree.NewFlush([]*memtable.Table{w.mem.table}, manifest.Edit{LastSeq: last})
		finishJob(b, j)
	}
	s := w.tree.Stats()
	b.SetBytes(s.Counters.FlushedBytes / int64(s.Counters.Flushes))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/50_000, "ns/entry")
	b.ReportAllocs()
}

func BenchmarkFullCompaction(b *testing.B) {
	w := newWorld(b, vfs.NewMem(), Options{}, 44)
	for range 4 {
		w.mem = newMemory(16 << 20)
		for range 20_000 {
			n := w.rng.IntN(50_000)
			w.write(orderedKey(n), w.text(n, 100))
		}
		w.flush()
	}
	for b.Loop() {
		finishJob(b, w.tree.NewFullCompaction())
		b.StopTimer()
		// A row keeps the bottom from being settled.
		w.mem = newMemory(1 << 20)
		for n := range 100 {
			w.write(orderedKey(n*500), "again")
		}
		w.flush()
		b.StartTimer()
	}
	s := w.tree.Stats()
	b.SetBytes(s.Counters.MergedBytes / int64(b.N))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(s.Counters.EntriesIn), "ns/entry")
	b.ReportAllocs()
}

// TestGetDoesNotAllocate reads hot rows, and keys that no run has.
func TestGetDoesNotAllocate(t *testing.T) {
	w := newWorld(t, vfs.NewMem(), smallOptions(), 45)
	for range 3 {
		for n := range 300 {
			w.put(n, 60)
		}
		w.flush()
	}
	v := w.tree.Version()
	var row sstable.Row
	hit, miss := testKey(7), testKey(1000)
	for _, key := range [][]byte{hit, miss} {
		hash := codec.KeyHash(key)
		got := testing.AllocsPerRun(100, func() {
			if _, _, ok, err := v.Get(key, hash, w.seq, &row); err != nil || ok != bytes.Equal(key, hit) {
				t.Fatalf("get %q: %v, %v", key, ok, err)
			}
			row.Release()
		})
		if got != 0 {
			t.Errorf("get %q: %v allocations, want none", key, got)
		}
	}
	v.Unref()
	w.finish()
}

func BenchmarkGet(b *testing.B) {
	for _, runs := range []int{1, 8} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			w := newWorld(b, vfs.NewMem(), Options{}, 46)
			for i := range runs {
				w.mem = newMemory(4 << 20)
				for n := i; n < 10_000; n += runs {
					w.write(orderedKey(n), w.text(n, 100))
				}
				w.flush()
			}
			v := w.tree.Version()
			defer v.Unref()
			var row sstable.Row
			key := orderedKey(4321)
			hash := codec.KeyHash(key)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, ok, err := v.Get(key, hash, w.seq, &row); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
			row.Release()
		})
	}
}
