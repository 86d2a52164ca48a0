package cache

import (
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/internal/arena"
)

const (
	entryBytes = 192 // cost of a block beside its bytes

	kinds = 5 // of blocks: each has a pair of free lists, and Key.Kind is less

	// Free entries per list, and the largest block and value of a free entry.
	freeBlocks   = 8
	freeMaxBytes = 64 << 10

	// spaceParts eighths of the limit are the most memory of blocks in regions. The
	// rest is for the values of blocks, which are on the Go heap.
	spaceParts = 7

	// allocTries is how many blocks are evicted for an allocation that fails although
	// the limit allows it, because free memory is in pieces.
	allocTries = 32
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
	uses  atomic.Uint32 // since the load or the last look of an eviction, about maxUses at most
	key   Key           // does not change while pinned
	extra int

	buf   []byte
	value any

	// The chunk of buf in shard.space, plus 1; 0 if buf is on the Go heap.
	chunk uint32

	shard      *shard
	queue      *queue // nil if not in the table; guarded by shard.mu
	prev, next *entry // in queue; guarded by shard.mu
}

func (e *entry) cost() int64 {
	n := cap(e.buf)
	if e.chunk != 0 {
		n = chunkBytes(n)
	}
	return int64(n + e.extra + entryBytes)
}

// shard is one shard of the cache: a chained hash table. Each entry of the table is in
// one queue of S3-FIFO (queue.go), and bytes is the sum of their costs. Bytes exceeds
// limit only if pinned entries do.
type shard struct {
	limit int64
	slabs *slabs
	over  atomic.Bool // bytes exceeds limit

	mu     sync.Mutex
	loaded sync.Cond // a load ended
	// The length is a power of two.
	// +checklocks:mu
	buckets []*entry
	// +checklocks:mu
	small, main queue
	// +checklocks:mu
	ghosts ghosts
	// Of the blocks with the admission Apart.
	// +checklocks:mu
	apart ghosts
	// The last chance of a block that is kept seldom was refused.
	// +checklocks:mu
	refused bool
	// +checklocks:mu
	space space
	// Entries whose block is in space.
	// +checklocks:mu
	chunks int
	// +checklocks:mu
	closed bool
	// +checklocks:mu
	blocks int
	// +checklocks:mu
	bytes int64
	// The greatest bytes since the last eviction for an allocation that found no free
	// chunk, at most limit.
	// +checklocks:mu
	usable int64
	// Free entries, by kind: those without a block, then those with a block on the Go
	// heap.
	// +checklocks:mu
	free [2][kinds][]*entry
	// +checklocks:mu
	misses uint64
	// +checklocks:mu
	evictions uint64

	hits atomic.Uint64

	_ [64]byte // no two shards share a cache line
}

// regionsOf returns how many bytes the regions of a shard have at most.
func regionsOf(limit int64) int64 {
	var s space
	s.init(limit / 8 * spaceParts)
	return int64(s.most) * int64(s.regionBytes())
}

// +checklocks:s.mu
func (s *shard) init(limit int64, from *slabs) {
	s.limit, s.slabs, s.usable = limit, from, limit
	s.space.init(limit / 8 * spaceParts)
	s.loaded.L = &s.mu
	s.buckets = make([]*entry, 16)
	s.ghosts.resize(len(s.buckets) / ghostParts)
	s.apart.resize(apartGhosts)
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
	if e.uses.Load() < maxUses {
		e.uses.Add(1)
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

// acquire returns the entry of k, or a new one that the caller must load. own decides
// about a block that the cache does not keep: its entry belongs to the caller, or is nil.
func (s *shard) acquire(k Key, hash uint64, size int, admit bool, when Admission, own bool) (e *entry, loaded bool) {
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
	var q *queue
	if admit {
		q = s.queueLocked(hash, int64(size)+entryBytes, when)
	}
	if q == nil && !own {
		return nil, false
	}
	if q != nil {
		s.evictLocked(int64(size) + entryBytes)
	}
	e = s.takeLocked(k, size, q != nil)
	e.key, e.hash, e.extra = k, hash, 0
	e.state.Store(loading)
	e.uses.Store(0)
	if when == Apart {
		// Until all that the blocks of a reader replace is in the cache, the reader has others
		// loaded, which would evict a block that was used once.
		e.uses.Store(maxUses)
	}
	if q != nil {
		e.pins.Store(2)
		s.insertLocked(e, q)
	} else {
		e.pins.Store(1)
	}
	return e, false
}

func (s *shard) fill(e *entry, value any, extra int) {
	s.mu.Lock()
	e.value, e.extra = value, extra
	e.state.Store(ready)
	if e.queue != nil {
		e.queue.bytes += int64(extra)
		s.bytes += int64(extra)
		s.evictLocked(0)
		s.loaded.Broadcast()
	}
	s.mu.Unlock()
}

// renew returns an entry of size bytes for the key of old that is not in the table, or nil
// if old is not.
func (s *shard) renew(old *entry, size int) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old.queue == nil || s.closed {
		return nil
	}
	s.evictLocked(int64(size) + entryBytes)
	e := s.takeLocked(old.key, size, true)
	e.key, e.hash, e.extra = old.key, old.hash, 0
	e.state.Store(loading)
	e.uses.Store(max(1, old.uses.Load()))
	e.pins.Store(1)
	return e
}

// replace makes e the entry of its key in the table, unless old was removed meanwhile.
func (s *shard) replace(e, old *entry, value any, extra int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.value, e.extra = value, extra
	e.state.Store(ready)
	if old.queue == nil {
		return
	}
	s.removeLocked(old)
	old.pins.Add(-1) // not the last: the caller has one
	e.pins.Add(1)
	s.insertLocked(e, &s.main)
	s.evictLocked(0)
}

func (s *shard) fail(e *entry) {
	s.mu.Lock()
	e.state.Store(failed)
	e.value = nil // the loader may have grown it
	if e.queue != nil {
		s.removeLocked(e)
		s.loaded.Broadcast()
		e.pins.Add(-1)
	}
	if e.pins.Add(-1) == 0 {
		s.recycleLocked(e)
	}
	s.mu.Unlock()
}

// evictLocked evicts entries until n more bytes fit, unless the others are pinned.
// +checklocks:s.mu
func (s *shard) evictLocked(n int64) {
	for s.bytes+n > s.limit && s.evictOneLocked() {
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
func (s *shard) insertLocked(e *entry, q *queue) {
	if s.blocks >= len(s.buckets) {
		s.growLocked()
	}
	b := &s.buckets[e.hash&uint64(len(s.buckets)-1)]
	e.chain, *b = *b, e
	q.push(e)
	s.blocks++
	s.bytes += e.cost()
	s.usable = max(s.usable, min(s.bytes, s.limit))
}

// +checklocks:s.mu
func (s *shard) growLocked() {
	old := s.buckets
	s.ghosts.resize(2 * len(old) / ghostParts)
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
	e.chain = nil
	e.queue.remove(e)
	s.blocks--
	s.bytes -= e.cost()
}

func (s *shard) drop(db uint64, files map[uint64]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(func(k *Key) bool { return k.DB == db && files[k.File] })
}

// close drops all entries, makes s keep nothing, and returns the number of entries that
// are pinned or loaded.
func (s *shard) close() (pinned int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = 0
	pinned = s.dropLocked(func(*Key) bool { return true })
	s.evictLocked(0) // sets over, so that loads are evicted at their end
	s.slabs.pins.Add(int64(s.chunks))
	s.closed = true
	return pinned
}

// dropLocked removes the entries that match, and returns how many of them are pinned.
// Those that are loaded stay, because fill and fail expect them in the table.
// +checklocks:s.mu
func (s *shard) dropLocked(match func(*Key) bool) (pinned int) {
	for _, q := range []*queue{&s.small, &s.main} {
		for e, next := q.oldest, (*entry)(nil); e != nil; e = next {
			next = e.next
			if !match(&e.key) {
				continue
			}
			if e.state.Load() != ready {
				pinned++
				continue
			}
			s.removeLocked(e)
			if e.pins.Add(-1) == 0 {
				s.recycleLocked(e)
			} else {
				pinned++
			}
		}
	}
	return pinned
}

// takeLocked returns a free entry with size bytes. If the block will be kept, they are in
// the space of the shard if possible.
// +checklocks:s.mu
func (s *shard) takeLocked(k Key, size int, keep bool) *entry {
	var chunk uint32
	var block []byte
	if keep && s.space.fits(size) {
		chunk, block = s.allocLocked(size)
	}
	own := 0
	if block == nil {
		own = 1
	}
	free := &s.free[own][k.Kind]
	var e *entry
	if n := len(*free); n > 0 {
		e = (*free)[n-1]
		(*free)[n-1] = nil
		*free = (*free)[:n-1]
	} else {
		e = &entry{shard: s}
	}
	switch {
	case block != nil:
		e.buf, e.chunk = block, chunk
		s.chunks++
		return e
	case cap(e.buf) < size || keep && cap(e.buf) > size+size/4+512:
		e.buf = make([]byte, size)
	}
	e.buf = e.buf[:size]
	return e
}

// allocLocked returns a block of the space and its chunk plus 1, or nil if the space has
// no such chunk free even after evictions.
// +checklocks:s.mu
func (s *shard) allocLocked(size int) (uint32, []byte) {
	for range allocTries {
		number, block, ok := s.space.alloc(size)
		if ok {
			return number + 1, block
		}
		if s.space.grow(s.slabs) {
			continue
		}
		if s.chunks == 0 {
			break // the system has no memory: nothing to evict makes room
		}
		if s.usable = s.bytes; !s.evictOneLocked() {
			break
		}
	}
	return 0, nil
}

func (s *shard) recycle(e *entry) {
	s.mu.Lock()
	s.recycleLocked(e)
	s.mu.Unlock()
}

// recycleLocked puts an entry without pins on the free list, or drops it. A Hint may refer to
// it as long as its file is open, and must not keep the block.
// +checklocks:s.mu
func (s *shard) recycleLocked(e *entry) {
	arena.Poison(e.buf)
	if e.chunk != 0 {
		s.space.free(e.chunk - 1)
		e.buf, e.chunk = nil, 0
		s.chunks--
		if s.closed {
			s.slabs.unpin()
		}
	}
	own := 0
	if e.buf != nil {
		own = 1
	}
	free := &s.free[own][e.key.Kind]
	if len(*free) < freeBlocks && cap(e.buf) <= freeMaxBytes && e.extra <= freeMaxBytes {
		*free = append(*free, e)
		return
	}
	e.buf, e.value = nil, nil
}
