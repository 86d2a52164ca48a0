package partlock

import (
	"sync"
	"testing"
)

// TestLockSet takes overlapping sets beside single locks and all locks. Every lock excludes,
// and no two goroutines wait for each other.
func TestLockSet(t *testing.T) {
	var locks Locks
	var counts [len(locks)]int
	const rounds = 2_000
	want := [len(locks)]int{}
	var wg sync.WaitGroup
	for g := range uint64(4) {
		hashes := []uint64{1023 + 1024*g, 64, 63 + 2048*g, 0, 64, 500 - g}
		if g%2 == 0 {
			hashes = []uint64{500 - g, 64, 1023, 0}
		}
		var s Set
		added := map[int]bool{}
		for _, h := range hashes {
			s.Add(h)
			added[int(h%1024)] = true
		}
		for i := range added {
			want[i] += rounds
		}
		wg.Go(func() {
			for range rounds {
				locks.LockSet(&s)
				for i := range added {
					counts[i]++
				}
				locks.UnlockSet(&s)
			}
		})
	}
	for i := range want {
		want[i] += 20
	}
	for range 20 {
		locks.LockAll()
		for i := range counts {
			counts[i]++
		}
		locks.UnlockAll()
		mu := locks.Of(64 + 1024)
		mu.Lock()
		counts[64]++
		mu.Unlock()
	}
	want[64] += 20
	wg.Wait()
	if counts != want {
		t.Error("two goroutines had one lock at a time")
	}
	for i := range locks {
		if !locks[i].TryLock() {
			t.Fatalf("lock %d is still locked", i)
		}
		locks[i].Unlock() // +checklocksignore: TryLock
	}
}
