package sstable

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// groupEntry is an entry of the index.
type groupEntry struct {
	off       int64
	before    int // bytes of heap units before the head
	head, len int // bytes
	rows      int
	continues bool
	separator []byte
	units     []byte // as in the file, empty if the index does not have them
}

func (e *groupEntry) headOff() int64 { return e.off + int64(e.before) }

func (e *groupEntry) headEnd() int { return e.before + e.head }

// around returns the range of the group that has its head and the heap unit of a user
// key; the whole group if the index does not know that. A reader that finds the row in
// another unit must read that too. With a cache of 32 MiB, gets read 42 % fewer
// bytes and need 17 % less CPU than if they read the group (bench,
// get/key=present/cache=32MiB).
func (e *groupEntry) around(key []byte) (from, to int) {
	if len(e.units) == 0 {
		return 0, e.len
	}
	next := 0
	for p := e.units; len(p) > 0; {
		var u indexUnit
		if u, p, _ = nextUnit(p); from < next && u.compare(key, e.separator) < 0 {
			break
		}
		if next == e.before {
			next += e.head
		}
		from, to = next, next+u.stored
		next = to
	}
	return min(from, e.before), max(to, e.headEnd())
}

// indexUnit is a heap unit in the index. Its separator is the first bytes of that of the
// group, then a suffix; that of the first unit is empty.
type indexUnit struct {
	stored int // bytes
	shared int // bytes
	suffix []byte
}

const indexUnitBytes = 8

func appendUnit(dst []byte, stored int, separator, group []byte) []byte {
	n := rowgroup.CommonLen(separator, group)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(stored))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(n))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(separator)-n))
	return append(dst, separator[n:]...)
}

// nextUnit decodes the first unit in p. It reports false if that is not complete.
func nextUnit(p []byte) (u indexUnit, rest []byte, ok bool) {
	if len(p) < indexUnitBytes {
		return u, nil, false
	}
	u.stored, u.shared = int(binary.LittleEndian.Uint32(p)), int(binary.LittleEndian.Uint16(p[4:]))
	n := int(binary.LittleEndian.Uint16(p[6:]))
	if p = p[indexUnitBytes:]; n > len(p) {
		return u, nil, false
	}
	u.suffix = p[:n]
	return u, p[n:], true
}

// compare compares key with the separator of u. group is that of the group.
func (u *indexUnit) compare(key, group []byte) int {
	n := min(u.shared, len(key))
	if c := bytes.Compare(key[:n], group[:u.shared]); c != 0 {
		return c
	}
	return bytes.Compare(key[n:], u.suffix)
}

// decodeUnits reads the heap units of the group and returns the bytes after them.
func (e *groupEntry) decodeUnits(p []byte) (rest []byte, ok bool) {
	if len(p) == 0 {
		return nil, false
	}
	count, rest := int(p[0]), p[1:]
	from, next := rest, 0
	for i := range count {
		u, after, ok := nextUnit(rest)
		if !ok || u.shared > len(e.separator) || u.stored <= sumBytes || i == 0 && u.shared+len(u.suffix) > 0 {
			return nil, false
		}
		if next == e.before {
			next += e.head
		}
		if u.stored > e.len-next {
			return nil, false
		}
		next, rest = next+u.stored, after
	}
	e.units = from[:len(from)-len(rest)]
	return rest, true
}

func appendIndex(dst []byte, groups []groupEntry, smallest, largest []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(groups)))
	for i := range groups {
		g := &groups[i]
		dst = binary.LittleEndian.AppendUint64(dst, uint64(g.off))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(g.head))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(g.len))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(g.rows))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(g.separator)))
		flags := uint16(0)
		if g.continues {
			flags = flagContinues
		}
		dst = binary.LittleEndian.AppendUint16(dst, flags)
		dst = binary.LittleEndian.AppendUint16(dst, uint16(g.before))
	}
	for i := range groups {
		dst = append(dst, groups[i].separator...)
	}
	for _, k := range [][]byte{smallest, largest} {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(k)))
		dst = append(dst, k...)
	}
	return dst
}

// index finds groups by key. The first sixteen bytes of each separator after the
// common prefix are in an array of their own.
type index struct {
	groups            []groupEntry
	common            []byte
	prefixes          []prefix
	smallest, largest []byte // internal keys
}

// decodeIndex decodes an index whose sum the caller has verified. The groups of the
// file end at end. The result keeps p.
func decodeIndex(p []byte, end uint64) (x index, err error) {
	if len(p) < 4 {
		return x, errors.New("index without a count")
	}
	count := binary.LittleEndian.Uint32(p)
	if count > uint32((len(p)-4)/indexEntryBytes) {
		return x, errors.New("index with more groups than fit in it")
	}
	n := int(count)
	entries, rest := p[4:4+n*indexEntryBytes], p[4+n*indexEntryBytes:]
	x.groups = make([]groupEntry, n)
	off := uint64(headerBytes)
	for i := range x.groups {
		e := entries[i*indexEntryBytes:][:indexEntryBytes]
		at := binary.LittleEndian.Uint64(e)
		head, size := binary.LittleEndian.Uint32(e[8:]), binary.LittleEndian.Uint32(e[12:])
		rows, key := int(binary.LittleEndian.Uint16(e[16:])), int(binary.LittleEndian.Uint16(e[18:]))
		flags, before := binary.LittleEndian.Uint16(e[20:]), int(binary.LittleEndian.Uint16(e[22:]))
		switch {
		case at != off, uint64(size) > end-off, head > size, before > int(size-head), head > rowgroup.MaxHeadBytes, head < sumBytes:
			return x, errors.New("index with invalid offsets or lengths")
		case rows < 1, rows > rowgroup.MaxRows, key > codec.MaxKeyLen, flags&^flagContinues != 0, i == 0 && flags != 0, key > len(rest):
			return x, errors.New("index with invalid entries")
		}
		x.groups[i] = groupEntry{
			off: int64(at), before: before, head: int(head), len: int(size), rows: rows,
			continues: flags != 0, separator: rest[:key:key],
		}
		off += uint64(size)
		rest = rest[key:]
	}
	for _, k := range []*[]byte{&x.smallest, &x.largest} {
		if len(rest) < 2 || len(rest)-2 < int(binary.LittleEndian.Uint16(rest)) {
			return x, errors.New("index ends early")
		}
		*k, rest = rest[2:][:binary.LittleEndian.Uint16(rest)], rest[2+int(binary.LittleEndian.Uint16(rest)):]
	}
	if len(rest) > 0 { // version 1 has no units
		for i := range x.groups {
			var ok bool
			if rest, ok = x.groups[i].decodeUnits(rest); !ok {
				return x, errors.New("index with invalid heap units")
			}
		}
	}
	switch {
	case len(rest) != 0:
		return x, errors.New("bytes after the end of the index")
	case off != end:
		return x, errors.New("index does not have all groups")
	case n > 0 && (codec.CheckInternalKey(x.smallest) != nil || codec.CheckInternalKey(x.largest) != nil):
		return x, errors.New("index with malformed smallest or largest key")
	}
	for i := 1; i < n; i++ {
		d := bytes.Compare(x.groups[i-1].separator, x.groups[i].separator)
		if d > 0 || d == 0 && !x.groups[i].continues {
			return x, errors.New("index is not sorted")
		}
	}
	x.prepare()
	return x, nil
}

// entries returns the number of rows in all groups.
func (x *index) entries() (n uint64) {
	for i := range x.groups {
		n += uint64(x.groups[i].rows)
	}
	return n
}

func (x *index) prepare() {
	n := len(x.groups)
	if n == 0 {
		return
	}
	x.common = x.groups[0].separator
	x.common = x.common[:rowgroup.CommonLen(x.common, x.groups[n-1].separator)]
	x.prefixes = make([]prefix, n)
	for i := range x.groups {
		x.prefixes[i] = prefixOf(x.groups[i].separator[len(x.common):])
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

// seek returns the first group that can have a user key not less than key; 0 if the
// file is empty. If that group has no such key, the next group begins with the first
// one.
func (x *index) seek(key []byte) int {
	if !bytes.HasPrefix(key, x.common) {
		if bytes.Compare(key, x.common) < 0 {
			return 0
		}
		return max(len(x.groups)-1, 0)
	}
	rest := key[len(x.common):]
	want := prefixOf(rest)
	lo, hi := 0, len(x.prefixes)
	for lo < hi {
		m := int(uint(lo+hi) / 2)
		p := &x.prefixes[m]
		if p.hi < want.hi || p.hi == want.hi && (p.lo < want.lo || p.lo == want.lo && bytes.Compare(x.groups[m].separator[len(x.common):], rest) <= 0) {
			lo = m + 1
		} else {
			hi = m
		}
	}
	i := max(lo-1, 0)
	for i > 0 && x.groups[i].continues && bytes.Equal(x.groups[i].separator, key) {
		i--
	}
	return i
}

// within estimates the rows and the bytes of groups from user key lo to user key hi,
// which the file contains. Of a group at an edge it counts half.
func (x *index) within(lo, hi []byte) (rows uint64, size int64) {
	first, last := x.seek(lo), x.seek(hi)
	for i := first; i <= last; i++ {
		rows += uint64(x.groups[i].rows)
		size += int64(x.groups[i].len)
	}
	if !bytes.Equal(lo, userKey(x.smallest)) {
		rows -= uint64(x.groups[first].rows / 2)
		size -= int64(x.groups[first].len / 2)
	}
	if !bytes.Equal(hi, userKey(x.largest)) {
		rows -= uint64(x.groups[last].rows / 2)
		size -= int64(x.groups[last].len / 2)
	}
	return max(rows, 1), max(size, 1)
}

func userKey(internal []byte) []byte { return internal[:len(internal)-codec.TrailerLen] }
