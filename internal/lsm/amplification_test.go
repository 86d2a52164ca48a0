package lsm

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/pick"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestSpaceBound overwrites a working set many times, in several patterns. The files
// must take at most 2.1 times the live rows and one file more.
func TestSpaceBound(t *testing.T) {
	const keys, perFlush = 1500, 400
	const rounds = 60
	if testing.Short() {
		t.Skip("a bound of bytes, which the race detector does not change")
	}
	patterns := map[string]func(h *harness, i int) int{
		"uniform":   func(h *harness, i int) int { return h.rng.IntN(keys) },
		"ascending": func(h *harness, i int) int { return i % keys },
		"skewed": func(h *harness, i int) int {
			return min(h.rng.IntN(keys), h.rng.IntN(keys), h.rng.IntN(keys), h.rng.IntN(keys))
		},
		"hot range": func(h *harness, i int) int {
			if i%20 == 0 {
				return h.rng.IntN(keys)
			}
			return keys/2 + h.rng.IntN(keys/10)
		},
	}
	for name, next := range patterns {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			o := smallOptions()
			o.FileBytes, o.TierRuns = 16<<10, 4
			h := newHarness(t, mem, o, 1)
			peak, written := int64(0), 0
			for i := range keys {
				h.write(orderedKey(i), h.text(i, 100))
			}
			h.flush()
			h.compactAll()
			live := h.tree.Stats().Bytes
			bound := live*21/10 + o.FileBytes
			for range rounds {
				for range perFlush {
					i := next(h, written)
					written++
					h.write(orderedKey(i), h.text(i, 100))
				}
				h.flush()
				for {
					j := h.tree.PickCompaction()
					if j == nil {
						break
					}
					finishJob(t, j)
					peak = max(peak, mem.Used())
				}
				if got := h.tree.Stats().Bytes; got > bound {
					t.Fatalf("after all compactions: %d bytes, want at most %d for %d live", got, bound, live)
				}
			}
			h.check()
			s := h.tree.Stats()
			t.Logf("live %d, compacted %d, peak %.2fx, compactions wrote %.2fx of flushed, %d compactions, runs %d", live, s.Bytes, float64(peak)/float64(live),
				float64(s.Counters.CompactedBytes)/float64(s.Counters.FlushedBytes), s.Counters.Compactions, s.RunsMax)
			h.finish()
		})
	}
}

// orderedKey returns the n-th key of one table, ten rows to a partition.
func orderedKey(n int) []byte {
	return codec.AppendKey(nil, 16, fmt.Sprintf("p%05d", n/10), fmt.Sprintf("r%d", n%10))
}

// TestRunsBound writes random keys to a tree and checks the number of runs after each
// flush and its compactions.
func TestRunsBound(t *testing.T) {
	race.SkipOneGoroutine(t)
	o := smallOptions()
	o.FileBytes, o.TierRuns = 16<<10, 0
	h := newHarness(t, vfs.NewMem(), o, 2)
	for i := range 4000 {
		h.write(orderedKey(i), h.text(i, 100))
	}
	h.flush()
	h.compactAll()
	worst, probes, rounds := 0, 0, 250
	if testing.Short() {
		rounds = 80 // tier 1 is full after 64 flushes
	}
	for range rounds {
		for range 12 {
			n := h.rng.IntN(4000)
			h.write(orderedKey(n), h.text(n, 100))
		}
		h.flush()
		h.compactAll()
		s := h.tree.Stats()
		worst = max(worst, s.RunsMax)
		for _, ts := range s.Tiers {
			if ts.Runs > 8 {
				t.Fatalf("tier %d has %d runs, want at most 8: %+v", ts.Tier, ts.Runs, s)
			}
		}
		if s.RunsMax > pick.MaxTierRuns+1 {
			t.Fatalf("%d runs overlap, want at most %d: %+v", s.RunsMax, pick.MaxTierRuns+1, s)
		}
		v := h.tree.Version()
		for n := range 100 {
			probes = max(probes, probesOf(v, orderedKey(n*40)))
		}
		v.Unref()
	}
	if probes > worst {
		t.Fatalf("a get probes %d runs, but only %d overlap", probes, worst)
	}
	s := h.tree.Stats()
	t.Logf("worst %d runs, probes %d, compactions wrote %.2fx of flushed; %+v", worst, probes,
		float64(s.Counters.CompactedBytes)/float64(s.Counters.FlushedBytes), s.Tiers)
	h.check()
	h.finish()
}

// probesOf returns the number of runs with a file whose bounds contain the user key: a
// Get of a missing key probes them.
func probesOf(v *Version, key []byte) (n int) {
	for _, r := range v.runs {
		if i := r.Find(key); i < len(r.SSTs) && bytes.Compare(r.SSTs[i].Lo, key) <= 0 {
			n++
		}
	}
	return n
}

// TestWritesOfUniformUpdates overwrites random rows of ten tables, whose keys have digits only. The bytes above a range of
// the bottom must be known well enough that no range is rewritten for few of them.
func TestWritesOfUniformUpdates(t *testing.T) {
	const keys, perFlush, rounds = 8000, 800, 40
	if testing.Short() {
		t.Skip("a bound of bytes, which the race detector does not change")
	}
	o := smallOptions()
	o.FileBytes, o.TierRuns, o.GroupBytes = 32<<10, 0, 1<<10
	h := newHarness(t, vfs.NewMem(), o, 10)
	write := func(n int) {
		h.write(codec.AppendKey(nil, uint32(16+n%10), fmt.Sprintf("p%05d", n/100), fmt.Sprint(n/10%10)), h.text(n, 80))
		if n = int(h.seq); n%perFlush == 0 {
			h.flush()
			h.compactAll()
		}
	}
	for n := range keys {
		write(n)
	}
	finishJob(t, h.tree.NewFullCompaction())
	before := h.tree.Counters()
	for range rounds * perFlush {
		write(h.rng.IntN(keys))
	}
	s := h.tree.Stats()
	amplified := float64(s.Counters.CompactedBytes-before.CompactedBytes) / float64(s.Counters.FlushedBytes-before.FlushedBytes)
	t.Logf("compactions wrote %.2f of flushed, space amplification %.2f", amplified, s.SpaceAmp)
	if amplified > 1.4 {
		t.Errorf("compactions wrote %.2f bytes for each flushed byte, want at most 1.4", amplified)
	}
	h.check()
	h.finish()
}

// TestOrderedLoadIsMoved loads rising keys. No compaction rewrites them.
func TestOrderedLoadIsMoved(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 3)
	for i := range 2000 {
		h.write(orderedKey(i), h.text(i, 100))
		if i%200 == 199 {
			h.flush()
			h.compactAll()
		}
	}
	s := h.tree.Stats()
	if s.Counters.Compactions != 0 || s.RunsMax != 1 || s.Bottom().Files != s.Files {
		t.Fatalf("want one run that was moved to the bottom and never rewritten: %+v", s)
	}
	h.check()
	h.finish()
}

// TestGrowth adds keys in random order and overwrites some. It checks the bounds of
// space, of runs, and of the bytes that compactions write.
func TestGrowth(t *testing.T) {
	const perFlush = 100
	const flushes = 70
	if testing.Short() {
		t.Skip("a bound of bytes, which the race detector does not change")
	}
	for _, c := range []struct {
		name    string
		again   int // percent
		reopen  bool
		written float64 // bound on bytes written by compactions for each flushed
	}{
		{"new keys", 0, false, 2},
		{"a fifth again", 20, false, 2},
		{"half again", 50, false, 2.5},
		{"new keys after a reopening", 0, true, 3.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := smallOptions()
			o.FileBytes, o.TierRuns = 16<<10, 0
			h := newHarness(t, vfs.NewMem(), o, 9)
			order := h.rng.Perm(flushes * perFlush)
			known, live := 0, int64(0)
			for i := range flushes {
				for range perFlush {
					if known > 0 && h.rng.IntN(100) < c.again {
						h.write(orderedKey(order[h.rng.IntN(known)]), h.text(i, 100))
						continue
					}
					h.write(orderedKey(order[known]), h.text(i, 100))
					known++
				}
				h.flush()
				h.compactAll()
				s := h.tree.Stats()
				if live == 0 {
					live = s.Bytes / int64(known) // a row
				}
				if bound := live*int64(known)*21/10 + o.FileBytes; s.Bytes > bound {
					t.Fatalf("flush %d: %d bytes, want at most %d for %d rows", i, s.Bytes, bound, known)
				}
				if s.RunsMax > pick.MaxTierRuns+1 {
					t.Fatalf("flush %d: %d runs overlap, want at most %d", i, s.RunsMax, pick.MaxTierRuns+1)
				}
				if c.reopen && i == flushes/2 {
					h.close()
					h.open()
					h.compactAll()
				}
			}
			n := h.tree.Stats().Counters
			amplified := float64(n.CompactedBytes) / float64(n.FlushedBytes)
			t.Logf("compactions wrote %.2f of flushed, %d compactions, runs %d", amplified, n.Compactions, h.tree.Stats().RunsMax)
			if amplified > c.written {
				t.Errorf("compactions wrote %.2f bytes for each flushed byte, want at most %v", amplified, c.written)
			}
			h.check()
			h.finish()
		})
	}
}

// TestGrowthInGroups overwrites a group of rows in each of many partitions and adds
// one new row after it, repeatedly. It checks the bound of space: the sample of keys
// that is looked up must not contain the new rows alone.
func TestGrowthInGroups(t *testing.T) {
	const partitions = 40
	const flushes = 30
	if testing.Short() {
		t.Skip("a bound of bytes, which the race detector does not change")
	}
	for _, again := range []int{1, 3, 7, 15, 31} {
		t.Run(fmt.Sprint(again), func(t *testing.T) {
			o := smallOptions()
			o.FileBytes, o.TierRuns = 16<<10, 0
			h := newHarness(t, vfs.NewMem(), o, 9)
			live := int64(0)
			for i := range flushes {
				for p := range partitions {
					for r := range again + 1 {
						row := fmt.Sprintf("a%02d", r)
						if r == again {
							row = fmt.Sprintf("b%02d", i)
						}
						h.write(codec.AppendKey(nil, 16, fmt.Sprintf("p%02d", p), row), h.text(i, 100))
					}
				}
				h.flush()
				h.compactAll()
				s, rows := h.tree.Stats(), int64(partitions*(again+1+i))
				if live == 0 {
					live = s.Bytes / rows // a row
				}
				if bound := live*rows*21/10 + o.FileBytes; s.Bytes > bound {
					t.Fatalf("flush %d: %d bytes, want at most %d for %d rows", i, s.Bytes, bound, rows)
				}
			}
			h.check()
			h.finish()
		})
	}
}

// TestQueue inserts rows at one end of a partition and deletes them at the other. The
// number of tombstones must remain bounded.
func TestQueue(t *testing.T) {
	race.SkipOneGoroutine(t)
	const window, perFlush = 200, 150
	h := newHarness(t, vfs.NewMem(), smallOptions(), 4)
	for i := range 3000 {
		h.write(codec.AppendKey(nil, 18, "other", fmt.Sprint(i)), h.text(i, 100))
	}
	key := func(n int) []byte { return codec.AppendKey(nil, 17, "queue", fmt.Sprintf("%08d", n)) }
	const rows = 6000
	for n := range rows {
		h.write(key(n), h.text(n, 60))
		if n >= window {
			h.write(key(n-window), "")
		}
		if n%perFlush != perFlush-1 {
			continue
		}
		h.flush()
		h.compactAll()
		if tombstones := h.countTombstones(codec.AppendTable(nil, 17), codec.AppendTable(nil, 18)); tombstones > 2*window {
			t.Fatalf("after %d rows a scan reads %d tombstones, want at most %d; %+v", n, tombstones, 2*window, h.tree.Stats())
		}
	}
	h.check()
	h.finish()
}

// countTombstones counts the tombstones that a scan reads.
func (h *harness) countTombstones(lower, upper []byte) (n int) {
	v := h.tree.Version()
	defer v.Unref()
	for _, s := range sourcesOf(v, sstable.IterOptions{Lower: lower, Upper: upper, Snapshot: codec.MaxSeq}) {
		for ok := s.SeekGE(lower); ok; ok = s.Next() {
			if s.Row() == nil {
				n++
			}
		}
		must(h.t, s.Close())
	}
	return n
}

// TestDeleteEverything leaves an empty tree without files.
func TestDeleteEverything(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 5)
	for i := range 500 {
		h.put(i, 100)
	}
	h.flush()
	h.compactAll()
	for i := range 500 {
		h.write(testKey(i), "")
	}
	h.flush()
	h.compactAll()
	if s := h.tree.Stats(); s.Files != 0 {
		t.Fatalf("files remain: %+v", s)
	}
	h.finish()
}

// TestTombstoneAboveOlderRun compacts a tombstone while the version that it hides is in
// an older run, which is not an input.
func TestTombstoneAboveOlderRun(t *testing.T) {
	o := smallOptions()
	h := newHarness(t, vfs.NewMem(), o, 6)
	for i := range 400 {
		h.put(i, 100)
	}
	h.flush()
	h.compactAll()
	for i := range o.TierRuns {
		h.write(testKey(37*i), "")
		h.put(37*i+1, 10)
		h.put(37*i+2, 10)
		h.flush()
	}
	j := h.tree.PickCompaction()
	if j == nil || j.What != "compaction (tier)" {
		t.Fatalf("want a compaction of tier 0, got %v", j)
	}
	finishJob(t, j)
	if s := h.tree.Stats(); s.TierRuns(0) != 0 || s.TierRuns(1) != 1 || s.Tombstones != uint64(o.TierRuns) {
		t.Fatalf("want %d tombstones in tier 1: %+v", o.TierRuns, s)
	}
	h.check()
	full := h.tree.NewFullCompaction()
	finishJob(t, full)
	if s := h.tree.Stats(); s.Tombstones != 0 || s.Files != s.Bottom().Files {
		t.Fatalf("want no tombstones and nothing above the bottom: %+v", s)
	}
	h.check()
	h.finish()
}

// TestFullCompactionIsIdempotent runs a second full compaction, which does nothing.
func TestFullCompactionIsIdempotent(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), smallOptions(), 7)
	for range 5 {
		for range 200 {
			h.put(h.rng.IntN(300), 100)
		}
		h.flush()
	}
	finishJob(t, h.tree.NewFullCompaction())
	before := h.tree.Stats()
	finishJob(t, h.tree.NewFullCompaction())
	after := h.tree.Stats()
	if before.Counters != after.Counters {
		t.Fatalf("the second compaction did something: %+v, then %+v", before.Counters, after.Counters)
	}
	for _, f := range h.files() {
		if f.MaxSeq != 0 || f.Tier != manifest.BottomTier {
			t.Fatalf("file %d of tier %d has sequences up to %d, want 0 in the bottom", f.Number, f.Tier, f.MaxSeq)
		}
		if most := h.opts.FileBytes * 3 / 2; f.Size > most {
			t.Fatalf("file %d has %d bytes, want at most %d", f.Number, f.Size, most)
		}
	}
	h.check()
	h.finish()
}

func (h *harness) files() []manifest.File {
	v := h.tree.Version()
	defer v.Unref()
	return v.Files()
}

// TestFlushesBesideFullCompaction flushes keys that a full compaction has passed. Their runs must
// not collect until its end, because writers wait if 20 runs overlap.
func TestFlushesBesideFullCompaction(t *testing.T) {
	race.SkipOneGoroutine(t)
	const maxRuns = 20 // as in package engine
	o := smallOptions()
	o.TierRuns = 0 // the default
	h := newHarness(t, vfs.NewMem(), o, 8)
	for n := range 1600 {
		h.put(n, 400)
	}
	h.flush()
	h.compactAll()
	for n := range 200 { // so that all of the bottom is compacted
		h.put(8*n, 20)
	}
	h.flush()
	full := h.tree.NewFullCompaction()
	flushes, most, done := 0, 0, false
	for step := 0; !done; step++ {
		var err error
		done, err = full.Step(t.Context())
		must(t, err)
		if step%4 == 0 {
			h.put(0, 10)
			h.flush()
			flushes++
		}
		most = max(most, h.tree.Stats().RunsMax)
	}
	if flushes < 3*maxRuns || most > maxRuns {
		t.Errorf("%d flushes, up to %d runs overlapped, want %d at most", flushes, most, maxRuns)
	}
	h.check()
	h.compactAll()
	h.finish()
}
