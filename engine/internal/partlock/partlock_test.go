package partlock

import (
	"bytes"
	"runtime"
	"sync"
	"testing"
	"time"
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

// asleep returns when a goroutine sleeps in Mutex.Lock.
func asleep(t *testing.T) {
	t.Helper()
	text := make([]byte, 1<<20)
	for start := time.Now(); !bytes.Contains(text[:runtime.Stack(text, true)], []byte("[sync.Mutex.Lock")); {
		if time.Since(start) > 5*time.Minute {
			t.Fatal("LockSet does not wait after 5 minutes")
		}
		runtime.Gosched()
	}
}

// TestLockSetWaits takes a set of locks while one of them is held for long, as for a read of a
// file. Meanwhile the others of the set are free.
func TestLockSetWaits(t *testing.T) {
	for _, held := range []uint64{0, 500, 1023} {
		var locks Locks
		var s Set
		for _, h := range []uint64{0, 1, 500, 501, 1023} {
			s.Add(h)
		}
		locks.Of(held).Lock()
		done := make(chan bool)
		go func() {
			locks.LockSet(&s)
			locks.UnlockSet(&s)
			done <- true
		}()
		asleep(t)
		for i := range locks {
			if free := locks[i].TryLock(); free == (uint64(i) == held) {
				t.Errorf("lock %d is free: %t, while LockSet waits for lock %d", i, free, held)
			} else if free {
				locks[i].Unlock() // +checklocksignore: TryLock
			}
		}
		locks.Of(held).Unlock() // +checklocksignore: locked above
		<-done
	}
}

// TestLockSetEnds never has both locks of a set free, one of them in turn. LockSet gets them
// nevertheless: in the end it keeps the first one while it waits for the other.
func TestLockSetEnds(t *testing.T) {
	var locks Locks
	var s Set
	s.Add(0)
	s.Add(1)
	held := 0
	locks[held].Lock()
	done := make(chan bool)
	go func() {
		locks.LockSet(&s)
		locks.UnlockSet(&s)
		done <- true
	}()
	rounds := 0
	for asleep(t); locks[1-held].TryLock(); asleep(t) {
		locks[held].Unlock() // +checklocksignore: TryLock
		held = 1 - held
		if rounds++; rounds > 2*attempts {
			t.Fatalf("LockSet has no lock after %d rounds", rounds)
		}
	}
	locks[held].Unlock() // +checklocksignore: TryLock
	<-done
	if held != 1 || rounds < attempts {
		t.Errorf("LockSet kept a lock while it waited for lock %d, after %d rounds", held, rounds)
	}
}
