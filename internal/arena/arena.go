// Package arena allocates memory outside the Go heap: Memory for the images of log
// segments, and slabs for the block cache. The garbage collector neither scans nor
// counts it. The caller must free it. Access to a slice of a Memory after Free is a bug:
// it crashes the process, or reads poison in a race build.
package arena

import (
	"fmt"
	"sync"
)

// minMapped is the minimum size of a mapping.
const minMapped = 1 << 20

// Memory is one allocation. Its methods may be called concurrently.
type Memory struct {
	mu     sync.Mutex
	bytes  []byte
	mapped bool
}

// New returns n zeroed bytes. They are in an anonymous mapping if the system supports
// it and n is at least 1 MiB, otherwise on the Go heap. Race builds always use the Go
// heap, because the race detector does not see other memory.
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

// Bytes returns the memory, or nil after Free. The slice and its subslices are valid
// until Free.
func (m *Memory) Bytes() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}

// Free releases the memory. A second call does nothing.
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
	fillPoison(b)
}

// Idle declares the contents unneeded but keeps the memory for later use. Until the
// next write to a page, the system may reclaim it if it is short of memory. Race
// builds fill the memory with poison.
func (m *Memory) Idle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mapped {
		adviseFree(m.bytes)
	}
	fillPoison(m.bytes)
}

// poison fills freed memory in a race build: a later read returns wrong data, and the
// race detector sees the write that raced with it.
const poison = 0xDB
