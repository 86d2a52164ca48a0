package lsm

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestSpaceBound overwrites a working set many times, in several patterns, and
// holds the files against the bound: 2.1 times the live rows and a file more.
func TestSpaceBound(t *testing.T) {
	const keys, rounds, perFlush = 1500, 60, 400
	patterns := map[string]func(w *world, i int) int{
		"uniform":   func(w *world, i int) int { return w.rng.IntN(keys) },
		"ascending": func(w *world, i int) int { return i % keys },
		"skewed": func(w *world, i int) int {
			return min(w.rng.IntN(keys), w.rng.IntN(keys), w.rng.IntN(keys), w.rng.IntN(keys))
		},
		"hot range": func(w *world, i int) int {
			if i%20 == 0 {
				return w.rng.IntN(keys)
			}
			return keys/2 + w.rng.IntN(keys/10)
		},
	}
	for name, next := range patterns {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			o := smallOptions()
			o.FileBytes, o.TierRuns = 16<<10, 4
			w := newWorld(t, mem, o, 1)
			peak, written := int64(0), 0
			for i := range keys {
				w.write(orderedKey(i), w.text(i, 100))
			}
			w.flush()
			w.settle()
			live := w.tree.Stats().Bytes
			bound := live*21/10 + o.FileBytes
			for range rounds {
				for range perFlush {
					i := next(w, written)
					written++
					w.write(orderedKey(i), w.text(i, 100))
				}
				w.flush()
				for {
					j := w.tree.PickCompaction()
					if j == nil {
						break
					}
					finishJob(t, j)
					peak = max(peak, mem.Used())
				}
				if got := w.tree.Stats().Bytes; got > bound {
					t.Fatalf("settled: %d bytes, want at most %d for %d live", got, bound, live)
				}
			}
			w.check()
			s := w.tree.Stats()
			t.Logf("live %d, settled %d, peak %.2fx, merged %.2fx of flushed, %d merges, runs %d", live, s.Bytes, float64(peak)/float64(live),
				float64(s.Counters.MergedBytes)/float64(s.Counters.FlushedBytes), s.Counters.Merges, s.RunsMax)
			w.finish()
		})
	}
}

// orderedKey returns the n-th key of one table, ten rows to a partition.
func orderedKey(n int) []byte {
	return codec.AppendKey(nil, 16, fmt.Sprintf("p%05d", n/10), fmt.Sprintf("r%d", n%10))
}

// TestRunsBound grows a tree by random keys and holds the number of runs
// against the bound, while merges keep up.
func TestRunsBound(t *testing.T) {
	o := smallOptions()
	o.FileBytes, o.TierRuns = 16<<10, 0
	w := newWorld(t, vfs.NewMem(), o, 2)
	for i := range 4000 {
		w.write(orderedKey(i), w.text(i, 100))
	}
	w.flush()
	w.settle()
	worst, probes := 0, 0
	for range 250 {
		for range 12 {
			n := w.rng.IntN(4000)
			w.write(orderedKey(n), w.text(n, 100))
		}
		w.flush()
		w.settle()
		s := w.tree.Stats()
		worst = max(worst, s.RunsMax)
		for _, ts := range s.Tiers {
			if ts.Runs > 8 {
				t.Fatalf("tier %d has %d runs, want at most 8: %+v", ts.Tier, ts.Runs, s)
			}
		}
		if s.RunsMax > maxTierRuns+1 {
			t.Fatalf("%d runs overlap, want at most %d: %+v", s.RunsMax, maxTierRuns+1, s)
		}
		v := w.tree.Version()
		for n := range 100 {
			probes = max(probes, probesOf(v, orderedKey(n*40)))
		}
		v.Unref()
	}
	if probes > worst {
		t.Fatalf("a get asks %d runs, but only %d overlap", probes, worst)
	}
	s := w.tree.Stats()
	t.Logf("worst %d runs, probes %d, merged %.2fx of flushed; %+v", worst, probes, float64(s.Counters.MergedBytes)/float64(s.Counters.FlushedBytes), s.Tiers)
	w.check()
	w.finish()
}

// probesOf returns how many runs have a file whose bounds hold the user key: as
// many as a Get of a missing key must ask.
func probesOf(v *Version, key []byte) (n int) {
	for _, r := range v.runs {
		if i := r.find(key); i < len(r.parts) && bytes.Compare(r.parts[i].lo, key) <= 0 {
			n++
		}
	}
	return n
}

// TestOrderedLoadIsMoved loads rising keys: no byte is merged.
func TestOrderedLoadIsMoved(t *testing.T) {
	w := newWorld(t, vfs.NewMem(), smallOptions(), 3)
	for i := range 2000 {
		w.write(orderedKey(i), w.text(i, 100))
		if i%200 == 199 {
			w.flush()
			w.settle()
		}
	}
	s := w.tree.Stats()
	if s.Counters.Merges != 0 || s.RunsMax != 1 || s.Bottom().Files != s.Files {
		t.Fatalf("want one run that was moved to the bottom and never merged: %+v", s)
	}
	w.check()
	w.finish()
}

// TestGrowth adds keys in random order, of which some are written again, and
// holds the files against the bound on space, the runs against theirs, and what
// merges write against what a tier's merges alone would.
func TestGrowth(t *testing.T) {
	const flushes, perFlush = 70, 100
	for _, c := range []struct {
		name    string
		again   int // percent
		reopen  bool
		written float64 // bound on merged bytes for each flushed
	}{
		{"new keys", 0, false, 2},
		{"a fifth again", 20, false, 2},
		{"half again", 50, false, 2.5},
		{"new keys after a reopening", 0, true, 3.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := smallOptions()
			o.FileBytes, o.TierRuns = 16<<10, 0
			w := newWorld(t, vfs.NewMem(), o, 9)
			order := w.rng.Perm(flushes * perFlush)
			known, live := 0, int64(0)
			for i := range flushes {
				for range perFlush {
					if known > 0 && w.rng.IntN(100) < c.again {
						w.write(orderedKey(order[w.rng.IntN(known)]), w.text(i, 100))
						continue
					}
					w.write(orderedKey(order[known]), w.text(i, 100))
					known++
				}
				w.flush()
				w.settle()
				s := w.tree.Stats()
				if live == 0 {
					live = s.Bytes / int64(known) // a row
				}
				if bound := live*int64(known)*21/10 + o.FileBytes; s.Bytes > bound {
					t.Fatalf("flush %d: %d bytes, want at most %d for %d rows", i, s.Bytes, bound, known)
				}
				if s.RunsMax > maxTierRuns+1 {
					t.Fatalf("flush %d: %d runs overlap, want at most %d", i, s.RunsMax, maxTierRuns+1)
				}
				if c.reopen && i == flushes/2 {
					w.close()
					w.open()
					w.settle()
				}
			}
			n := w.tree.Stats().Counters
			amplified := float64(n.MergedBytes) / float64(n.FlushedBytes)
			t.Logf("merged %.2f of flushed, %d merges, runs %d", amplified, n.Merges, w.tree.Stats().RunsMax)
			if amplified > c.written {
				t.Errorf("merges wrote %.2f bytes for each that was flushed, want at most %v", amplified, c.written)
			}
			w.check()
			w.finish()
		})
	}
}

// TestGrowthInGroups writes a group of rows again and again in each of many
// partitions, with one new row behind them, and holds the files against the bound
// on space: what is looked up of a file must not be the new rows alone.
func TestGrowthInGroups(t *testing.T) {
	const flushes, partitions = 30, 40
	for _, again := range []int{1, 3, 7, 15, 31} {
		t.Run(fmt.Sprint(again), func(t *testing.T) {
			o := smallOptions()
			o.FileBytes, o.TierRuns = 16<<10, 0
			w := newWorld(t, vfs.NewMem(), o, 9)
			live := int64(0)
			for i := range flushes {
				for p := range partitions {
					for r := range again + 1 {
						row := fmt.Sprintf("a%02d", r)
						if r == again {
							row = fmt.Sprintf("b%02d", i)
						}
						w.write(codec.AppendKey(nil, 16, fmt.Sprintf("p%02d", p), row), w.text(i, 100))
					}
				}
				w.flush()
				w.settle()
				s, rows := w.tree.Stats(), int64(partitions*(again+1+i))
				if live == 0 {
					live = s.Bytes / rows // a row
				}
				if bound := live*rows*21/10 + o.FileBytes; s.Bytes > bound {
					t.Fatalf("flush %d: %d bytes, want at most %d for %d rows", i, s.Bytes, bound, rows)
				}
			}
			w.check()
			w.finish()
		})
	}
}

// TestQueue lets rows be inserted at one end of a partition and deleted at the
// other: the graves must not pile up.
func TestQueue(t *testing.T) {
	const window, perFlush = 200, 150
	w := newWorld(t, vfs.NewMem(), smallOptions(), 4)
	for i := range 3000 {
		w.write(codec.AppendKey(nil, 18, "other", fmt.Sprint(i)), w.text(i, 100))
	}
	key := func(n int) []byte { return codec.AppendKey(nil, 17, "queue", fmt.Sprintf("%08d", n)) }
	for n := range 6000 {
		w.write(key(n), w.text(n, 60))
		if n >= window {
			w.write(key(n-window), "")
		}
		if n%perFlush != perFlush-1 {
			continue
		}
		w.flush()
		w.settle()
		if graves := w.graves(codec.AppendTable(nil, 17), codec.AppendTable(nil, 18)); graves > 2*window {
			t.Fatalf("after %d rows a scan meets %d tombstones, want at most %d; %+v", n, graves, 2*window, w.tree.Stats())
		}
	}
	w.check()
	w.finish()
}

// graves counts the tombstones that a scan meets.
func (w *world) graves(lower, upper []byte) (n int) {
	v := w.tree.Version()
	defer v.Unref()
	for _, s := range v.AppendSources(nil, IterOptions{Lower: lower, Upper: upper, Snapshot: codec.MaxSeq}) {
		for ok := s.SeekGE(lower); ok; ok = s.Next() {
			if s.Row() == nil {
				n++
			}
		}
		must(w.t, s.Close())
	}
	return n
}

// TestDeleteEverything leaves an empty tree without files.
func TestDeleteEverything(t *testing.T) {
	w := newWorld(t, vfs.NewMem(), smallOptions(), 5)
	for i := range 500 {
		w.put(i, 100)
	}
	w.flush()
	w.settle()
	for i := range 500 {
		w.write(testKey(i), "")
	}
	w.flush()
	w.settle()
	if s := w.tree.Stats(); s.Files != 0 {
		t.Fatalf("files are left: %+v", s)
	}
	w.finish()
}

// TestTombstoneStaysAboveOlderRun merges a tombstone while what it hides lies
// in an older run that takes no part.
func TestTombstoneStaysAboveOlderRun(t *testing.T) {
	o := smallOptions()
	w := newWorld(t, vfs.NewMem(), o, 6)
	for i := range 400 {
		w.put(i, 100)
	}
	w.flush()
	w.settle()
	for i := range o.TierRuns {
		w.write(testKey(7*i), "")
		w.put(7*i+1, 10)
		w.put(7*i+2, 10)
		w.flush()
	}
	j := w.tree.PickCompaction()
	if j == nil || j.What() != "merge (sweep)" {
		t.Fatalf("want a sweep of tier 0, got %v", j)
	}
	finishJob(t, j)
	if s := w.tree.Stats(); s.TierRuns(0) != 0 || s.TierRuns(1) != 1 || s.Tombstones != uint64(o.TierRuns) {
		t.Fatalf("want %d tombstones in tier 1: %+v", o.TierRuns, s)
	}
	w.check()
	full := w.tree.NewFullCompaction()
	finishJob(t, full)
	if s := w.tree.Stats(); s.Tombstones != 0 || s.Files != s.Bottom().Files {
		t.Fatalf("want no tombstones and nothing above the bottom: %+v", s)
	}
	w.check()
	w.finish()
}

// TestFullCompactionIsIdempotent finds nothing to do the second time.
func TestFullCompactionIsIdempotent(t *testing.T) {
	w := newWorld(t, vfs.NewMem(), smallOptions(), 7)
	for range 5 {
		for range 200 {
			w.put(w.rng.IntN(300), 100)
		}
		w.flush()
	}
	finishJob(t, w.tree.NewFullCompaction())
	before := w.tree.Stats()
	finishJob(t, w.tree.NewFullCompaction())
	after := w.tree.Stats()
	if before.Counters != after.Counters {
		t.Fatalf("the second compaction did something: %+v, then %+v", before.Counters, after.Counters)
	}
	for _, f := range w.files() {
		if f.MaxSeq != 0 || f.Tier != manifest.BottomTier {
			t.Fatalf("file %d of tier %d has sequences up to %d, want the bottom's 0", f.Number, f.Tier, f.MaxSeq)
		}
	}
	w.check()
	w.finish()
}

func (w *world) files() []manifest.File {
	v := w.tree.Version()
	defer v.Unref()
	return v.Files()
}
