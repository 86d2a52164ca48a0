package spinlock

import (
	"bytes"
	"runtime"
	"sync"
	"testing"
	"time"
)

// stacks returns the stacks of all goroutines, and whether one of them sleeps in Mutex.Lock.
func stacks() (text []byte, asleep bool) {
	text = make([]byte, 1<<20)
	text = text[:runtime.Stack(text, true)]
	return text, bytes.Contains(text, []byte("[sync.Mutex.Lock"))
}

func TestLockDoesNotSleepSoon(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var mu sync.Mutex
	var wg sync.WaitGroup
	mu.Lock()
	wg.Go(func() {
		Lock(&mu)
		mu.Unlock()
	})
	for range yields / 4 {
		runtime.Gosched()
	}
	text, asleep := stacks()
	mu.Unlock()
	wg.Wait()
	if asleep || !bytes.Contains(text, []byte("spinlock.Lock(")) {
		t.Errorf("want a goroutine in Lock that does not sleep, got the stacks:\n%s", text)
	}
}

func TestLockSleepsAtLast(t *testing.T) {
	var mu sync.Mutex
	mu.Lock()
	done := make(chan bool)
	go func() {
		Lock(&mu)
		mu.Unlock()
		done <- true
	}()
	for start := time.Now(); ; {
		if _, asleep := stacks(); asleep {
			break
		}
		if time.Since(start) > 5*time.Minute {
			t.Fatal("the goroutine does not sleep after 5 minutes")
		}
		runtime.Gosched()
	}
	mu.Unlock()
	<-done
}

func TestLockExcludes(t *testing.T) {
	const goroutines, times = 8, 2000
	var mu sync.Mutex
	var wg sync.WaitGroup
	n := 0
	for range goroutines {
		wg.Go(func() {
			for range times {
				Lock(&mu)
				n++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if n != goroutines*times {
		t.Errorf("counted %d, want %d", n, goroutines*times)
	}
}
