package main

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/bench"
)

// usage is the CPU time that this process and the whole machine have used so far.
type usage struct {
	at      time.Time
	own     time.Duration
	machine time.Duration
	known   bool
}

// currentUsage returns the current usage. That of the machine is known on Linux only.
func currentUsage() usage {
	u := usage{at: time.Now(), own: bench.CPUTime()}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return u
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return u
	}
	const tick = 10 * time.Millisecond // unit of /proc/stat
	u.known = true
	// user nice system idle iowait irq softirq steal
	for i, f := range fields[1:9] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			u.known = false
		}
		if i != 3 && i != 4 {
			u.machine += time.Duration(n) * tick
		}
	}
	return u
}

// foreign returns the number of processors that other processes used since an earlier
// usage, or -1 if it is not known or the time is too short for the unit of the kernel.
func (u usage) foreign(since usage) float64 {
	const shortest = 100 * time.Millisecond
	span := u.at.Sub(since.at)
	if !u.known || !since.known || span < shortest {
		return -1
	}
	others := (u.machine - since.machine) - (u.own - since.own)
	return max(0, others.Seconds()/span.Seconds())
}

// resident returns the resident memory of this process, 0 if it is not known.
func resident() int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// memory samples the resident memory of this process.
type memory struct {
	base int64 // before the database is opened
	peak atomic.Int64
	stop chan struct{}
	wait sync.WaitGroup
}

// newMemory returns the memory before the database is opened. It gives unused memory back.
func newMemory() *memory {
	debug.FreeOSMemory()
	return &memory{base: resident(), stop: make(chan struct{})}
}

// start begins to sample.
func (m *memory) start() {
	const interval = 20 * time.Millisecond
	m.peak.Store(resident())
	m.wait.Go(func() {
		t := time.NewTicker(interval)
		defer t.Stop()
		for {
			select {
			case <-m.stop:
				return
			case <-t.C:
				m.peak.Store(max(m.peak.Load(), resident()))
			}
		}
	})
}

// end ends the sampling and returns the greatest memory above the base.
func (m *memory) end() int64 {
	close(m.stop)
	m.wait.Wait()
	return max(0, m.peak.Load()-m.base, resident()-m.base)
}
