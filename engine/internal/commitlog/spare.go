package commitlog

import (
	"fmt"
	"sync"

	"github.com/tablerock-db/tablerock/internal/arena"
)

// spare keeps the memory of one dropped segment for the next one: to find and
// clear new pages costs the system more than filling them with records.
type spare struct {
	mu sync.Mutex
	// +checklocks:mu
	kept *arena.Memory
	// ended says that there is no next segment.
	// +checklocks:mu
	ended bool
}

// take returns memory of n bytes with any content.
func (s *spare) take(n int64) (*arena.Memory, error) {
	s.mu.Lock()
	m := s.kept
	if m != nil && int64(len(m.Bytes())) == n {
		s.kept = nil
		s.mu.Unlock()
		return m, nil
	}
	s.mu.Unlock()
	m, err := arena.New(int(n))
	if err != nil {
		return nil, fmt.Errorf("memory of %d bytes: %w", n, err)
	}
	return m, nil
}

// give takes back what take returned; it may come after end.
func (s *spare) give(m *arena.Memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		m.Free()
		return
	}
	m.Idle()
	if s.kept != nil {
		s.kept.Free()
	}
	s.kept = m
}

// end frees what is kept, now and from now on.
func (s *spare) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.kept != nil {
		s.kept.Free()
		s.kept = nil
	}
}
