package lsm

import (
	"bytes"
	"context"
	"testing"

	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestModel compares a tree with a map after random writes, snapshots, drops, flushes,
// compactions interrupted by flushes, and reopenings.
func TestModel(t *testing.T) {
	race.SkipOneGoroutine(t)
	rounds := 18
	if testing.Short() {
		rounds = 2
	}
	for seed := range uint64(rounds) {
		o := smallOptions()
		o.FileBytes <<= seed % 3
		o.TierRuns += int(seed % 3)
		if seed%2 == 1 {
			o.CompactedCompression = sstable.CompressionSmall
		}
		h := newHarness(t, vfs.NewMem(), o, seed)
		ok := t.Run("", func(t *testing.T) {
			t.Logf("seed %d", seed)
			h.t = t
			for range 2500 {
				h.randomStep()
			}
			h.flush()
			h.compactAll()
			h.check()
			t.Logf("%+v", h.tree.Stats())
			h.finish()
		})
		if !ok {
			return
		}
	}
}

func (h *harness) randomStep() {
	keys := 300
	switch n := h.rng.IntN(1000); {
	case n < 700:
		size := h.rng.IntN(120)
		if h.rng.IntN(100) == 0 {
			size = 6000
		}
		h.put(h.rng.IntN(keys), size)
	case n < 850:
		h.write(testKey(h.rng.IntN(keys)), "")
	case n < 870:
		h.flush()
	case n < 950:
		h.compactionStep()
	case n < 960:
		if h.seq > 0 && len(h.snaps) < 4 && (len(h.snaps) == 0 || h.snaps[len(h.snaps)-1] < h.seq) {
			h.snaps = append(h.snaps, h.seq)
		}
	case n < 975:
		if len(h.snaps) > 0 {
			i := h.rng.IntN(len(h.snaps))
			h.snaps = append(h.snaps[:i:i], h.snaps[i+1:]...)
		}
	case n < 976:
		h.drop(uint32(16 + h.rng.IntN(2)))
	case n < 978:
		h.flush()
		h.close()
		h.open()
	case n < 979:
		if h.job == nil {
			h.job = h.tree.NewFullCompaction()
		}
	case n < 982:
		if h.job != nil && h.rng.IntN(3) == 0 {
			h.job.Abort()
			h.job = nil
		}
	case n < 992:
		h.check()
	case n < 996:
		h.load(h.randomRows(1+h.rng.IntN(2*keys), keys))
	default: // as if queries had passed tombstones in a range of any entries
		lower, upper := testKey(h.rng.IntN(keys)), testKey(h.rng.IntN(keys))
		for due := bytes.Compare(lower, upper) >= 0; !due; {
			due = h.tree.FoundDeleted(lower, upper, 1<<20)
		}
	}
}

func (h *harness) compactionStep() {
	h.t.Helper()
	if h.job == nil {
		if h.job = h.tree.PickCompaction(); h.job == nil {
			return
		}
	}
	for range 1 + h.rng.IntN(4) {
		done, err := h.job.Step(context.Background())
		must(h.t, err)
		if done {
			h.job = nil
			return
		}
	}
}

// finish makes the checks at the end of every test.
func (h *harness) finish() {
	h.t.Helper()
	h.close()
	h.checkFiles()
	h.open()
	h.check()
	verified, err := h.tree.Verify(context.Background())
	must(h.t, err)
	if len(verified.Findings) > 0 {
		h.t.Fatalf("verify: %v", verified.Findings)
	}
	h.close()
}
