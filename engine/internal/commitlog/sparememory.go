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
	// resident is the length of the resident part of kept.
	// +checklocks:mu
	resident int64
	// +checklocks:mu
	closed bool
}

// take returns memory of n bytes with arbitrary contents, and the length of its resident part.
func (s *spareMemory) take(n int64) (m *arena.Memory, resident int64, err error) {
	s.mu.Lock()
	m, resident = s.kept, s.resident
	if m != nil && int64(len(m.Bytes())) == n {
		s.kept = nil
		s.mu.Unlock()
		return m, resident, nil
	}
	s.mu.Unlock()
	m, err = arena.New(int(n))
	if err != nil {
		return nil, 0, fmt.Errorf("memory of %d bytes: %w", n, err)
	}
	return m, 0, nil
}

// put keeps or frees memory that take returned, of which a part is resident and the first used
// bytes may have been written. It may be called after close.
func (s *spareMemory) put(m *arena.Memory, resident int64, used int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		m.Free(used)
		return
	}
	m.Idle(used)
	if s.kept != nil {
		s.kept.Free(0) // it is idle
	}
	s.kept, s.resident = m, resident
}

// close frees what is kept. From then on put keeps nothing.
func (s *spareMemory) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.kept != nil {
		s.kept.Free(0)
		s.kept = nil
	}
}
