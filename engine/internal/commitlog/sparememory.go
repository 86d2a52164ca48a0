package commitlog

import (
	"fmt"
	"sync"

	"github.com/tablerock-db/tablerock/internal/arena"
)

// spareMemory keeps the memory of one dropped segment for the next one, because
// new pages cost the operating system more than filling them with records does.
type spareMemory struct {
	mu sync.Mutex
	// +checklocks:mu
	kept *arena.Memory
	// +checklocks:mu
	closed bool
}

// take returns memory of n bytes with arbitrary contents.
func (s *spareMemory) take(n int64) (*arena.Memory, error) {
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

// put keeps or frees memory that take returned. It may be called after close.
func (s *spareMemory) put(m *arena.Memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		m.Free()
		return
	}
	m.Idle()
	if s.kept != nil {
		s.kept.Free()
	}
	s.kept = m
}

// close frees what is kept. From then on put keeps nothing.
func (s *spareMemory) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.kept != nil {
		s.kept.Free()
		s.kept = nil
	}
}
