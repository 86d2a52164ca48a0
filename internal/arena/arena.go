// Package arena gives memory outside the Go heap, which the garbage collector
// neither scans nor counts: the images of log segments. It is freed by hand; a
// slice that outlives Free is a bug that ends the process, or in a race build
// reads poison.
package arena

import (
	"fmt"
	"sync"
)

// minMapped is the least size that is worth a mapping of its own.
const minMapped = 1 << 20

// Memory is one piece of memory. Its methods are safe for concurrent use.
type Memory struct {
	mu     sync.Mutex
	bytes  []byte
	mapped bool
}

// New returns n zeroed bytes, in a mapping of their own where the system has
// anonymous mappings and n is at least 1 MiB, else on the Go heap. Race builds
// always use the Go heap, since the race detector sees nothing else.
func New(n int) (*Memory, error) {
	if n < 0 {
		return nil, fmt.Errorf("arena: size %d", n)
	}
	if n < minMapped || !canMap {
		return &Memory{bytes: make([]byte, n)}, nil
	}
	b, err := mapBytes(n)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	return &Memory{bytes: b, mapped: true}, nil
}

// Bytes returns the memory, nil after Free. Neither the slice nor a part of it
// may be used after Free.
func (m *Memory) Bytes() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}

// Free gives the memory back. Further calls do nothing.
func (m *Memory) Free() {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.bytes
	m.bytes = nil
	if m.mapped {
		if err := unmapBytes(b); err != nil {
			panic(fmt.Sprintf("arena: unmap %d bytes: %v", len(b), err))
		}
		m.mapped = false
		return
	}
	if poisonFreed {
		for i := range b {
			b[i] = poison
		}
	}
}

// Idle says that the contents are needed no more, and the memory will be: until
// it is written again the system may take its pages back, which it does only
// when it is short of them. Race builds fill it with poison.
func (m *Memory) Idle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mapped {
		adviseFree(m.bytes)
	}
	if poisonFreed {
		for i := range m.bytes {
			m.bytes[i] = poison
		}
	}
}

// poison is what freed memory holds in a race build: a read of it gives
// nonsense, and the race detector sees the write beside the read.
const poison = 0xDB
