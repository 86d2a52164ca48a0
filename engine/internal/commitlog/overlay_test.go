package commitlog

import (
	"math/rand/v2"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// TestOverlay compares with a list of all commits: those that are pending are
// asked newest first. Hashes are so few that keys and partitions share them.
func TestOverlay(t *testing.T) {
	const seed, rounds = 7, 20_000
	r := rand.New(rand.NewPCG(seed, seed))
	w := newWorld(t, Options{SegmentBytes: 64 << 20})
	o := &w.log.overlay
	var list []*Commit
	partHash := func(part int) uint64 { return uint64(part/2) * overlayShards } // two share one, all a shard
	keyHash := func(row int) uint64 { return uint64(row%3)<<56 | uint64(row/2) }
	for round := range rounds {
		switch n := r.IntN(100); {
		case n == 0:
			o.clear()
			list = nil
		case n < 50 && len(list) > 0: // mostly the oldest, as a log does
			i := r.IntN(1 + r.IntN(len(list)))
			o.remove(list[i])
			o.remove(list[i])
			list = append(list[:i:i], list[i+1:]...)
		default:
			part := r.IntN(6)
			c := NewCommit()
			c.SetPartition(partHash(part), codec.PartitionLen(key(part, 0)))
			for _, row := range r.Perm(8)[:1+r.IntN(4)] {
				if r.IntN(2) == 0 {
					c.Delete(key(part, row), keyHash(row))
				} else {
					c.Put(key(part, row), keyHash(row), binaryShape, edm.Properties{{Name: "B", Value: edm.Binary(nil)}})
				}
			}
			w.log.mu.Lock()
			must(t, "place", w.log.placeLocked(c))
			w.log.mu.Unlock()
			o.put(c)
			list = append(list, c)
		}
		part, row := r.IntN(6), r.IntN(8)
		want, busy := Pending{}, false
		for _, c := range list {
			busy = busy || c.partHash == partHash(part)
			for i := range c.entries {
				if string(codec.EntryKey(c.seg.image[c.offs[i]:])) == string(key(part, row)) {
					want = Pending{c.seg, c.firstSeq + uint64(i), c.offs[i], c.entries[i].shape}
				}
			}
		}
		got, ok := w.log.Pending(partHash(part), keyHash(row), key(part, row))
		if got != want || ok != (want.Seg != nil) || w.log.Quiet(partHash(part)) == busy {
			t.Fatalf("seed %d, round %d: key %d in partition %d is pending as %d (%v), quiet %v; want %d, quiet %v; again with go test -run %s ./engine/internal/commitlog",
				seed, round, row, part, got.Seq, ok, w.log.Quiet(partHash(part)), want.Seq, !busy, t.Name())
		}
	}
}
