package commitlog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/race"
)

// TestOverlay compares the overlay with a list of the pending commits. Commits have one to three
// parts. There are so few hashes that keys and partitions collide.
func TestOverlay(t *testing.T) {
	race.SkipOneGoroutine(t)
	t.Run("few", func(t *testing.T) { testOverlay(t, 20_000, 8, 50, 100) })
	t.Run("many", func(t *testing.T) { testOverlay(t, 6_000, 800, 80, 1500) })
}

// testOverlay writes rows of six partitions. It adds a commit in puts of 100
// rounds and removes one in the others; every 2000 rounds it swaps the two. Once in
// clears rounds it clears the overlay.
func testOverlay(t *testing.T, rounds, rows, puts, clears int) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	w := newWorld(t, Options{SegmentBytes: 64 << 20})
	o := &w.log.overlay
	var list []*Commit
	partHash := func(part int) uint64 { return uint64(part/2) * overlayShards } // two partitions share a hash, all share a shard
	keyHash := func(row int) uint64 { return uint64(row%3)<<56 | uint64(row/2) }
	for round := range rounds {
		if round%2000 == 1999 {
			puts = 100 - puts
		}
		switch {
		case r.IntN(clears) == 0:
			o.clear()
			list = nil
		case r.IntN(100) >= puts && len(list) > 0: // mostly the oldest, as in a log
			i := 0
			if r.IntN(20) == 0 {
				i = r.IntN(len(list))
			}
			o.remove(list[i])
			o.remove(list[i])
			list = append(list[:i:i], list[i+1:]...)
		default:
			c := NewCommit()
			for range 1 + r.IntN(3)*r.IntN(2) {
				part := r.IntN(6)
				c.BeginPart(partHash(part), codec.PartitionLen(key(part, 0)))
				from := r.IntN(rows/8) * 8
				for _, row := range r.Perm(8)[:1+r.IntN(4)] {
					row += from
					if r.IntN(2) == 0 {
						c.Delete(key(part, row), keyHash(row))
					} else {
						c.Put(key(part, row), keyHash(row), binaryShape, edm.Properties{{Name: "B", Value: edm.Binary(nil)}})
					}
				}
				if len(c.parts) > 1 && r.IntN(5) == 0 {
					c.DropPart()
				}
			}
			w.log.mu.Lock()
			must(t, "assign", w.log.assignLocked(c))
			w.log.mu.Unlock()
			o.put(c)
			list = append(list, c)
		}
		n, row := r.IntN(6), r.IntN(rows)
		wantKey, want, busy := key(n, row), Pending{}, false
		for _, c := range list {
			busy = busy || slices.ContainsFunc(c.parts, func(p part) bool { return p.hash == partHash(n) })
			for i := range c.entries {
				if bytes.Equal(codec.EntryKey(c.seg.image[c.offs[i]:]), wantKey) {
					want = Pending{c.seg, c.firstSeq + uint64(i), c.offs[i], c.entries[i].shape}
				}
			}
		}
		got, ok := w.log.Pending(partHash(n), keyHash(row), wantKey)
		if got != want || ok != (want.Seg != nil) || w.log.HasPending(partHash(n)) != busy {
			t.Fatalf("seed %d, round %d: key %d of partition %d is pending as %d (%v), HasPending %v; want %d, %v; "+
				"repeat with go test -run %s ./engine/internal/commitlog",
				seed, round, row, n, got.Seq, ok, w.log.HasPending(partHash(n)), want.Seq, busy, t.Name())
		}
	}
}

// BenchmarkPending looks up a key that is not pending in a partition with n pending
// commits, and adds and removes a commit.
func BenchmarkPending(b *testing.B) {
	for _, n := range []int{0, minIndexed / 2, minIndexed, 4096} {
		b.Run(fmt.Sprint("pending=", n), func(b *testing.B) {
			var o overlay
			commits := make([]*Commit, n+1)
			for i := range commits {
				c := NewCommit()
				c.BeginPart(1, 1)
				c.Delete(key(1, i), codec.KeyHash(key(1, i)))
				commits[i] = c
				if i > 0 {
					o.put(c)
				}
			}
			absent := key(1, -1)
			hash := codec.KeyHash(absent)
			for i := 0; b.Loop(); i++ {
				if _, ok := o.get(1, hash, absent); ok {
					b.Fatal("a key is pending that nobody wrote")
				}
				o.put(commits[i%len(commits)])
				o.remove(commits[(i+1)%len(commits)])
			}
		})
	}
}
