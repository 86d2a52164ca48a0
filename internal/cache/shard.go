package cache

import (
	"sync"
	"sync/atomic"
)

const (
	entryBytes = 176 // cost of a block beside its bytes

	kinds = 4 // free lists; a kind uses that of kind % kinds

	// Free entries per kind, and the largest block and value of a free entry.
	freeBlocks   = 2
	freeMaxBytes = 64 << 10
)

const (
	loading uint32 = iota + 1
	ready
	failed
)

// entry is one block. It is in the table of its shard, or only its pins refer to it.
type entry struct {
	// The fields of a lookup come first: a hit touches two cache lines.
	hash  uint64
	chain *entry        // next of the bucket; guarded by shard.mu
	pins  atomic.Int32  // one belongs to the table; at 0 the entry is free
	state atomic.Uint32 // changes under shard.mu
	ref   atomic.Bool   // used since the clock hand passed
	key   Key           // does not change while pinned
	extra int

	buf   []byte
	value any

	shard      *shard
	prev, next *entry // the clock ring, nil if not in the table; guarded by shard.mu
}

func (e *entry) cost() int64 { return int64(cap(e.buf) + e.extra + entryBytes) }

// shard is one shard of the cache: a chained hash table whose entries form the ring of
// a clock (second chance) eviction. Each entry of the table is on the ring, and bytes is
// the sum of their costs. Bytes exceeds limit only if pinned entries do.
type shard struct {
	limit int64
	over  atomic.Bool // bytes exceeds limit

	mu     sync.Mutex
	loaded sync.Cond // a load ended
	// The length is a power of two.
	// +checklocks:mu
	buckets []*entry
	// The next candidate for eviction.
	// +checklocks:mu
	hand *entry
	// +checklocks:mu
	blocks int
	// +checklocks:mu
	bytes int64
	// +checklocks:mu
	free [kinds][]*entry
	// +checklocks:mu
	misses uint64
	// +checklocks:mu
	evictions uint64

	hits atomic.Uint64

	_ [64]byte // no two shards share a cache line
}

// +checklocks:s.mu
func (s *shard) init(limit int64) {
	s.limit = limit
	s.loaded.L = &s.mu
	s.buckets = make([]*entry, 16)
}

// +checklocks:s.mu
func (s *shard) findLocked(k Key, hash uint64) *entry {
	for e := s.buckets[hash&uint64(len(s.buckets)-1)]; e != nil; e = e.chain {
		if e.hash == hash && e.key == k {
			return e
		}
	}
	return nil
}

func (s *shard) get(k Key, hash uint64) *entry {
	s.mu.Lock()
	e := s.findLocked(k, hash)
	if e == nil || e.state.Load() != ready {
		s.mu.Unlock()
		return nil
	}
	e.pins.Add(1)
	s.mu.Unlock()
	e.used()
	return e
}

// used records a hit.
func (e *entry) used() {
	if !e.ref.Load() {
		e.ref.Store(true)
	}
	e.shard.hits.Add(1)
}

// pin pins e without the lock of its shard and reports false if e is free. Check key
// and state after pin: until then they can change.
func (e *entry) pin() bool {
	for {
		n := e.pins.Load()
		if n == 0 {
			return false
		}
		if e.pins.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *shard) acquire(k Key, hash uint64, size int, admit bool) (e *entry, loaded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		e := s.findLocked(k, hash)
		if e == nil {
			break
		}
		e.pins.Add(1)
		for e.state.Load() == loading {
			s.loaded.Wait()
		}
		if e.state.Load() == ready {
			e.used()
			return e, true
		}
		if e.pins.Add(-1) == 0 {
			s.recycleLocked(e)
		}
	}
	s.misses++
	admit = admit && int64(size)+entryBytes <= s.limit
	if admit {
		s.evictLocked(int64(size) + entryBytes)
	}
	e = s.takeLocked(k, size, admit)
	e.key, e.hash, e.extra = k, hash, 0
	e.state.Store(loading)
	e.ref.Store(false)
	if admit {
		e.pins.Store(2)
		s.insertLocked(e)
	} else {
		e.pins.Store(1)
	}
	return e, false
}

func (s *shard) fill(e *entry, value any, extra int) {
	s.mu.Lock()
	e.value, e.extra = value, extra
	e.state.Store(ready)
	if e.next != nil {
		s.bytes += int64(extra)
		s.evictLocked(0)
		s.loaded.Broadcast()
	}
	s.mu.Unlock()
}

func (s *shard) fail(e *entry) {
	s.mu.Lock()
	e.state.Store(failed)
	e.value = nil // the loader may have grown it
	if e.next != nil {
		s.removeLocked(e)
		s.loaded.Broadcast()
		e.pins.Add(-1)
	}
	if e.pins.Add(-1) == 0 {
		s.recycleLocked(e)
	}
	s.mu.Unlock()
}

// evictLocked evicts entries until n more bytes fit, for at most two rounds of the
// clock. It skips pinned entries.
// +checklocks:s.mu
func (s *shard) evictLocked(n int64) {
	for i := 2 * s.blocks; i > 0 && s.bytes+n > s.limit; i-- {
		e := s.hand
		s.hand = e.next
		if e.ref.Swap(false) {
			continue
		}
		if !e.pins.CompareAndSwap(1, 0) {
			continue
		}
		s.removeLocked(e)
		s.recycleLocked(e)
		s.evictions++
	}
	if over := s.bytes > s.limit; over != s.over.Load() {
		s.over.Store(over)
	}
}

// shrink evicts entries that were over the limit but pinned.
func (s *shard) shrink() {
	s.mu.Lock()
	s.evictLocked(0)
	s.mu.Unlock()
}

// +checklocks:s.mu
func (s *shard) insertLocked(e *entry) {
	if s.blocks >= len(s.buckets) {
		s.growLocked()
	}
	b := &s.buckets[e.hash&uint64(len(s.buckets)-1)]
	e.chain, *b = *b, e
	if s.hand == nil {
		e.prev, e.next = e, e
		s.hand = e
	} else { // behind the hand, which reaches it last
		e.prev, e.next = s.hand.prev, s.hand
		e.prev.next, e.next.prev = e, e
	}
	s.blocks++
	s.bytes += e.cost()
}

// +checklocks:s.mu
func (s *shard) growLocked() {
	old := s.buckets
	s.buckets = make([]*entry, 2*len(old))
	for _, e := range old {
		for e != nil {
			next := e.chain
			b := &s.buckets[e.hash&uint64(len(s.buckets)-1)]
			e.chain, *b = *b, e
			e = next
		}
	}
}

// removeLocked removes e from the table. The caller must drop the pin of the table.
// +checklocks:s.mu
func (s *shard) removeLocked(e *entry) {
	p := &s.buckets[e.hash&uint64(len(s.buckets)-1)]
	for *p != e {
		p = &(*p).chain
	}
	*p = e.chain
	if s.hand == e {
		s.hand = e.next
	}
	if s.hand == e {
		s.hand = nil
	}
	e.prev.next, e.next.prev = e.next, e.prev
	e.chain, e.prev, e.next = nil, nil, nil
	s.blocks--
	s.bytes -= e.cost()
}

func (s *shard) drop(db, file uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := s.blocks; i > 0; i-- {
		e := s.hand
		s.hand = e.next
		// fill and fail expect the entry of a load in the table.
		if e.state.Load() != ready || e.key.DB != db || e.key.File != file {
			continue
		}
		s.removeLocked(e)
		if e.pins.Add(-1) == 0 {
			s.recycleLocked(e)
		}
	}
}

// takeLocked returns a free entry with size bytes. If the block will be kept, its
// buffer is not much larger.
// +checklocks:s.mu
func (s *shard) takeLocked(k Key, size int, keep bool) *entry {
	free := &s.free[k.Kind%kinds]
	var e *entry
	if n := len(*free); n > 0 {
		e = (*free)[n-1]
		(*free)[n-1] = nil
		*free = (*free)[:n-1]
	} else {
		e = &entry{shard: s}
	}
	if cap(e.buf) < size || keep && cap(e.buf) > size+size/4+512 {
		e.buf = make([]byte, size)
	}
	e.buf = e.buf[:size]
	return e
}

func (s *shard) recycle(e *entry) {
	s.mu.Lock()
	s.recycleLocked(e)
	s.mu.Unlock()
}

// recycleLocked puts an entry without pins on the free list.
// +checklocks:s.mu
func (s *shard) recycleLocked(e *entry) {
	if poison {
		for i := range e.buf {
			e.buf[i] = 0xDB
		}
	}
	free := &s.free[e.key.Kind%kinds]
	if len(*free) < freeBlocks && cap(e.buf) <= freeMaxBytes && e.extra <= freeMaxBytes {
		*free = append(*free, e)
	}
}
