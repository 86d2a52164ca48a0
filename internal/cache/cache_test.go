package cache

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
)

func key(n int) Key {
	return Key{DB: 1, File: uint64(n % 3), Offset: uint64(n) * 4096, Kind: uint8(n % 2)}
}

// load returns the block of key(n), whose contents are n.
func load(t testing.TB, c *Cache, n, size int, admit bool) (h Handle, hit bool) {
	t.Helper()
	h, hit = c.Get(key(n))
	if !hit {
		if h, hit = c.Acquire(key(n), size, admit); !hit {
			binary.LittleEndian.PutUint64(h.Bytes(), uint64(n))
			h.Fill(n, 10)
			if h.Value() != n {
				t.Fatalf("value of a filled block: %v", h.Value())
			}
		}
	}
	if got := binary.LittleEndian.Uint64(h.Bytes()); got != uint64(n) || len(h.Bytes()) != size || h.Value() != n {
		t.Fatalf("block %d has contents %d, %d bytes, value %v, want %d bytes", n, got, len(h.Bytes()), h.Value(), size)
	}
	return h, hit
}

func TestLimit(t *testing.T) {
	for _, limit := range []int64{0, 1, 5000, 1 << 20, 40 << 20} {
		c := New(limit)
		r := rand.New(rand.NewPCG(1, uint64(limit)))
		var held []Handle
		for range 20000 {
			n := r.IntN(3000)
			h, _ := load(t, c, n, 500+n, r.IntN(4) > 0)
			if len(held) < 10 {
				held = append(held, h)
				continue
			}
			i := r.IntN(len(held))
			held[i].Release()
			held[i] = h
		}
		for _, h := range held {
			h.Release()
		}
		s := c.Stats()
		if s.Bytes > limit || s.Bytes < 0 || s.Limit > limit {
			t.Errorf("limit %d: %+v", limit, s)
		}
		for file := range uint64(3) {
			c.Drop(1, file)
		}
		if s := c.Stats(); s.Blocks != 0 || s.Bytes != 0 {
			t.Errorf("limit %d: after dropping all: %+v", limit, s)
		}
	}
}

func TestPinnedBlocksAreNotEvicted(t *testing.T) {
	c := New(10000)
	var held []Handle
	for n := range 30 {
		h, _ := load(t, c, n, 1000, true)
		held = append(held, h)
	}
	for n, h := range held {
		if got := binary.LittleEndian.Uint64(h.Bytes()); got != uint64(n) {
			t.Fatalf("pinned block %d has contents %d", n, got)
		}
		h.Release()
	}
	if s := c.Stats(); s.Bytes > 10000 {
		t.Fatalf("after the last release: %+v", s)
	}
}

// TestEvictsBesidePinnedBlocks pins more blocks than the small queue should have, behind others
// that were used. A block that is kept evicts one of the others.
func TestEvictsBesidePinnedBlocks(t *testing.T) {
	c := New(200 << 10)
	const size, others = 1000, 50
	n := 0
	for {
		h, loaded, ok := c.AcquireKept(key(n), size, Second)
		if !ok {
			break // the cache is full
		}
		if loaded {
			t.Fatalf("block %d is in the cache", n)
		}
		if h.Fill(nil, 0); n < others {
			again, _ := c.Acquire(key(n), size, true)
			again.Release()
			h.Release()
		} else {
			defer h.Release()
		}
		n++
	}
	h, _, ok := c.AcquireKept(key(n), size, Second) // the second miss
	if !ok || n < 2*others {
		t.Fatalf("block %d kept: %t", n, ok)
	}
	h.Fill(nil, 0)
	h.Release()
	if s := c.Stats(); s.Evictions == 0 || s.Bytes > s.Limit || s.Hits != others || s.Misses != uint64(n)+2 {
		t.Errorf("%+v", s)
	}
}

func TestHotBlockIsNotEvicted(t *testing.T) {
	c := New(200 << 10)
	for n := range 1000 {
		h, _ := load(t, c, 5, 1000, true)
		h.Release()
		h, _ = load(t, c, 100+n, 1000, true)
		h.Release()
	}
	if _, hit := load(t, c, 5, 1000, true); !hit {
		t.Error("the hot block was evicted")
	}
	before := c.Stats()
	for n := range 1000 {
		h, _ := load(t, c, 5000+n, 1000, false)
		h.Release()
	}
	if after := c.Stats(); after.Blocks != before.Blocks || after.Evictions != before.Evictions {
		t.Errorf("blocks that are not admitted change the cache: %+v, %+v", before, after)
	}
}

// TestFullCacheKeepsAtSecondMiss checks that a full cache keeps a block at its second miss,
// and that the first one evicts nothing.
func TestFullCacheKeepsAtSecondMiss(t *testing.T) {
	c := New(200 << 10)
	const size = 1000
	miss := func(n int) (kept bool) {
		h, loaded, ok := c.AcquireKept(key(n), size, Second)
		if loaded {
			t.Fatalf("block %d is in the cache", n)
		}
		if ok {
			h.Fill(nil, 0)
			h.Release()
		}
		return ok
	}
	n := 0
	for miss(n) {
		n++
	}
	if n < 100 {
		t.Fatalf("the cache is full with %d blocks", n)
	}
	before := c.Stats()
	if miss(5000) {
		t.Error("a full cache keeps a block at its first miss")
	}
	if after := c.Stats(); after.Evictions != before.Evictions || after.Blocks != before.Blocks {
		t.Errorf("the first miss changes the cache: %+v, %+v", before, after)
	}
	if !miss(5000) {
		t.Error("a full cache does not keep a block at its second miss")
	}
	if _, ok := c.Get(key(5000)); !ok || c.Stats().Evictions == before.Evictions {
		t.Error("the second miss evicts nothing")
	}
	c.Drop(1, key(0).File)
	if !miss(6000) {
		t.Error("a cache that is not full does not keep a block at its first miss")
	}
}

// fullCache returns a full cache and a function that misses a block and says whether the cache
// kept it.
func fullCache(t *testing.T) func(n int, when Admission) (kept bool) {
	t.Helper()
	c := New(200 << 10)
	const size = 1000
	miss := func(n int, when Admission) (kept bool) {
		h, _, ok := c.AcquireKept(key(n), size, when)
		if ok {
			h.Fill(nil, 0)
			h.Release()
		}
		return ok
	}
	n := 0
	for miss(n, Seldom) {
		n++
	}
	if n < 100 {
		t.Fatalf("the cache is full with %d blocks", n)
	}
	return miss
}

// TestFullCacheRemembersApart misses blocks, then many others, then the same blocks again. Those
// with the admission Apart are kept then, but for the few that others of them replaced.
func TestFullCacheRemembersApart(t *testing.T) {
	miss := fullCache(t)
	for _, when := range []Admission{Second, Apart} {
		const blocks = 50
		again := func() (kept int) {
			for n := range blocks {
				if miss(10000*int(1+when)+n, when) {
					kept++
				}
			}
			return kept
		}
		if kept := again(); kept > 0 {
			t.Fatalf("admission %d: %d blocks are kept at their first miss", when, kept)
		}
		for n := range 5000 {
			miss(100000*int(1+when)+n, Second)
		}
		switch kept := again(); {
		case when == Apart && kept < blocks*3/4:
			t.Errorf("%d of %d blocks apart are kept at their second miss", kept, blocks)
		case when == Second && kept > blocks/4:
			t.Errorf("%d of %d blocks are remembered among many others", kept, blocks)
		}
	}
}

// TestApartOutlives keeps a block of each admission in a full cache, and then others, as many as
// the cache holds in each round. The block with the admission Apart is evicted some rounds later,
// also if it was renewed.
func TestApartOutlives(t *testing.T) {
	for _, renewed := range []bool{false, true} {
		const size, others = 1000, 200
		c := New(200 << 10)
		keep := func(n int, when Admission) {
			for range 2 { // a full cache keeps a block at its second miss
				if h, loaded, ok := c.AcquireKept(key(n), size, when); ok {
					if !loaded {
						h.Fill(nil, 0)
					}
					h.Release()
				}
			}
		}
		next := 1000
		fill := func() {
			for range others {
				keep(next, Second)
				next++
			}
		}
		has := func(n int) bool { // without a use
			s, hash := c.shard(key(n).hash()), key(n).hash()
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.findLocked(key(n), hash) != nil
		}
		fill()
		keep(1, Second)
		keep(2, Apart)
		if !has(1) || !has(2) {
			t.Fatal("a block that was missed twice is not in the cache")
		}
		if renewed {
			old, loaded, _ := c.AcquireKept(key(2), size, Apart)
			h, ok := c.Renew(old, size)
			if !loaded || !ok {
				t.Fatal("a block in the cache cannot be renewed")
			}
			h.Replace(old, nil, 0)
			h.Release()
			old.Release()
		}
		rounds := 0
		for ; has(1) && rounds < 20; rounds++ {
			fill()
		}
		if fill(); !has(2) {
			t.Errorf("renewed %t: the block apart is evicted a round after the other one, which stayed %d", renewed, rounds)
		}
	}
}

// TestFullCacheKeepsSeldom checks that of the blocks that are kept seldom, a full cache keeps
// every second one that it would keep otherwise, and a cache that is not full all of them.
func TestFullCacheKeepsSeldom(t *testing.T) {
	miss := fullCache(t)
	for n := 5000; n < 5100; n += 2 {
		for m, want := range []bool{false, false, true} {
			if got := miss(n, Seldom); got != want {
				t.Fatalf("miss %d of block %d: kept %t, want %t", m+1, n, got, want)
			}
		}
		if miss(n+1, Second) || !miss(n+1, Second) {
			t.Fatalf("block %d, which is not kept seldom, is not kept at its second miss", n+1)
		}
	}
}

// TestRenew replaces a block that is pinned, one that is dropped meanwhile, and fails to replace one.
func TestRenew(t *testing.T) {
	c := New(500 << 10) // one shard
	s := &c.shards[0]
	chunks := func(what string, want int, bytes int64) {
		t.Helper()
		s.mu.Lock()
		got := s.chunks
		s.mu.Unlock()
		if st := c.Stats(); got != want || st.Bytes != bytes {
			t.Errorf("%s: %d blocks in regions, %d bytes, want %d and %d", what, got, st.Bytes, want, bytes)
		}
	}
	cost := func(size, extra int) int64 { return int64(chunkBytes(size) + extra + entryBytes) }
	old, _ := c.Acquire(key(1), 100, true)
	old.Bytes()[99] = 'o'
	old.Fill("old", 50)
	h, ok := c.Renew(old, 300)
	if !ok {
		t.Fatal("a cached block cannot be replaced")
	}
	if got, ok := c.Get(key(1)); !ok || got != old {
		t.Error("the block is not visible before Replace")
	} else {
		got.Release()
	}
	h.Replace(old, "new", 70)
	if got, ok := c.Get(key(1)); !ok || got != h || got.Value() != "new" || len(got.Bytes()) != 300 {
		t.Error("the new block is not visible")
	} else {
		got.Release()
	}
	if old.Value() != "old" || old.Bytes()[99] != 'o' {
		t.Error("the old block has changed")
	}
	if _, ok := c.Renew(old, 300); ok {
		t.Error("a block that was replaced can be replaced again")
	}
	chunks("replaced", 2, cost(300, 70))
	old.Release()
	chunks("released", 1, cost(300, 70))
	failed, _ := c.Renew(h, 200)
	failed.Fail()
	if got, ok := c.Get(key(1)); !ok || got != h {
		t.Error("a failure to replace it removed the block")
	} else {
		got.Release()
	}
	chunks("failed", 1, cost(300, 70))
	late, _ := c.Renew(h, 200)
	c.Drop(key(1).DB, key(1).File)
	late.Replace(h, "late", 0)
	if _, ok := c.Get(key(1)); ok {
		t.Error("a block that was dropped is visible again")
	}
	late.Release()
	h.Release()
	chunks("dropped", 0, 0)
	last, _ := c.Acquire(key(1), 100, true)
	last.Fill(nil, 0)
	if n := c.Close(); n != 1 {
		t.Errorf("%d blocks are pinned at the end, want 1", n)
	}
	if _, ok := c.Renew(last, 100); ok {
		t.Error("a block of a closed cache can be replaced")
	}
	last.Release()
}

func TestDrop(t *testing.T) {
	c := New(1 << 20)
	for n := range 90 {
		h, _ := load(t, c, n, 100, true)
		h.Release()
	}
	pinned, hit := load(t, c, 0, 100, true)
	if !hit {
		t.Fatal("the block is not cached")
	}
	c.Drop(1, 0)
	for n := range 90 {
		if _, ok := c.Get(key(n)); ok != (n%3 != 0) {
			t.Errorf("block %d: cached %t", n, ok)
		}
	}
	if got := binary.LittleEndian.Uint64(pinned.Bytes()); got != 0 {
		t.Errorf("dropped block changed under its pin: %d", got)
	}
	pinned.Release()
	c.Drop(2, 1, 2)
	c.Drop(1)
	if got := c.Stats().Blocks; got != 60 {
		t.Errorf("%d blocks after files of another database and no file were dropped, want 60", got)
	}
	if c.Drop(1, 1, 2); c.Stats().Blocks != 0 {
		t.Errorf("%d blocks after all files were dropped", c.Stats().Blocks)
	}
}

// TestOneLoader acquires a block while its load is under way, which then fails. One of those that wait loads it again.
func TestOneLoader(t *testing.T) { synctest.Test(t, testOneLoader) }

func testOneLoader(t *testing.T) {
	c := New(1 << 20)
	const waiters = 8
	h, loaded := c.Acquire(key(1), 100, true)
	if loaded {
		t.Fatal("a block is in an empty cache")
	}
	if _, ok := c.Get(key(1)); ok {
		t.Fatal("a block is visible while it is loaded")
	}
	var wg sync.WaitGroup
	loads := make(chan bool, waiters)
	for range waiters {
		wg.Go(func() {
			h, loaded := c.Acquire(key(1), 100, true)
			if !loaded { // one of them, after the first load failed
				binary.LittleEndian.PutUint64(h.Bytes(), 77)
				h.Fill(nil, 0)
			}
			if binary.LittleEndian.Uint64(h.Bytes()) != 77 {
				t.Error("waiter has other contents")
			}
			loads <- !loaded
			h.Release()
		})
	}
	synctest.Wait() // until they wait
	h.Fail()
	wg.Wait()
	close(loads)
	n := 0
	for l := range loads {
		if l {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d loads after a failed one, want 1", n)
	}
	if n := c.Close(); n != 0 || slabsOf(c) != 0 {
		t.Errorf("after the failed load: %d blocks pinned, %d slabs not freed", n, slabsOf(c))
	}
}

func TestDeterministicEvictions(t *testing.T) {
	run := func() string {
		c := New(300 << 10)
		r := rand.New(rand.NewPCG(2, 2))
		log := ""
		for range 5000 {
			n := r.IntN(800)
			h, hit := load(t, c, n, 300+n, true)
			h.Release()
			if !hit {
				log += fmt.Sprintf(" %d", n)
			}
		}
		return log
	}
	if a, b := run(), run(); a != b {
		t.Error("two runs load different blocks")
	}
}

func TestConcurrentUse(t *testing.T) {
	c := New(600 << 10)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(3, uint64(g)))
			for i := range 5000 {
				n := r.IntN(600)
				h, _ := load(t, c, n, 1000+n, r.IntN(8) > 0)
				if i%500 == 0 {
					c.Drop(1, uint64(r.IntN(3)))
				}
				if got := binary.LittleEndian.Uint64(h.Bytes()); got != uint64(n) {
					t.Errorf("block %d has contents %d", n, got)
				}
				h.Release()
			}
		})
	}
	wg.Wait()
	if s := c.Stats(); s.Bytes > s.Limit {
		t.Errorf("over the limit when nothing is pinned: %+v", s)
	}
}

func TestHitsDoNotAllocate(t *testing.T) {
	c := New(1 << 20)
	h, _ := load(t, c, 1, 4000, true)
	h.Release()
	if n := testing.AllocsPerRun(100, func() {
		h, _ := c.Get(key(1))
		h.Release()
		h, _ = c.Acquire(key(2), 4000, false)
		h.Fill(nil, 0)
		h.Release()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkGet(b *testing.B) {
	for _, blocks := range []int{100, 20000} {
		b.Run(fmt.Sprintf("blocks=%d", blocks), func(b *testing.B) {
			c := New(256 << 20)
			for n := range blocks {
				h, _ := load(b, c, n, 4000, true)
				h.Release()
			}
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				h, ok := c.Get(key(n))
				if !ok {
					b.Fatal("miss")
				}
				h.Release()
				if n += 7919; n >= blocks {
					n %= blocks
				}
			}
		})
	}
}

// TestHints reads blocks through hints from several goroutines. The cache is so small
// that most hints refer to an entry with another block.
func TestHints(t *testing.T) {
	const blocks, size = 64, 512
	c := New(10 * (size + entryBytes))
	hints := make([]Hint, blocks)
	var wg sync.WaitGroup
	for g := range uint64(4) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(4, g))
			for range 5_000 {
				i := rng.IntN(blocks)
				k := Key{File: 1, Offset: uint64(i)}
				h, ok := c.GetAt(k, &hints[i])
				if !ok {
					if h, ok = c.Acquire(k, size, rng.IntN(8) > 0); !ok {
						for j := range h.Bytes() {
							h.Bytes()[j] = byte(i)
						}
						h.Fill(nil, 0)
					}
				}
				for _, b := range h.Bytes() {
					if b != byte(i) {
						t.Errorf("block %d holds %d", i, b)
						break
					}
				}
				h.Release()
			}
		})
	}
	wg.Wait()
	if s := c.Stats(); s.Hits == 0 || s.Evictions == 0 {
		t.Errorf("%+v: want hits and evictions", s)
	}
}

// TestStaleHint uses a hint whose entry has another block.
func TestStaleHint(t *testing.T) {
	c := New(minShardBytes)
	var hint Hint
	fill := func(k Key) {
		h, _ := c.Acquire(k, 100, true)
		h.Fill(nil, 0)
		h.Release()
	}
	one, two := Key{File: 1}, Key{File: 2}
	fill(one)
	h, ok := c.GetAt(one, &hint)
	if !ok {
		t.Fatal("the block is not cached")
	}
	h.Release()
	c.Drop(0, 1)
	if _, ok := c.GetAt(one, &hint); ok {
		t.Error("a dropped block is found by its hint")
	}
	fill(two)
	if _, ok := c.GetAt(one, &hint); ok {
		t.Error("another block is found by the hint")
	}
}
