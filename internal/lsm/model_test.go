package lsm

import (
	"context"
	"testing"

	"github.com/tablerock-db/tablerock/vfs"
)

// TestModel lets random writes, snapshots, drops, flushes, compactions that are
// interrupted by flushes, and reopenings run against a map.
func TestModel(t *testing.T) {
	rounds := 18
	if testing.Short() {
		rounds = 4
	}
	for seed := range uint64(rounds) {
		o := smallOptions()
		o.FileBytes <<= seed % 3
		o.TierRuns += int(seed % 3)
		w := newWorld(t, vfs.NewMem(), o, seed)
		ok := t.Run("", func(t *testing.T) {
			t.Logf("seed %d", seed)
			w.t = t
			for range 2500 {
				w.randomStep()
			}
			w.flush()
			w.settle()
			w.check()
			t.Logf("%+v", w.tree.Stats())
			w.finish()
		})
		if !ok {
			return
		}
	}
}

func (w *world) randomStep() {
	keys := 300
	switch n := w.rng.IntN(1000); {
	case n < 700:
		size := w.rng.IntN(120)
		if w.rng.IntN(100) == 0 {
			size = 6000
		}
		w.put(w.rng.IntN(keys), size)
	case n < 850:
		w.write(testKey(w.rng.IntN(keys)), "")
	case n < 870:
		w.flush()
	case n < 950:
		w.mergeStep()
	case n < 960:
		if w.seq > 0 && len(w.snaps) < 4 && (len(w.snaps) == 0 || w.snaps[len(w.snaps)-1] < w.seq) {
			w.snaps = append(w.snaps, w.seq)
		}
	case n < 975:
		if len(w.snaps) > 0 {
			i := w.rng.IntN(len(w.snaps))
			w.snaps = append(w.snaps[:i:i], w.snaps[i+1:]...)
		}
	case n < 976:
		w.drop(uint32(16 + w.rng.IntN(2)))
	case n < 978:
		w.flush()
		w.close()
		w.open()
	case n < 979:
		if w.merge == nil {
			w.merge = w.tree.NewFullCompaction()
		}
	case n < 982:
		if w.merge != nil && w.rng.IntN(3) == 0 {
			w.merge.Abort()
			w.merge = nil
		}
	case n < 992:
		w.check()
	}
}

func (w *world) mergeStep() {
	w.t.Helper()
	if w.merge == nil {
		if w.merge = w.tree.PickCompaction(); w.merge == nil {
			return
		}
	}
	for range 1 + w.rng.IntN(4) {
		done, err := w.merge.Step(context.Background())
		must(w.t, err)
		if done {
			w.merge = nil
			return
		}
	}
}

// finish checks what must be true at the end of every test.
func (w *world) finish() {
	w.t.Helper()
	w.close()
	w.checkFiles()
	w.open()
	w.check()
	verified, err := w.tree.Verify(context.Background())
	must(w.t, err)
	if len(verified.Findings) > 0 {
		w.t.Fatalf("verify: %v", verified.Findings)
	}
	w.close()
}
