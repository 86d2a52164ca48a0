package sstable

import (
	"encoding/binary"
	"errors"

	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// A file is a sequence of sections without gaps. Integers are little-endian, except
// in key bytes.
//
//	header | group ... | shapes | index | filter | bounds | footer
//
// Each section ends in the sum of its bytes before the sum,
//
//	XXH64(bytes) xor f(file, offset of the section)
//
// so that a section at another offset, or in another file, is refused
// (rowgroup.Binding). A group consists of several sections.
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
// Package rowgroup describes the groups.
//
// Shapes
//
//	0  u32 count
//	4  the shapes as codec.AppendShape writes them; ids count from 0
//
// Index
//
//	0  u32 groups
//	4  for each group
//	       0  u64 offset of the group
//	       8  u32 length of the head, sum included
//	      12  u32 length of the group
//	      16  u16 rows
//	      18  u16 length of the separator
//	      20  u32 flags: 1 = the group begins with an older version of the last user
//	          key of the group before
//	   separators: a separator is a user key or a prefix of one; it is greater than
//	   all keys of the group before (or equal, with flag 1) and not greater than the
//	   first key of the group
//	   u16 length and bytes of the smallest internal key, then of the largest
//
// Filter: blocks of 64 bytes, see filter.go.
//
// Bounds: see package rowgroup. They are read through the cache.
//
// Footer, 152 bytes
//
//	  0  u64 offset and u64 length, sum included, of shapes, index, filter, bounds
//	 64  u64 entries
//	 72  u64 tombstones
//	 80  u64 smallest sequence number
//	 88  u64 largest sequence number
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
	sumBytes    = rowgroup.SumBytes

	// maxSectionBytes limits the length of each section after the groups. Such a
	// section is read whole; a longer one is refused.
	maxSectionBytes = 64 << 20

	indexEntryBytes = 24
	flagContinues   = 1 // part of the file format
)

// Kinds of blocks in the cache.
const (
	kindHead uint8 = iota
	kindHeapUnit
	kindValueBlock
	kindBounds
)

func appendHeader(dst []byte, b rowgroup.Binding, dbid [16]byte, number uint64) []byte {
	from := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = append(dst, dbid[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, number)
	return b.AppendSum(dst, from, 0)
}

// span is the offset and the length of a section.
type span struct{ off, len uint64 }

func (s span) end() uint64 { return s.off + s.len }

type footer struct {
	shapes, index, filter, bounds span

	entries, tombstones uint64
	minSeq, maxSeq      uint64
	keys                uint64
}

func (f *footer) spans() [4]span { return [4]span{f.shapes, f.index, f.filter, f.bounds} }

func appendFooter(dst []byte, b rowgroup.Binding, dbid [16]byte, number uint64, f footer, off int64) []byte {
	from := len(dst)
	for _, s := range f.spans() {
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
	return b.AppendSum(dst, from, off)
}

// decodeFooter decodes a footer at off, whose sum the caller has verified.
func decodeFooter(p []byte, dbid [16]byte, number uint64, off int64) (f footer, err error) {
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(p[i:]) }
	f = footer{
		shapes: span{u(0), u(8)}, index: span{u(16), u(24)}, filter: span{u(32), u(40)}, bounds: span{u(48), u(56)},
		entries: u(64), tombstones: u(72), minSeq: u(80), maxSeq: u(88), keys: u(96),
	}
	end := uint64(off)
	switch {
	case string(p[136:144]) != magic || u(104) != number || [16]byte(p[112:128]) != dbid || u(128) != version:
		return f, errors.New("footer does not belong to the header")
	case f.shapes.off < headerBytes, f.shapes.off > end, f.shapes.len > end, f.index.len > end, f.filter.len > end, f.bounds.len > end:
		return f, errors.New("footer with sections outside the file")
	case max(f.shapes.len, f.index.len, f.filter.len, f.bounds.len) > maxSectionBytes:
		return f, errors.New("footer with sections that are too long")
	case f.shapes.end() != f.index.off, f.index.end() != f.filter.off, f.filter.end() != f.bounds.off, f.bounds.end() != end:
		return f, errors.New("footer with sections that are not adjacent")
	case f.tombstones > f.entries, f.minSeq > f.maxSeq, f.keys > f.entries, f.entries > 0 && f.keys == 0:
		return f, errors.New("footer with invalid counts")
	}
	return f, nil
}
