// Package stall measures write stalls.
package stall

import (
	"log/slog"
	"sync"
	"time"
)

// Counter counts and measures write stalls. A stall lasts while writers wait.
type Counter struct {
	mu sync.Mutex
	// +checklocks:mu
	waiting int // writers
	// +checklocks:mu
	begin time.Time // of the stall under way
	// +checklocks:mu
	count uint64
	// +checklocks:mu
	total time.Duration // of the stalls that have ended
}

// Begin notes that a writer waits because of cause, until it calls end. It logs a stall when that
// begins and when it ends.
func (s *Counter) Begin(cause string, now func() time.Time, log *slog.Logger) (end func()) {
	if s.enter(now()) {
		log.Info("write stall begins", "cause", cause)
	}
	return func() {
		if d, last := s.leave(now()); last {
			log.Info("write stall ended", "cause", cause, "seconds", d.Seconds())
		}
	}
}

// enter adds a waiting writer and reports whether it is the first.
func (s *Counter) enter(now time.Time) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
	if s.waiting > 1 {
		return false
	}
	s.begin = now
	s.count++
	return true
}

// leave removes a waiting writer. If it was the last, the stall took d.
func (s *Counter) leave(now time.Time) (d time.Duration, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
	if s.waiting > 0 {
		return 0, false
	}
	d = max(0, now.Sub(s.begin))
	s.total += d
	return d, true
}

// Read returns the number of stalls and their time, with that of a stall under
// way.
func (s *Counter) Read(now time.Time) (count uint64, total time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	total = s.total
	if s.waiting > 0 {
		total += max(0, now.Sub(s.begin))
	}
	return s.count, total
}
