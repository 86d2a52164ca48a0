// Package groupindex is the index of a file: where its groups are, and which has a key.
//
//	0  u32 groups
//	4  for each group
//	       0  u64 offset of the group
//	       8  u32 length of the head, sum included
//	      12  u32 length of the group
//	      16  u16 rows
//	      18  u16 length of the separator
//	      20  u16 flags: 1 = the group begins with an older version of the last user
//	          key of the group before
//	      22  u16 length of the heap units before the head; 0 in version 1
//	   separators: a separator is a user key or a prefix of one; it is greater than
//	   all keys of the group before (or equal, with flag 1) and not greater than the
//	   first key of the group
//	   u16 length and bytes of the smallest internal key, then of the largest
//	   not in version 1: for each group
//	       u8 heap units, or 0 if a get reads the group whole; for each
//	           0  u32 stored length, sum included
//	           4  u16 how many bytes the separator has in common with that of the group
//	           6  u16 length of its other bytes, and these bytes
//	       the separator of a unit is greater than all keys of the unit before (or
//	       equal, if that has versions of the same key) and not greater than its first
//	       key; that of the first unit is empty
package groupindex

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// Index finds groups by key. It does not change after Decode, so that it is safe for concurrent use.
// The first sixteen bytes of each separator after the common prefix are in an array of their own.
type Index struct {
	Groups            []Group
	common            []byte
	prefixes          []prefix
	Smallest, Largest []byte // internal keys
}

// Append appends the index of groups, without their heap units, which follow it. The smallest
// and the largest key are internal keys.
func Append(dst []byte, groups []Group, smallest, largest []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(groups)))
	for i := range groups {
		g := &groups[i]
		dst = binary.LittleEndian.AppendUint64(dst, uint64(g.Off))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(g.Head))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(g.Len))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(g.Rows))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(g.Separator)))
		flags := uint16(0)
		if g.Continues {
			flags = flagContinues
		}
		dst = binary.LittleEndian.AppendUint16(dst, flags)
		dst = binary.LittleEndian.AppendUint16(dst, uint16(g.Before))
	}
	for i := range groups {
		dst = append(dst, groups[i].Separator...)
	}
	for _, k := range [][]byte{smallest, largest} {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(k)))
		dst = append(dst, k...)
	}
	return dst
}

// Decode decodes an index whose sum the caller has verified. The groups of the
// file begin at begin and end at end. The result keeps p.
func Decode(p []byte, begin, end uint64) (x Index, err error) {
	if len(p) < 4 {
		return x, errors.New("index without a count")
	}
	count := binary.LittleEndian.Uint32(p)
	if count > uint32((len(p)-4)/GroupBytes) {
		return x, errors.New("index with more groups than fit in it")
	}
	n := int(count)
	entries, rest := p[4:4+n*GroupBytes], p[4+n*GroupBytes:]
	x.Groups = make([]Group, n)
	off := begin
	for i := range x.Groups {
		e := entries[i*GroupBytes:][:GroupBytes]
		at := binary.LittleEndian.Uint64(e)
		head, size := binary.LittleEndian.Uint32(e[8:]), binary.LittleEndian.Uint32(e[12:])
		rows, key := int(binary.LittleEndian.Uint16(e[16:])), int(binary.LittleEndian.Uint16(e[18:]))
		flags, before := binary.LittleEndian.Uint16(e[20:]), int(binary.LittleEndian.Uint16(e[22:]))
		switch {
		case at != off, head > size, before > int(size-head), head > rowgroup.MaxHeadBytes, head < rowgroup.SumBytes:
			return x, errors.New("index with invalid offsets or lengths")
		case rows < 1, rows > rowgroup.MaxRows, key > codec.MaxKeyLen, flags&^flagContinues != 0, i == 0 && flags != 0, key > len(rest):
			return x, errors.New("index with invalid entries")
		}
		x.Groups[i] = Group{
			Off: int64(at), Before: before, Head: int(head), Len: int(size), Rows: rows,
			Continues: flags != 0, Separator: rest[:key:key],
		}
		off += uint64(size)
		rest = rest[key:]
	}
	for _, k := range []*[]byte{&x.Smallest, &x.Largest} {
		if len(rest) < 2 || len(rest)-2 < int(binary.LittleEndian.Uint16(rest)) {
			return x, errors.New("index ends early")
		}
		*k, rest = rest[2:][:binary.LittleEndian.Uint16(rest)], rest[2+int(binary.LittleEndian.Uint16(rest)):]
	}
	if len(rest) > 0 { // version 1 has no units
		for i := range x.Groups {
			var ok bool
			if rest, ok = x.Groups[i].decodeUnits(rest); !ok {
				return x, errors.New("index with invalid heap units")
			}
		}
	}
	switch {
	case len(rest) != 0:
		return x, errors.New("bytes after the end of the index")
	case off != end:
		return x, errors.New("index does not have all groups")
	case n > 0 && (codec.CheckInternalKey(x.Smallest) != nil || codec.CheckInternalKey(x.Largest) != nil):
		return x, errors.New("index with malformed smallest or largest key")
	}
	for i := 1; i < n; i++ {
		d := bytes.Compare(x.Groups[i-1].Separator, x.Groups[i].Separator)
		if d > 0 || d == 0 && !x.Groups[i].Continues {
			return x, errors.New("index is not sorted")
		}
	}
	x.prepare()
	return x, nil
}

// Rows returns the number of rows in all groups.
func (x *Index) Rows() (n uint64) {
	for i := range x.Groups {
		n += uint64(x.Groups[i].Rows)
	}
	return n
}

func (x *Index) prepare() {
	n := len(x.Groups)
	if n == 0 {
		return
	}
	x.common = x.Groups[0].Separator
	x.common = x.common[:codec.CommonLen(x.common, x.Groups[n-1].Separator)]
	x.prefixes = make([]prefix, n)
	for i := range x.Groups {
		x.prefixes[i] = prefixOf(x.Groups[i].Separator[len(x.common):])
	}
}

// prefix is the first sixteen bytes of a key, padded with zeros.
type prefix struct{ hi, lo uint64 }

const prefixBytes = 16

func prefixOf(p []byte) prefix {
	if len(p) < prefixBytes {
		var b [prefixBytes]byte
		copy(b[:], p)
		p = b[:]
	}
	return prefix{binary.BigEndian.Uint64(p), binary.BigEndian.Uint64(p[8:])}
}

// Seek returns the first group that can have a user key not less than key; 0 if the
// file is empty. If that group has no such key, the next group begins with the first
// one.
func (x *Index) Seek(key []byte) int {
	if !bytes.HasPrefix(key, x.common) {
		if bytes.Compare(key, x.common) < 0 {
			return 0
		}
		return len(x.Groups) - 1
	}
	rest := key[len(x.common):]
	want := prefixOf(rest)
	lo, hi := 0, len(x.prefixes)
	for lo < hi {
		m := int(uint(lo+hi) / 2)
		p := &x.prefixes[m]
		if p.hi < want.hi || p.hi == want.hi && (p.lo < want.lo || p.lo == want.lo && bytes.Compare(x.Groups[m].Separator[len(x.common):], rest) <= 0) {
			lo = m + 1
		} else {
			hi = m
		}
	}
	i := max(lo-1, 0)
	for i > 0 && x.Groups[i].Continues && bytes.Equal(x.Groups[i].Separator, key) {
		i--
	}
	return i
}

// Before estimates the bytes of groups before a user key or bound. Of the group that may have it, it counts half, except at
// the first and the last key of the file, which is not empty.
func (x *Index) Before(key []byte) int64 {
	g, part := &x.Groups[x.Seek(key)], int64(2)
	switch {
	case bytes.Compare(key, codec.UserKey(x.Smallest)) <= 0:
		return 0
	case bytes.Compare(key, codec.UserKey(x.Largest)) >= 0:
		part = 1
	}
	return g.Off - x.Groups[0].Off + int64(g.Len)/part
}

// Within estimates the rows and the bytes of groups from user key lo to user key hi,
// which the file contains. Of a group at an edge it counts half. The file is not empty.
func (x *Index) Within(lo, hi []byte) (rows uint64, size int64) {
	first, last := x.Seek(lo), x.Seek(hi)
	for i := first; i <= last; i++ {
		rows += uint64(x.Groups[i].Rows)
		size += int64(x.Groups[i].Len)
	}
	if !bytes.Equal(lo, codec.UserKey(x.Smallest)) {
		rows -= uint64(x.Groups[first].Rows / 2)
		size -= int64(x.Groups[first].Len / 2)
	}
	if !bytes.Equal(hi, codec.UserKey(x.Largest)) {
		rows -= uint64(x.Groups[last].Rows / 2)
		size -= int64(x.Groups[last].Len / 2)
	}
	return max(rows, 1), max(size, 1)
}
