package spinlock

import (
	"bytes"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// slept returns for how long goroutines have slept in Mutex.Lock, of which the runtime
// measures one in eight.
func slept() float64 {
	s := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64()
}

func TestLockDoesNotSleepSoon(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	before := slept()
	for range 100 {
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
		mu.Unlock()
		wg.Wait()
	}
	if after := slept(); after != before {
		t.Errorf("goroutines slept for %v s", after-before)
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
	stacks := make([]byte, 1<<20)
	for start := time.Now(); ; {
		if bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("[sync.Mutex.Lock")) {
			break
		}
		if time.Since(start) > 10*time.Second {
			t.Fatal("the goroutine does not sleep after 10 s")
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
