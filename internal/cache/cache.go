// Package cache keeps blocks of files in memory within a budget of bytes.
//
// A Handle pins its block. The cache reuses the memory of a block only after the last
// Handle was released: a missing Release leaks memory, and a use after Release reads
// other data. The cache has no goroutines and no clock, so equal calls cause equal
// evictions.
package cache

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	maxShards = 64
	// A shard should hold dozens of blocks. With fewer, chance in the hash decides evictions, so
	// small caches have fewer shards. From this size on, a block with a value of 64 KiB fits its
	// regions (space.fits). On the Go heap it would be memory beside regions that are never freed.
	minShardBytes = 5 << 19
)

// Key identifies a block.
type Key struct {
	DB     uint64 // unique among the databases of the cache
	File   uint64 // number of the file
	Offset uint64 // of the block in the file, or another number of the block in its kind
	Kind   uint8  // kind of the block, below 5; two kinds may have equal offsets
}

func (k Key) hash() uint64 {
	h := (k.Offset ^ uint64(k.Kind)<<56) * 0x9E3779B97F4A7C15
	h = (h ^ h>>32 ^ k.File) * 0xD6E8FEB86659FD93
	h = (h ^ h>>32 ^ k.DB) * 0xC2B2AE3D27D4EB4F
	return h ^ h>>29
}

// Cache is a block cache that databases can share. Its methods may be called
// concurrently.
type Cache struct {
	shards []shard
	shift  uint // hash >> shift is the index of the shard
	slabs  *slabs
	closed sync.Once
	pinned int // when it was closed
}

// New returns a cache of the given size. A cache of 0 bytes keeps nothing: every
// Acquire is a load.
func New(bytes int64) *Cache {
	n := 1
	for n < maxShards && bytes >= int64(2*n)*minShardBytes {
		n *= 2
	}
	limit := max(bytes, 0) / int64(n) // of a shard
	c := &Cache{
		shards: make([]shard, n), shift: uint(64 - bits.TrailingZeros(uint(n))),
		slabs: newSlabs(int64(n) * regionsOf(limit)),
	}
	for i := range c.shards {
		c.shards[i].init(limit, c.slabs) // +checklocksignore: not shared yet
	}
	// A Handle refers to a shard, so the shards are unreachable when no block is pinned.
	runtime.AddCleanup(&c.shards[0], (*slabs).free, c.slabs)
	return c
}

// Close drops all blocks and frees their memory. That of blocks that are pinned or being
// loaded, whose number it returns, is freed when the last of them is released. A closed
// cache keeps nothing. A second call returns the same.
func (c *Cache) Close() (pinned int) {
	c.closed.Do(func() {
		for i := range c.shards {
			c.pinned += c.shards[i].close()
		}
		c.slabs.unpin() // the pin of New
	})
	return c.pinned
}

func (c *Cache) shard(hash uint64) *shard { return &c.shards[hash>>c.shift] }

// Get returns the block of k if it is in memory.
func (c *Cache) Get(k Key) (Handle, bool) {
	hash := k.hash()
	e := c.shard(hash).get(k, hash)
	return Handle{e}, e != nil
}

// Hint remembers the entry of a block, which saves the next lookup a lock and a
// search. Without it, a hot get among 500,000 entities needs 16 % more CPU (bench,
// get/key=present). The zero Hint is empty. A Hint pins
// nothing: the block may have been evicted and its entry reused, which GetAt detects.
// A Hint belongs to one Cache and may be used concurrently.
type Hint struct{ at atomic.Pointer[entry] }

// Set makes t remember the block of h, which its loader has filled.
func (t *Hint) Set(h Handle) { t.at.Store(h.e) }

// GetAt is Get that tries the entry of the hint first. A nil hint is ignored.
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
		hint.Set(h)
	}
	return h, ok
}

// Acquire returns the block of k if it is in memory; if another goroutine is loading
// it, Acquire waits. Otherwise loaded is false and the caller must load the block:
// fill Bytes, which has the given size and arbitrary contents, and then call either
// Fill or Fail. If admit is false or the cache does not keep the block, a block that is
// not in memory belongs to the caller alone and is dropped at the last Release.
func (c *Cache) Acquire(k Key, size int, admit bool) (h Handle, loaded bool) {
	hash := k.hash()
	e, loaded := c.shard(hash).acquire(k, hash, size, admit, Second, true)
	return Handle{e}, loaded
}

// Admission says when a full cache keeps a block.
type Admission uint8

// The values of Admission.
const (
	Second Admission = iota // when it is missed again while it is remembered
	Seldom                  // at every second chance of Second, for blocks that are costly to keep
	// Apart is Second for few blocks that replace the reading of many others. They are not
	// forgotten because others are missed.
	Apart
)

// AcquireKept is Acquire for a caller with memory for a block that the cache does not
// keep: ok is then false and h is empty.
func (c *Cache) AcquireKept(k Key, size int, when Admission) (h Handle, loaded, ok bool) {
	hash := k.hash()
	e, loaded := c.shard(hash).acquire(k, hash, size, true, when, false)
	return Handle{e}, loaded, e != nil
}

// Renew begins to replace a block: the caller fills the Bytes of h, which has the given
// size, and then calls Replace or Fail. It reports false if old is not in the cache any
// more, or is only its holder's.
func (c *Cache) Renew(old Handle, size int) (h Handle, ok bool) {
	e := old.e.shard.renew(old.e, size)
	return Handle{e}, e != nil
}

// Drop removes the blocks of files of a database. It looks at every block of the cache, so
// several files are best dropped together. Pinned blocks stay valid until their Release.
func (c *Cache) Drop(db uint64, files ...uint64) {
	drop := make(map[uint64]bool, len(files))
	for _, n := range files {
		drop[n] = true
	}
	for i := range c.shards {
		c.shards[i].drop(db, drop)
	}
}

// Stats holds counts since New and the current contents.
type Stats struct {
	Hits, Misses, Evictions uint64
	Blocks                  int
	Bytes                   int64 // of the cached blocks, including bookkeeping
	Limit                   int64
}

// Stats returns the current figures.
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

// Handle pins a block. The zero Handle pins nothing and may be released.
type Handle struct{ e *entry }

// Bytes returns the block, valid until Release. Only its loader may write to it,
// before Fill.
func (h Handle) Bytes() []byte { return h.e.buf }

// Value returns the value of Fill. For a loader it is the value of an evicted block
// of the same kind, or nil: the loader may reuse its memory.
func (h Handle) Value() any { return h.e.value }

// Fill ends a load and makes the block visible. The block keeps value, which counts
// as extra bytes of the budget.
func (h Handle) Fill(value any, extra int) { h.e.shard.fill(h.e, value, extra) }

// Replace is Fill for a Handle of Renew. It makes the block visible instead of old. Handles of
// old stay valid.
func (h Handle) Replace(old Handle, value any, extra int) {
	h.e.shard.replace(h.e, old.e, value, extra)
}

// Fail ends a failed load and releases the Handle. Of the callers that wait for the
// block, one becomes its loader.
func (h Handle) Fail() { h.e.shard.fail(h.e) }

// FailUnless is Fail unless filled is set. A loader defers it and sets filled with Fill, so that
// others do not wait for ever if it panics.
func (h Handle) FailUnless(filled *bool) {
	if !*filled {
		h.Fail()
	}
}

// Pin returns another Handle of the block of h, which is not empty. It has to be released too.
func (h Handle) Pin() Handle {
	h.e.pins.Add(1)
	return h
}

// Release unpins the block. Do not use the Handle, its bytes or its value afterwards.
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
