package lsm

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/memtable"
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
	if err := runErr(w.tree.NewFullCompaction()); !errors.As(err, &c) || c.File != fileName(m.Files[3].Number) {
		t.Fatalf("got %v, want damage of %s", err, fileName(m.Files[3].Number))
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
		j := w.tree.NewFlush([]*memtable.Table{w.mem.table}, func(m *manifest.Manifest) { m.LastSeq = last })
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
