package arena

import "sync"

// SlabBytes is the length of a slab.
const SlabBytes = 1 << 20

// freeSlabs are the slabs that FreeSlab was called for.
var freeSlabs struct {
	mu sync.Mutex
	// +checklocks:mu
	list [][]byte
}

// Slab returns SlabBytes of memory with arbitrary contents, or nil if the system has
// none. It is outside the Go heap where New is. It is never unmapped: a slice of it that
// is used after FreeSlab has other contents, but does not crash the process.
func Slab() []byte {
	freeSlabs.mu.Lock()
	if n := len(freeSlabs.list); n > 0 {
		b := freeSlabs.list[n-1]
		freeSlabs.list = freeSlabs.list[:n-1]
		freeSlabs.mu.Unlock()
		return b
	}
	freeSlabs.mu.Unlock()
	if !canMap {
		return make([]byte, SlabBytes)
	}
	b, err := mapBytes(SlabBytes)
	if err != nil {
		return nil
	}
	return b
}

// FreeSlab returns a slab of Slab. Its pages go to the system and its address range to a
// later call of Slab.
func FreeSlab(b []byte) {
	if poisonFreed {
		for i := range b {
			b[i] = poison
		}
	}
	if !canMap {
		return // the garbage collector frees it
	}
	dropPages(b)
	freeSlabs.mu.Lock()
	defer freeSlabs.mu.Unlock()
	freeSlabs.list = append(freeSlabs.list, b)
}
