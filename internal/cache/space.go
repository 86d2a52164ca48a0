package cache

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/internal/arena"
)

const (
	granule      = 64 // the length of a chunk is a multiple of this
	chunkHeader  = 8
	minRegion    = 64 << 10
	bins         = 128
	exactBins    = 16 // each of these bins has chunks of one length
	binTries     = 4
	regionBlocks = 4 // the longest block is this part of a region
)

// space allocates blocks in regions outside the Go heap. It is a two-level segregated
// fit: free chunks are in lists by length, and a freed chunk merges with its neighbors.
//
// A region is a sequence of chunks. The number of a chunk is the offset of its first
// granule among those of all regions. A chunk begins with a header,
//
//	0  u32 length in granules * 2, + 1 if it is free
//	4  u32 length of the chunk before it, 0 for the first of its region
//	8  the block; or, in a free chunk, u32 number + 1 of the next free chunk of its
//	   bin, and u32 that of the one before, 0 for none
//
// All numbers that the header holds are written by this type alone.
type space struct {
	regions [][]byte
	shift   uint // a region has 1<<shift granules
	most    int  // regions
	first   [bins]uint32
	used    [bins / 64]uint64 // bins with a chunk
}

// init gives s regions of at most the given number of bytes. With too few, s has none
// and allocates nothing.
func (s *space) init(bytes int64) {
	region := int64(arena.SlabBytes)
	for region > minRegion && region*4 > bytes {
		region /= 2
	}
	s.shift = uint(bits.TrailingZeros64(uint64(region / granule)))
	s.most = int(bytes / region)
}

func (s *space) regionBytes() int { return granule << s.shift }

// fits reports whether s can have a block of n bytes.
func (s *space) fits(n int) bool { return s.most > 0 && n <= s.regionBytes()/regionBlocks }

// chunkBytes returns how many bytes a block of n bytes takes.
func chunkBytes(n int) int { return (n + chunkHeader + granule - 1) / granule * granule }

func (s *space) chunk(number uint32) []byte {
	return s.regions[number>>s.shift][int(number&(1<<s.shift-1))*granule:]
}

func length(chunk []byte) uint32 { return binary.LittleEndian.Uint32(chunk) >> 1 }
func isFree(chunk []byte) bool   { return chunk[0]&1 != 0 }
func before(chunk []byte) uint32 { return binary.LittleEndian.Uint32(chunk[4:]) }

func setLength(chunk []byte, n uint32) { binary.LittleEndian.PutUint32(chunk, n<<1) }
func setBefore(chunk []byte, n uint32) { binary.LittleEndian.PutUint32(chunk[4:], n) }

// next returns the number of the chunk after the one with the given number and length,
// and false if that is the last of its region.
func (s *space) next(number, n uint32) (uint32, bool) {
	return number + n, (number+n)>>s.shift == number>>s.shift
}

// binOf returns the bin of chunks of n granules. Lengths of a bin differ by an eighth at
// most.
func binOf(n uint32) int {
	if n < exactBins {
		return int(n)
	}
	e := bits.Len32(n) - 1
	return exactBins + (e-4)*8 + int(n>>(e-3)&7)
}

// grow adds a region. It reports false if s has all its regions or the system has no
// memory.
func (s *space) grow(from *slabs) bool {
	if len(s.regions) == s.most {
		return false
	}
	b := from.take(s.regionBytes())
	if b == nil {
		return false
	}
	number := uint32(len(s.regions)) << s.shift
	s.regions = append(s.regions, b)
	setBefore(b, 0)
	s.insert(number, 1<<s.shift)
	return true
}

// alloc returns a block of n bytes with arbitrary contents, and the number of its chunk.
func (s *space) alloc(n int) (number uint32, block []byte, ok bool) {
	want := uint32(chunkBytes(n) / granule)
	number, ok = s.find(want)
	if !ok {
		return 0, nil, false
	}
	s.remove(number)
	c := s.chunk(number)
	have := length(c)
	if rest := have - want; rest > 0 {
		setBefore(s.chunk(number+want), want)
		if after, ok := s.next(number, have); ok {
			setBefore(s.chunk(after), rest)
		}
		s.insert(number+want, rest)
	}
	setLength(c, want)
	return number, c[chunkHeader : chunkHeader+n : chunkHeader+n], true
}

// find returns a free chunk of at least want granules.
func (s *space) find(want uint32) (number uint32, ok bool) {
	bin := binOf(want)
	at := s.first[bin]
	for range binTries {
		if at == 0 {
			break
		}
		c := s.chunk(at - 1)
		if length(c) >= want {
			return at - 1, true
		}
		at = binary.LittleEndian.Uint32(c[chunkHeader:])
	}
	bin++
	for i := bin / 64; i < len(s.used); i++ {
		m := s.used[i]
		if i == bin/64 {
			m &= ^uint64(0) << (bin % 64)
		}
		if m != 0 {
			return s.first[i*64+bits.TrailingZeros64(m)] - 1, true
		}
	}
	return 0, false
}

// free frees the chunk of a block.
func (s *space) free(number uint32) {
	c := s.chunk(number)
	n := length(c)
	if after, ok := s.next(number, n); ok && isFree(s.chunk(after)) {
		s.remove(after)
		n += length(s.chunk(after))
	}
	if b := before(c); b > 0 && isFree(s.chunk(number-b)) {
		number -= b
		s.remove(number)
		n += b
	}
	if after, ok := s.next(number, n); ok {
		setBefore(s.chunk(after), n)
	}
	s.insert(number, n)
}

// insert makes n granules a free chunk.
func (s *space) insert(number, n uint32) {
	c, bin := s.chunk(number), binOf(n)
	binary.LittleEndian.PutUint32(c, n<<1|1)
	head := s.first[bin]
	binary.LittleEndian.PutUint32(c[chunkHeader:], head)
	binary.LittleEndian.PutUint32(c[chunkHeader+4:], 0)
	if head > 0 {
		binary.LittleEndian.PutUint32(s.chunk(head - 1)[chunkHeader+4:], number+1)
	}
	s.first[bin] = number + 1
	s.used[bin/64] |= 1 << (bin % 64)
}

// remove takes a free chunk from its bin.
func (s *space) remove(number uint32) {
	c := s.chunk(number)
	bin := binOf(length(c))
	next, prev := binary.LittleEndian.Uint32(c[chunkHeader:]), binary.LittleEndian.Uint32(c[chunkHeader+4:])
	if next > 0 {
		binary.LittleEndian.PutUint32(s.chunk(next - 1)[chunkHeader+4:], prev)
	}
	if prev > 0 {
		binary.LittleEndian.PutUint32(s.chunk(prev - 1)[chunkHeader:], next)
	} else if s.first[bin] = next; next == 0 {
		s.used[bin/64] &^= 1 << (bin % 64)
	}
}

// plainSlabs is how many slabs a cache has before the first huge one. A cache with few
// blocks has regions that are mostly empty, and a huge slab would make them resident.
const plainSlabs = 4

// slabs is the memory of a cache.
type slabs struct {
	// pins is one until Close, and then the number of blocks that it left pinned.
	pins atomic.Int64
	mu   sync.Mutex
	// +checklocks:mu
	all [][]byte
	// The part of the last one that no region has.
	// +checklocks:mu
	rest []byte
	// The next one, which is resident; nil if there is none. populating says that it is being made.
	// +checklocks:mu
	next []byte
	// +checklocks:mu
	populating bool
	// +checklocks:mu
	closed bool
	most   int // slabs that all regions need
}

// newSlabs returns the slabs for regions of the given number of bytes in all.
func newSlabs(bytes int64) *slabs {
	huge := max(bytes-plainSlabs*arena.SlabBytes, 0)
	s := &slabs{most: plainSlabs + int((huge+arena.HugeSlabBytes-1)/arena.HugeSlabBytes)}
	s.pins.Store(1)
	return s
}

// unpin frees the memory if nothing pins it any more.
func (s *slabs) unpin() {
	if s.pins.Add(-1) == 0 {
		s.free()
	}
}

// take returns n bytes, a power of two of at most SlabBytes, or nil if there are none.
func (s *slabs) take(n int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if len(s.rest) < n {
		b := s.next
		switch {
		case b != nil:
			s.next = nil
		case len(s.all) < plainSlabs:
			b = arena.Slab()
		default:
			b = arena.HugeSlab()
		}
		if b == nil {
			return nil
		}
		s.all, s.rest = append(s.all, b), b
		if len(s.all) >= plainSlabs && len(s.all) < s.most && !s.populating {
			s.populating = true
			go s.populate()
		}
	}
	b := s.rest[:n:n]
	s.rest = s.rest[n:]
	return b
}

// populate makes the next slab. The first write to a huge page takes up to some milliseconds, most
// on a virtual machine. Where gets wait for it, their 99th percentile is 0.8 and not 0.08 ms
// (bench/peers, get/key=present/from=disk/readers=1).
func (s *slabs) populate() {
	b := arena.HugeSlab()
	if b != nil {
		arena.PopulateSlab(b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.populating = b, false
	if s.closed || len(s.all) >= s.most { // others were taken meanwhile
		s.freeNextLocked()
	}
}

// +checklocks:s.mu
func (s *slabs) freeNextLocked() {
	if s.next != nil {
		arena.FreeSlab(s.next)
		s.next = nil
	}
}

// free gives the memory to other caches. No block may be in use.
func (s *slabs) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.all {
		arena.FreeSlab(b)
	}
	s.freeNextLocked()
	s.all, s.rest, s.closed = nil, nil, true
}
