package lsm

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/internal/lsm/internal/runs"
)

// TestOverlapping compares overlapping and Run.Within with a look at each sstable, for random runs.
func TestOverlapping(t *testing.T) {
	const seed, keys = 1, 60
	r := rand.New(rand.NewPCG(seed, 0))
	key := func(n int) []byte { return []byte{byte(n)} }
	random := func() (ssts []*runs.SST) {
		for at := r.IntN(keys); at < keys && len(ssts) < 10; at += 1 + r.IntN(keys/4) {
			hi := at + r.IntN(3)
			ssts = append(ssts, &runs.SST{Lo: key(at), Hi: key(hi)})
			at = hi
		}
		return ssts
	}
	seen := map[bool]int{}
	for i := range 10_000 {
		a, b := random(), random()
		want := false
		for _, s := range a {
			for _, o := range b {
				want = want || s.Lo[0] <= o.Hi[0] && o.Lo[0] <= s.Hi[0]
			}
		}
		seen[want]++
		if got := overlapping(a, b); got != want {
			t.Fatalf("seed %d, pair %d: overlapping is %v, want %v", seed, i, got, want)
		}
		lower := key(r.IntN(keys))
		upper := key(int(lower[0]) + r.IntN(10))
		if r.IntN(4) == 0 {
			upper = nil
		}
		var within []*runs.SST
		for _, s := range a {
			if s.Overlaps(lower, upper) {
				within = append(within, s)
			}
		}
		if got := (&runs.Run{SSTs: a}).Within(lower, upper); !slices.Equal(got, within) {
			t.Fatalf("seed %d, pair %d: %d sstables are within [%x, %x), want %d", seed, i, len(got), lower, upper, len(within))
		}
	}
	if len(seen) < 2 {
		t.Errorf("overlapping was always the same: %v", seen)
	}
}
