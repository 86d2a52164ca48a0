// Package arena allocates memory outside the Go heap: Memory for the images of log
// segments, and slabs for the block cache. The garbage collector neither scans nor
// counts it. The caller must free it. Access to a slice of a Memory after Free is a bug:
// it crashes the process, or reads poison if Poisons is true.
package arena

import (
	"fmt"
	"reflect"
	"sync"
)

// minMapped is the minimum size of a mapping.
const minMapped = 1 << 20

// Memory is one allocation. Its methods may be called concurrently.
type Memory struct {
	mu      sync.Mutex
	bytes   []byte
	mapping []byte // what has bytes, nil on the Go heap
}

// New returns n zeroed bytes. They are in an anonymous mapping if the system supports
// it and n is at least 1 MiB, otherwise on the Go heap. Race builds always use the Go
// heap, because the race detector does not see other memory.
//
// If n is at least 4 MiB, the memory behind the first 2 MiB has huge pages if the system has
// them, unless Populate found them to be slow. The first write to such a page makes 2 MiB
// resident, not 4 KiB. The first writes to 2 MiB take 0.14 to 0.3 ms of CPU in place of 0.6 to
// 5 ms, the most on virtual machines with slow page faults (go test -bench Touch). A user of
// little of the memory makes as little of it resident.
func New(n int) (*Memory, error) {
	if n < 0 {
		return nil, fmt.Errorf("arena: size %d", n)
	}
	if n < minMapped || !canMap {
		return &Memory{bytes: make([]byte, n)}, nil
	}
	if n < 2*HugeSlabBytes {
		b, err := mapBytes(n)
		if err != nil {
			return nil, fmt.Errorf("map %d bytes: %w", n, err)
		}
		return &Memory{bytes: b, mapping: b}, nil
	}
	b, mapping, err := mapHuge(n)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	if populated.preferHuge() {
		adviseHuge(b[HugeSlabBytes:])
	} else {
		adviseSmall(b[HugeSlabBytes:])
	}
	return &Memory{bytes: b, mapping: mapping}, nil
}

// mapHuge returns n bytes that begin where a huge page can, and the mapping that has them.
func mapHuge(n int) (b, mapping []byte, err error) {
	mapping, err = mapBytes(n + HugeSlabBytes)
	if err != nil {
		return nil, nil, err
	}
	return mapping[-reflect.ValueOf(mapping).Pointer()%HugeSlabBytes:][:n:n], mapping, nil
}

// Bytes returns the memory, or nil after Free. The slice and its subslices are valid
// until Free.
func (m *Memory) Bytes() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}

// Free releases the memory, of which the first used bytes may have been written: if Poisons is
// true, Free fills no more. A second call does nothing.
func (m *Memory) Free(used int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.bytes
	m.bytes = nil
	if m.mapping != nil {
		if err := unmapBytes(m.mapping); err != nil {
			panic(fmt.Sprintf("arena: unmap %d bytes: %v", len(b), err))
		}
		m.mapping = nil
		return
	}
	Poison(b[:min(used, len(b))])
}

// Populate makes the memory from off to end resident and keeps its contents, if the system can.
// Linux can since 5.14. It does nothing after Free, and does not block writers of the memory.
// Of HugeSlabBytes it also chooses the size of the pages, by what both took before. They
// should begin at a multiple of HugeSlabBytes behind the first.
func (m *Memory) Populate(off, end int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mapping != nil {
		populate(m.bytes[off:end])
	}
}

// Idle declares the contents unneeded but keeps the memory for later use. Until the next
// write to a page, the system may reclaim it if it is short of memory. If
// Poisons is true, the first used bytes are filled with poison, as by Free.
func (m *Memory) Idle(used int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mapping != nil {
		adviseFree(m.bytes)
	}
	Poison(m.bytes[:min(used, len(m.bytes))])
}
