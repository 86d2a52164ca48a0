// Package cache keeps blocks of files in memory, within a budget of bytes.
//
// A block is pinned while a Handle to it exists; its memory is used again only
// after the last Handle is released, so a missing Release costs memory and a
// use after Release reads other data. The cache starts no goroutine and reads
// no clock: the same calls give the same evictions.
package cache

import (
	"math/bits"
	"sync/atomic"
)

const (
	maxShards = 64
	// A shard must hold a few dozen blocks, or evictions become a matter of
	// luck in the hash; small caches have fewer shards.
	minShardBytes = 256 << 10
)

// Key names a block.
type Key struct {
	DB     uint64 // unique among the databases that share the cache
	File   uint64 // number of the file
	Offset uint64 // where the block begins within the file
	Kind   uint8  // what the block is; two kinds may have one offset
}

func (k Key) hash() uint64 {
	h := (k.Offset ^ uint64(k.Kind)<<56) * 0x9E3779B97F4A7C15
	h = (h ^ h>>32 ^ k.File) * 0xD6E8FEB86659FD93
	h = (h ^ h>>32 ^ k.DB) * 0xC2B2AE3D27D4EB4F
	return h ^ h>>29
}

// Cache is a block cache that any number of databases may share. All methods
// may be called concurrently.
type Cache struct {
	shards []shard
	shift  uint // hash >> shift is the shard
}

// New returns a cache of the given size. With 0 bytes nothing is kept, and
// every Acquire is a load.
func New(bytes int64) *Cache {
	n := 1
	for n < maxShards && bytes >= int64(2*n)*minShardBytes {
		n *= 2
	}
	c := &Cache{shards: make([]shard, n), shift: uint(64 - bits.TrailingZeros(uint(n)))}
	for i := range c.shards {
		c.shards[i].init(max(bytes, 0) / int64(n))
	}
	return c
}

func (c *Cache) shard(hash uint64) *shard { return &c.shards[hash>>c.shift] }

// Get returns the block of k if it is in memory.
func (c *Cache) Get(k Key) (Handle, bool) {
	hash := k.hash()
	e := c.shard(hash).get(k, hash)
	return Handle{e}, e != nil
}

// Hint remembers where a block was, which spares the next look-up a lock and a
// search: a tenth of a hot get of bench/peers. The zero Hint knows nothing. It pins nothing: the block
// may be gone, or its memory be another's, which GetAt notices. A Hint belongs to
// one Cache and may be used concurrently.
type Hint struct{ at atomic.Pointer[entry] }

// GetAt is Get, beginning where hint says, if it is not nil.
func (c *Cache) GetAt(k Key, hint *Hint) (Handle, bool) {
	if hint == nil {
		return c.Get(k)
	}
	if e := hint.at.Load(); e != nil && e.pin() {
		if e.key == k && e.state.Load() == ready {
			e.used()
			return Handle{e}, true
		}
		Handle{e}.Release()
	}
	h, ok := c.Get(k)
	if ok {
		hint.at.Store(h.e)
	}
	return h, ok
}

// Acquire returns the block of k if it is in memory, waiting for a load of it
// that is under way. Otherwise loaded is false and the caller has become the
// one loader: it fills Bytes, which has the given size and arbitrary contents,
// and then calls exactly one of Fill and Fail. With admit false, or when the
// block is too large to be kept, a block that is not in memory is the caller's
// alone and is forgotten with its last Release.
func (c *Cache) Acquire(k Key, size int, admit bool) (h Handle, loaded bool) {
	hash := k.hash()
	e, loaded := c.shard(hash).acquire(k, hash, size, admit)
	return Handle{e}, loaded
}

// Drop forgets the blocks of a file. Pinned ones live until released.
func (c *Cache) Drop(db, file uint64) {
	for i := range c.shards {
		c.shards[i].drop(db, file)
	}
}

// Stats are counts since New, and the present contents.
type Stats struct {
	Hits, Misses, Evictions uint64
	Blocks                  int
	Bytes                   int64 // of the blocks kept, bookkeeping included
	Limit                   int64
}

// Stats returns the present figures.
func (c *Cache) Stats() Stats {
	var t Stats
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		t.Hits += s.hits.Load()
		t.Misses += s.misses
		t.Evictions += s.evictions
		t.Blocks += s.blocks
		t.Bytes += s.bytes
		t.Limit += s.limit
		s.mu.Unlock()
	}
	return t
}

// Handle is a pin on a block. The zero Handle pins nothing and may be released.
type Handle struct{ e *entry }

// Bytes returns the block. Only its loader may write to it, before Fill.
func (h Handle) Bytes() []byte { return h.e.buf }

// Value returns the object that came with Fill. For a loader it is the value of
// an earlier block of the same kind that nobody uses any more, or nil: its
// memory may be used again.
func (h Handle) Value() any { return h.e.value }

// Fill ends a load: the block can be used by everyone from here on. value rides
// along and costs extra bytes of the budget.
func (h Handle) Fill(value any, extra int) { h.e.shard.fill(h.e, value, extra) }

// Fail ends a load that did not succeed and releases the Handle. Those who wait
// for the block try to load it themselves.
func (h Handle) Fail() { h.e.shard.fail(h.e) }

// Release gives the pin back. The Handle, its bytes and its value must not be
// used afterwards.
func (h Handle) Release() {
	if h.e == nil {
		return
	}
	switch s := h.e.shard; h.e.pins.Add(-1) {
	case 0:
		s.recycle(h.e)
	case 1:
		if s.over.Load() {
			s.shrink()
		}
	}
}
