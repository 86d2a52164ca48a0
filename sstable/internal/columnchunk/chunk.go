// Package columnchunk copies a column of consecutive row groups into one piece of memory, which
// the cache keeps for filters. A filter on one property reads some twenty cache lines of a head
// to find the column, and the head with all its columns must be in the cache; in a chunk, one
// column follows the other. If the rows of a group have several shapes, their values are gathered
// into one column first.
package columnchunk

import (
	"encoding/binary"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// Groups is the number of groups of a chunk, except the last chunk of a file.
const Groups = 16 // at most 32

// maxBytes is the length of the longest chunk.
const maxBytes = 64 << 10

// chunk is the column of one property. It begins with an entry for each group:
//
//	 0  u64 base of the words
//	 8  u64 largest sequence number of the group
//	16  u32 offset of the values
//	20  u16 rows
//	22  u16 bytes of the dictionary entries, or of the common prefix
//	24  u8  kind: a rowgroup.ColumnKind, absent or unread
//	25  u8  type of the values
//	26  u8  width of a word in bytes
//	27  u8  dictionary entries - 1
//	28  u8  1 if some rows do not have the property
//	29  zeros
//
// A group of the kind rowgroup.ByRow has no values here. After the entries follow
//
//	0  u32 number of the first group
//	4  u32 a bit for each group that was added
//	8  u16 length of the name of the property, and the name
//
// and the values. Before those of a group are the rows that have the property, as bits, if some do
// not have it. The values of a dictionary are the u16 end of each entry, the entries and the codes.
// Those of the kind rowgroup.Heap are predicate.Prefixes. A word is read as eight bytes, so that
// eight bytes follow the last one.
type chunk []byte

const (
	entryBytes = 32
	firstAt    = Groups * entryBytes
	addedAt    = firstAt + 4
	nameLenAt  = addedAt + 4
	nameAt     = nameLenAt + 2
	wordBytes  = 8
	absent     = 255 // no row has the property
	unread     = 254 // the values were not added, because they were not read
)

// is reports whether c is the column of the property with the given name from group first on.
func (c chunk) is(first int, name string) bool {
	if int(binary.LittleEndian.Uint32(c[firstAt:])) != first {
		return false
	}
	n := int(binary.LittleEndian.Uint16(c[nameLenAt:]))
	return string(c[nameAt:][:n]) == name
}

// has reports whether the group with index i was added.
func (c chunk) has(i int) bool { return binary.LittleEndian.Uint32(c[addedAt:])>>i&1 != 0 }

// Column is the column of a group: Kind and the values as in rowgroup.Column. The kind ByRow
// means that only the group itself has the values, and the kind Heap that Words and Common are
// those of predicate.Prefixes.
type Column struct {
	Kind     rowgroup.ColumnKind
	Absent   bool // no row has the property; Kind is ByRow
	unread   bool // the values were not added, because they were not read; Kind is ByRow
	Type     edm.Type
	Rows     int
	Some     []byte // the rows that have the property, for predicate.Bits.AndBytes; nil for all
	maxSeq   uint64
	Words    predicate.Words
	Booleans []byte
	Common   []byte
	entries  []byte
	count    int
}

// column sets col to the column of the group with index i in c.
func (c chunk) column(i int, col *Column) {
	e := c[i*entryBytes:][:entryBytes]
	at := int(binary.LittleEndian.Uint32(e[16:]))
	col.Kind, col.Absent, col.unread = rowgroup.ColumnKind(e[24]), e[24] == absent, e[24] == unread
	col.Type, col.Rows, col.maxSeq = edm.Type(e[25]), int(binary.LittleEndian.Uint16(e[20:])), binary.LittleEndian.Uint64(e[8:])
	col.Some = nil
	if e[28] != 0 {
		n := (col.Rows + 7) / 8
		col.Some = c[at:][:n]
		at += n
	}
	switch col.Kind {
	case rowgroup.Booleans:
		col.Booleans = c[at:][:(col.Rows+7)/8]
		return
	case rowgroup.Codes:
		col.count = int(e[27]) + 1
		n := 2*col.count + int(binary.LittleEndian.Uint16(e[22:]))
		col.entries = c[at:][:n]
		at += n
	case rowgroup.Heap:
		n := int(binary.LittleEndian.Uint16(e[22:]))
		col.Common = c[at:][:n]
		at += n
	case rowgroup.Words:
	default:
		col.Kind = rowgroup.ByRow
		return
	}
	width := int(e[26])
	col.Words = predicate.Words{
		Data: c, Base: binary.LittleEndian.Uint64(e), Mask: uint64(1)<<(8*width) - 1, Off: at, Step: width,
	}
}

// Entries returns the number of entries of a dictionary.
func (c *Column) Entries() int { return c.count }

// Entry returns an entry, which a code is the index of.
func (c *Column) Entry(code int) []byte {
	from := 0
	if code > 0 {
		from = int(binary.LittleEndian.Uint16(c.entries[2*code-2:]))
	}
	return c.entries[2*c.count:][from:binary.LittleEndian.Uint16(c.entries[2*code:])]
}
