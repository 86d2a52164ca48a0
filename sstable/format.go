package sstable

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// The file. Integers are little-endian, except where key bytes stand.
//
//	header | group ... | shapes | index | filter | footer
//
// Header, groups' parts, shapes, index, filter and footer are sections: each
// ends in the sum of what stands before it in that section,
//
//	XXH64(bytes) xor bind(file, offset of the section)
//
// so that a section found at another place, or in another file, is refused.
// Sections follow each other without a gap.
//
// Header, 48 bytes
//
//	 0  magic "TROCKsst"
//	 8  u32 version
//	12  u32 zero
//	16  16 bytes database id
//	32  u64 file number
//	40  u64 sum
//
// Group
//
//	head | heap unit ... | extent ...
//
// The head is described in head.go. A heap unit is the values of some
// consecutive rows, an extent is one value of more than 4 KiB; both are either
// an s2 block or, when that would not be smaller, the raw bytes, which is the
// case when the stored length is the raw length.
//
// Shapes
//
//	0  u32 count
//	4  count shapes as codec.AppendShape writes them; ids count from 0
//
// Index
//
//	0  u32 groups
//	4  groups entries:
//	       0  u64 offset of the group
//	       8  u32 length of the head, sum included
//	      12  u32 length of the group
//	      16  u16 rows
//	      18  u16 length of the separator
//	      20  u32 flags: 1 = the group begins with an older version of the user
//	          key that ends the group before
//	   separators: user keys, or beginnings of them, greater than all of the
//	   group before (or equal, with flag 1) and not greater than the group's first
//	   u16 length and bytes of the smallest internal key, then of the largest
//
// Filter: blocks of 64 bytes, see filter.go.
//
// Footer, 152 bytes
//
//	  0  3 times u64 offset and u64 length, sum included: shapes, index, filter
//	 48  16 bytes zero
//	 64  u64 entries
//	 72  u64 tombstones
//	 80  u64 smallest sequence
//	 88  u64 largest sequence
//	 96  u64 user keys
//	104  u64 file number
//	112  16 bytes database id
//	128  u32 version
//	132  u32 zero
//	136  magic
//	144  u64 sum
const (
	magic   = "TROCKsst" // part of the file format
	version = 1          // part of the file format

	headerBytes = 48
	footerBytes = 152
	sumBytes    = 8

	indexEntryBytes = 24
	flagContinues   = 1 // part of the file format
)

// Limits of the format. A reader refuses what exceeds them before it allocates.
const (
	maxGroupBytes  = 32 << 10 // logical size at which a writer ends a group
	maxGroupRows   = 1024
	maxHeadBytes   = 1 << 20
	unitBytes      = 4 << 10 // a unit ends with the row that reaches it
	maxUnitBytes   = 2 << 20
	bigValueBytes  = 4 << 10 // a longer value is an extent
	maxExtentBytes = 1 << 20
)

// Kinds of blocks in the cache.
const (
	kindHead uint8 = iota
	kindUnit
	kindExtent
)

// binding is what the sums of one file are bound to.
type binding uint64

func bind(dbid [16]byte, number uint64) binding {
	var b [24]byte
	copy(b[:], dbid[:])
	binary.LittleEndian.PutUint64(b[16:], number)
	return binding(xxhash.Sum64(b[:]))
}

func (b binding) sum(p []byte, off int64) uint64 {
	m := (uint64(b) + uint64(off)) * 0x9E3779B97F4A7C15
	m = (m ^ m>>32) * 0xD6E8FEB86659FD93
	return xxhash.Sum64(p) ^ m ^ m>>29
}

// appendSum ends the section that begins at dst[from] and will stand at off.
func (b binding) appendSum(dst []byte, from int, off int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, b.sum(dst[from:], off))
}

// check reports whether section, which stands at off, has the right sum.
func (b binding) check(section []byte, off int64) bool {
	n := len(section) - sumBytes
	return n >= 0 && binary.LittleEndian.Uint64(section[n:]) == b.sum(section[:n], off)
}

func appendHeader(dst []byte, b binding, dbid [16]byte, number uint64) []byte {
	from := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = append(dst, dbid[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, number)
	return b.appendSum(dst, from, 0)
}

// span is the place of a section.
type span struct{ off, len uint64 }

func (s span) end() uint64 { return s.off + s.len }

type footer struct {
	shapes, index, filter span
	entries, tombstones   uint64
	minSeq, maxSeq        uint64
	keys                  uint64
}

func appendFooter(dst []byte, b binding, dbid [16]byte, number uint64, f footer, off int64) []byte {
	from := len(dst)
	for _, s := range []span{f.shapes, f.index, f.filter, {}} {
		dst = binary.LittleEndian.AppendUint64(dst, s.off)
		dst = binary.LittleEndian.AppendUint64(dst, s.len)
	}
	for _, n := range []uint64{f.entries, f.tombstones, f.minSeq, f.maxSeq, f.keys, number} {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	dst = append(dst, dbid[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = append(dst, magic...)
	return b.appendSum(dst, from, off)
}

// decodeFooter reads a footer that stands at off and whose sum holds.
func decodeFooter(p []byte, dbid [16]byte, number uint64, off int64) (f footer, what string) {
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(p[i:]) }
	f = footer{
		shapes: span{u(0), u(8)}, index: span{u(16), u(24)}, filter: span{u(32), u(40)},
		entries: u(64), tombstones: u(72), minSeq: u(80), maxSeq: u(88), keys: u(96),
	}
	end := uint64(off)
	switch {
	case string(p[136:144]) != magic || u(104) != number || [16]byte(p[112:128]) != dbid || u(128) != version || u(48) != 0 || u(56) != 0:
		return f, "footer does not belong to the header"
	case f.shapes.off < headerBytes, f.shapes.off > end, f.shapes.len > end, f.index.len > end, f.filter.len > end:
		return f, "footer names sections outside the file"
	case f.shapes.end() != f.index.off, f.index.end() != f.filter.off, f.filter.end() != end:
		return f, "footer names sections that do not follow each other"
	case f.tombstones > f.entries, f.minSeq > f.maxSeq, f.keys > f.entries, f.entries > 0 && f.keys == 0:
		return f, "footer has impossible counts"
	}
	return f, ""
}

// cursor reads fields one after the other; reading past the end sets bad and
// gives zeros.
type cursor struct {
	p   []byte
	off int
	bad bool
}

func (c *cursor) bytes(n int) []byte {
	if n < 0 || n > len(c.p)-c.off {
		c.bad = true
		return nil
	}
	b := c.p[c.off : c.off+n]
	c.off += n
	return b
}

func (c *cursor) u8() uint8 {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() int {
	if b := c.bytes(2); b != nil {
		return int(binary.LittleEndian.Uint16(b))
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// le16 is entry i of an array of little-endian u16.
func le16(p []byte, i int) int { return int(binary.LittleEndian.Uint16(p[2*i:])) }

// vector is an array of integers, stored as differences from their smallest:
//
//	0  u8  width of a difference in bytes, 0..8
//	1  u64 base
//	9  n * width bytes
//
// Whatever the width, a difference is read as eight bytes and cut by a mask:
// behind each vector stand eight more bytes, at least the sum of its section.
type vector struct {
	data  []byte
	base  uint64
	mask  uint64
	width int
}

const vectorHeaderBytes = 9

func (v *vector) at(i int) uint64 {
	return v.base + binary.LittleEndian.Uint64(v.data[i*v.width:])&v.mask
}

// vector reads a vector of n integers. c.p must have eight more bytes behind
// its end, within its capacity.
func (c *cursor) vector(n int) (v vector) {
	v.width = int(c.u8())
	v.base = c.u64()
	from := c.off
	c.bytes(n * v.width)
	if v.width > 8 || c.bad {
		c.bad = true
		return vector{}
	}
	v.data = c.p[from : c.off+sumBytes]
	v.mask = widthMask(v.width)
	return v
}

func widthMask(width int) uint64 { return uint64(1)<<(8*width) - 1 }

// appendVector writes words as differences from base, none of which is smaller
// in the order that makes limit, the largest difference, right.
func appendVector(dst []byte, words []uint64, base, limit uint64) []byte {
	width := (bits.Len64(limit) + 7) / 8
	dst = append(dst, byte(width))
	dst = binary.LittleEndian.AppendUint64(dst, base)
	if width == 0 {
		return dst
	}
	n := len(dst)
	dst = append(dst, make([]byte, len(words)*width+8)...)
	for _, w := range words {
		binary.LittleEndian.PutUint64(dst[n:], w-base)
		n += width
	}
	return dst[:n]
}

// appendSigned writes words that are two's complement integers.
func appendSigned(dst []byte, words []uint64) []byte {
	lo, hi := int64(words[0]), int64(words[0])
	for _, w := range words[1:] {
		lo, hi = min(lo, int64(w)), max(hi, int64(w))
	}
	return appendVector(dst, words, uint64(lo), uint64(hi)-uint64(lo))
}

// appendUnsigned writes words that are unsigned integers or mere bits.
func appendUnsigned(dst []byte, words []uint64) []byte {
	lo, hi := words[0], words[0]
	for _, w := range words[1:] {
		lo, hi = min(lo, w), max(hi, w)
	}
	return appendVector(dst, words, lo, hi-lo)
}
