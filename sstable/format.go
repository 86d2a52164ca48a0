package sstable

import (
	"encoding/binary"
	"errors"

	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/sstable/internal/checksum"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// A file is a sequence of sections without gaps. Integers are little-endian, except
// in key bytes.
//
//	header | group ... | shapes | index | filter | bounds | extensions | footer
//
// Each section ends in the sum of its bytes before the sum,
//
//	XXH64(bytes) xor f(file, offset of the section)
//
// so that a section at another offset, or in another file, is refused
// (checksum.Binding). A group consists of several sections.
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
// Index: see package groupindex.
//
// Filter: blocks of 64 bytes, see package bloom.
//
// Bounds: see package groupbounds. They are read through the cache.
//
// Extensions: an extension area, see package feature. An empty area has no section, not
// even a sum. With the required feature zstd, compressed heap units and value blocks are
// Zstandard frames, else s2 blocks.
//
// Footer, 184 bytes
//
//	  0  u64 offset and u64 length, sum included, of the extensions
//	 16  u64 required features
//	 24  u64 optional features
//	 32  u64 offset and u64 length, sum included, of shapes, index, filter, bounds
//	 96  u64 entries
//	104  u64 tombstones
//	112  u64 smallest sequence number
//	120  u64 largest sequence number
//	128  u64 user keys
//	136  u64 file number
//	144  16 bytes database id
//	160  u32 version
//	164  u32 zero
//	168  magic
//	176  u64 sum
//
// This package also reads version 1, whose footer begins with the shapes. It has no
// extensions and no features.
const (
	magic   = "TROCKsst" // part of the file format
	version = 2          // part of the file format

	headerBytes  = 48
	footerBytes  = 184
	footerBytes1 = 152 // of version 1
	sumBytes     = rowgroup.SumBytes

	// maxSectionBytes limits the length of each section after the groups. Such a
	// section is read whole; a longer one is refused.
	maxSectionBytes = 64 << 20

	// maxExtensionBytes limits the length of the extensions, sum included.
	maxExtensionBytes = 64 << 10

	// knownFeatures has the bits of the required features that this build reads.
	knownFeatures = feature.Zstd
)

// Kinds of blocks in the cache.
const (
	kindHead uint8 = iota
	kindHeapUnit
	kindValueBlock
	kindBounds
	kindChunk
)

func appendHeader(dst []byte, b checksum.Binding, dbid [16]byte, number uint64) []byte {
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
	shapes, index, filter, bounds, extensions span

	required, optional  uint64 // features
	entries, tombstones uint64
	minSeq, maxSeq      uint64
	keys                uint64
}

func (f *footer) spans() [4]span { return [4]span{f.shapes, f.index, f.filter, f.bounds} }

// footerLen returns the length of the footer of a version.
func footerLen(version uint32) int64 {
	if version == 1 {
		return footerBytes1
	}
	return footerBytes
}

func appendFooter(dst []byte, b checksum.Binding, dbid [16]byte, number uint64, f footer, off int64) []byte {
	from := len(dst)
	for _, n := range []uint64{f.extensions.off, f.extensions.len, f.required, f.optional} {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
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

// decodeFooter decodes a footer at off, whose sum the caller has verified. Its length
// is that of the version in the header. Call footer.check after the features: a required
// feature may change what the other fields mean.
func decodeFooter(p []byte, dbid [16]byte, number uint64, off int64) (f footer, err error) {
	fields := p[len(p)-footerBytes1:]
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(fields[i:]) }
	f = footer{
		shapes: span{u(0), u(8)}, index: span{u(16), u(24)}, filter: span{u(32), u(40)}, bounds: span{u(48), u(56)},
		entries: u(64), tombstones: u(72), minSeq: u(80), maxSeq: u(88), keys: u(96),
	}
	end := uint64(off)
	wantVersion := uint64(1)
	if len(p) == footerBytes {
		wantVersion = version
		at := func(i int) uint64 { return binary.LittleEndian.Uint64(p[i:]) }
		f.extensions, f.required, f.optional = span{at(0), at(8)}, at(16), at(24)
	}
	switch {
	case string(fields[136:144]) != magic || u(104) != number || [16]byte(fields[112:128]) != dbid || u(128) != wantVersion:
		return f, errors.New("footer does not belong to the header")
	case f.extensions.len > maxExtensionBytes, f.extensions.len > 0 && f.extensions.len < sumBytes, f.extensions.len > end:
		return f, errors.New("footer with extensions of an invalid length")
	case wantVersion > 1 && f.extensions.end() != end:
		return f, errors.New("footer with extensions that are not adjacent")
	}
	return f, nil
}

// check verifies the fields of the footer at off that a required feature may change.
func (f *footer) check(off int64) error {
	end := uint64(off) - f.extensions.len
	switch {
	case f.shapes.off < headerBytes, f.shapes.off > end, f.shapes.len > end, f.index.len > end, f.filter.len > end, f.bounds.len > end:
		return errors.New("footer with sections outside the file")
	case max(f.shapes.len, f.index.len, f.filter.len, f.bounds.len) > maxSectionBytes:
		return errors.New("footer with sections that are too long")
	case f.shapes.end() != f.index.off, f.index.end() != f.filter.off, f.filter.end() != f.bounds.off, f.bounds.end() != end:
		return errors.New("footer with sections that are not adjacent")
	case f.tombstones > f.entries, f.minSeq > f.maxSeq, f.keys > f.entries, f.entries > 0 && f.keys == 0:
		return errors.New("footer with invalid counts")
	}
	return nil
}
