package cache

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/tablerock-db/tablerock/internal/arena"
	"github.com/tablerock-db/tablerock/internal/race"
)

// TestSpace allocates and frees blocks in random order. No block may change while it is
// allocated, none may be refused while a bin of longer chunks has one, and at the end each
// region must be one free chunk.
func TestSpace(t *testing.T) {
	seeds := uint64(20)
	if race.Enabled {
		seeds = 2
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(6, seed))
		from := slabs{rest: bytes.Repeat([]byte{0xFF}, arena.SlabBytes)} // of a closed cache
		var s space
		limit, steps := int64(rng.IntN(6)+1)*(100<<10), 20_000
		if seed%4 == 1 { // with longer blocks
			limit, steps = 16*limit, 4000
		}
		s.init(limit)
		type block struct {
			number uint32
			bytes  []byte
			fill   byte
		}
		var held []block
		refused, largest := 0, 0
		for step := range steps {
			if n := len(held); n > 0 && rng.IntN(100) < 20+n/10 {
				i := rng.IntN(n)
				b := held[i]
				if want := bytes.Repeat([]byte{b.fill}, len(b.bytes)); !bytes.Equal(b.bytes, want) {
					t.Fatalf("seed %d, step %d: a block of %d bytes has changed", seed, step, len(b.bytes))
				}
				s.free(b.number)
				held[i] = held[n-1]
				held = held[:n-1]
				continue
			}
			size := rng.IntN(s.regionBytes()/regionBlocks + 1)
			if rng.IntN(3) > 0 {
				size = rng.IntN(3000)
			}
			number, p, ok := s.alloc(size)
			if !ok && s.grow(&from) {
				number, p, ok = s.alloc(size)
			}
			if !ok {
				refused++
				for bin := binOf(uint32(chunkBytes(size)/granule)) + 1; bin < bins; bin++ {
					if s.first[bin] != 0 {
						t.Fatalf("seed %d, step %d: %d bytes refused, and bin %d has a chunk", seed, step, size, bin)
					}
				}
				continue
			}
			if len(p) != size || cap(p) != size {
				t.Fatalf("seed %d: %d bytes, capacity %d, want %d", seed, len(p), cap(p), size)
			}
			b := block{number, p, byte(rng.Uint32())}
			for i := range p {
				p[i] = b.fill
			}
			held = append(held, b)
			largest = max(largest, size)
		}
		if refused == 0 || largest < s.regionBytes()/8 {
			t.Errorf("seed %d: %d refused, largest %d of %d: the test does not fill the space", seed, refused, largest, s.regionBytes())
		}
		for _, b := range held {
			s.free(b.number)
		}
		for i := range s.regions {
			if c := s.chunk(uint32(i) << s.shift); !isFree(c) || length(c) != 1<<s.shift {
				t.Errorf("seed %d: region %d is not one free chunk after the last free", seed, i)
			}
		}
		from.free()
	}
}

// TestBins checks that a bin has no chunk longer than those of the next one, and that lengths of
// a bin differ by an eighth at most.
func TestBins(t *testing.T) {
	least, last := uint32(1), binOf(1)
	for n := uint32(2); n <= arena.SlabBytes/granule; n++ {
		switch bin := binOf(n); {
		case bin < last || bin >= bins:
			t.Fatalf("%d granules: bin %d, after bin %d", n, bin, last)
		case bin > last:
			least, last = n, bin
		case (n-least)*8 > least:
			t.Fatalf("bin %d has chunks of %d and of %d granules", bin, least, n)
		}
	}
}

// TestFreedSpaceIsUsed fills a space with blocks of one length. The space of one that is freed is
// enough for the next one.
func TestFreedSpaceIsUsed(t *testing.T) {
	for size := 1; ; size += 1 + size/2 {
		var from slabs
		var s space
		s.init(200 << 10)
		if !s.fits(size) {
			break
		}
		var held []uint32
		for {
			number, _, ok := s.alloc(size)
			if !ok && !s.grow(&from) {
				break
			}
			if ok {
				held = append(held, number)
			}
		}
		for _, want := range held {
			s.free(want)
			if got, _, ok := s.alloc(size); !ok || got != want {
				t.Errorf("%d bytes: chunk %d, %t, want %d, which was freed", size, got, ok, want)
			}
		}
		from.free()
	}
}

// TestNextSlab takes all slabs of a cache. From some plain ones on, the next is one that was made
// before, as long as the cache can need it, and none remains after free.
func TestNextSlab(t *testing.T) {
	const most, regions = plainSlabs + 3, plainSlabs*arena.SlabBytes + 3*arena.HugeSlabBytes
	s := newSlabs(regions)
	next := func() []byte { // once nothing is being made
		for {
			s.mu.Lock()
			b, populating := s.next, s.populating
			s.mu.Unlock()
			if !populating {
				return b
			}
			runtime.Gosched()
		}
	}
	for n := range most {
		want := next()
		if made := want != nil; made != (n >= plainSlabs) {
			t.Errorf("before slab %d: the next one is made: %t", n, made)
		}
		got := s.take(arena.SlabBytes)
		if want != nil {
			if &got[0] != &want[0] {
				t.Errorf("slab %d is not the one that was made", n)
			}
			s.take(arena.SlabBytes) // the rest of it
		}
	}
	if next() != nil {
		t.Error("a slab was made that the cache cannot need")
	}
	s.free()
	s = newSlabs(regions)
	for range plainSlabs {
		s.take(arena.SlabBytes)
	}
	s.free() // while the next one is made, or after
	if next() != nil {
		t.Error("a slab remains after free")
	}
}

// TestOneNextSlab takes slabs while the next one is being made: no second one is made, whose memory
// would be lost.
func TestOneNextSlab(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlabs(plainSlabs*arena.SlabBytes + 3*arena.HugeSlabBytes)
		s.mu.Lock()
		s.populating = true
		s.mu.Unlock()
		for range plainSlabs {
			s.take(arena.SlabBytes)
		}
		synctest.Wait()
		s.mu.Lock()
		if s.next != nil {
			t.Error("a second slab was made")
		}
		s.mu.Unlock()
		s.free()
	})
}

// TestMostSlabs gives all shards of caches their regions: no slab is made that they do not need.
func TestMostSlabs(t *testing.T) {
	for _, mib := range []int64{1, 2, 5, 8, 16, 32, 80} {
		c := New(mib << 20)
		for i := range c.shards {
			s := &c.shards[i]
			s.mu.Lock()
			for s.space.grow(s.slabs) {
			}
			s.mu.Unlock()
		}
		for populating := true; populating; runtime.Gosched() {
			c.slabs.mu.Lock()
			populating = c.slabs.populating
			if !populating && c.slabs.next != nil {
				t.Errorf("%d MiB: a slab remains", mib)
			}
			c.slabs.mu.Unlock()
		}
		if n := slabsOf(c); n != c.slabs.most && mib > plainSlabs {
			t.Errorf("%d MiB: %d slabs, the cache expects %d", mib, n, c.slabs.most)
		}
		c.Close()
	}
}

// TestWithoutSlabs fills a cache whose memory the system refuses: its blocks are on the Go heap.
func TestWithoutSlabs(t *testing.T) {
	c := New(1 << 20)
	c.slabs.free() // it gives nothing from now on
	const blocks = 100
	for range 2 {
		for n := range blocks {
			h, _ := load(t, c, n, 1000, true)
			h.Release()
		}
	}
	if n := c.Stats().Blocks; n != blocks {
		t.Errorf("%d blocks, want %d", n, blocks)
	}
	if n := slabsOf(c); n != 0 {
		t.Errorf("%d slabs after free", n)
	}
}

func slabsOf(c *Cache) int {
	c.slabs.mu.Lock()
	defer c.slabs.mu.Unlock()
	return len(c.slabs.all)
}

// TestMemoryIsLimited fills caches with small blocks, and then with blocks that have a value of
// 64 KiB: their memory, the regions of the small ones included, stays below the limit.
func TestMemoryIsLimited(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, limit := range []int64{4 << 20, 8 << 20, 32 << 20, 64 << 20, 80 << 20, 128 << 20, 160 << 20} {
		c := New(limit)
		most := limit / (16 << 10)
		for n := range 2 * most {
			size := 16 << 10
			if n >= most {
				size = 64<<10 + 200
			}
			for range 2 { // a full cache keeps what is missed twice
				h, loaded, ok := c.AcquireKept(Key{Offset: uint64(n)}, size, Second)
				if ok && !loaded {
					h.Fill(nil, 0)
				}
				h.Release()
			}
		}
		if got := memoryOf(c); got > limit {
			t.Errorf("a cache of %d MiB takes %d bytes, %.2f times that", limit>>20, got, float64(got)/float64(limit))
		}
		c.Close()
	}
}

// memoryOf returns the bytes of the regions and of the blocks on the Go heap.
func memoryOf(c *Cache) (bytes int64) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		bytes += int64(len(s.space.regions) * s.space.regionBytes())
		for _, q := range []*queue{&s.small, &s.main} {
			for e := q.oldest; e != nil; e = e.next {
				if e.chunk == 0 {
					bytes += e.cost()
				}
			}
		}
		s.mu.Unlock()
	}
	return bytes
}

// TestClose closes a cache while blocks are pinned and loaded.
func TestClose(t *testing.T) {
	c := New(1 << 20)
	for n := range 50 {
		h, _ := load(t, c, n, 5000, true)
		h.Release()
	}
	if slabsOf(c) == 0 {
		t.Fatal("no block is outside the Go heap")
	}
	pinned, _ := load(t, c, 3, 5000, true)
	loading, _ := c.Acquire(key(1000), 5000, true)
	if n := c.Close(); n != 2 {
		t.Errorf("Close: %d pinned, want 2", n)
	}
	if slabsOf(c) == 0 {
		t.Error("the memory of a pinned block was freed")
	}
	late, hit := load(t, c, 4, 5000, true)
	if hit || late.e.chunk != 0 {
		t.Errorf("a closed cache has block 4: %t, or put it in its space", hit)
	}
	late.Release()
	loading.Fill(nil, 0)
	loading.Release()
	if h, hit := load(t, c, 3, 5000, true); hit {
		t.Error("a closed cache has block 3")
	} else {
		h.Release()
	}
	if got := pinned.Bytes()[0]; got != 3 {
		t.Errorf("a pinned block changed to %d", got)
	}
	if n := c.Close(); n != 2 || slabsOf(c) == 0 {
		t.Errorf("second Close: %d pinned, %d slabs, want 2 pinned and their memory", n, slabsOf(c))
	}
	pinned.Release()
	if slabsOf(c) != 0 {
		t.Error("the memory is not freed with the last block")
	}
	if s := c.Stats(); s.Bytes != 0 || s.Blocks != 0 {
		t.Errorf("after Close: %+v", s)
	}
}

// TestFailedLoadsAreFreed fails loads. Their memory is used again, and freed at the end.
func TestFailedLoadsAreFreed(t *testing.T) {
	c := New(1 << 20)
	const size = 5000
	for n := range 1000 {
		h, _ := c.Acquire(key(n), size, true)
		if h.e.chunk == 0 {
			t.Fatalf("after %d failed loads a block is on the Go heap", n)
		}
		h.Fail()
	}
	if n := c.Close(); n != 0 || slabsOf(c) != 0 {
		t.Errorf("%d blocks pinned, %d slabs not freed", n, slabsOf(c))
	}
}

// TestMissesDoNotAllocate loads blocks of many sizes through a full cache.
func TestMissesDoNotAllocate(t *testing.T) {
	c := New(4 << 20)
	rng := rand.New(rand.NewPCG(7, 7))
	var evicted uint64
	run := func() {
		for range 100 {
			n := rng.IntN(2000)
			h, ok := c.Acquire(key(n), 3000+n%4000, true)
			if !ok {
				h.Fill(nil, 0)
			}
			h.Release()
		}
	}
	for range 100 {
		run()
	}
	evicted = c.Stats().Evictions
	// The free entries of a kind can be too few now and then.
	if n := testing.AllocsPerRun(100, run); n > 10 {
		t.Errorf("%v allocations for about 60 misses", n)
	}
	if c.Stats().Evictions-evicted < 1000 {
		t.Error("the cache is not full")
	}
}
