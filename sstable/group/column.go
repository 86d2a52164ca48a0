package group

import (
	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// A column: the values of one property of the rows of one slot, by rank. It
// begins with a byte that names the encoding:
//
//	1  word        vector of words: Int32 and Int64 sign-extended, Double as its
//	               IEEE 754 bits, DateTime as ticks
//	2  bits        (rows + 7) / 8 bytes, least significant bit first: Boolean
//	3  guid        16 bytes each
//	4  heap        vector of the values' ends within the row's part of the heap
//	5  heap, last  nothing: the value ends where the row's part ends
//	6  dictionary  u8 entries - 1, u16 length of all, entries times u16 ends, the
//	               entries' bytes, vector of codes
//
// String and Binary have one of the last three. A value that is an extent is
// empty in the heap.
const (
	encodingWord     = 1 // part of the file format
	encodingBits     = 2 // part of the file format
	encodingGuid     = 3 // part of the file format
	encodingHeap     = 4 // part of the file format
	encodingHeapLast = 5 // part of the file format
	encodingDict     = 6 // part of the file format

	maxDictEntries = 256
)

// column is a decoded column.
type column struct {
	name     string
	encoding uint8
	typ      edm.Type
	a        vector // words, ends, codes
	b        vector // ends of the value before
	prev     int    // whose value that is, -1 none
	ends     []byte // dictionary
	bytes    []byte // bits, guids, dictionary
}

const columnMemBytes = 168

// heap reports whether values stand in the heap.
func (c *column) heap() bool { return c.encoding == encodingHeap || c.encoding == encodingHeapLast }

// decode reads the column of property i, and reports whether it fits.
func (c *column) decode(cur *cursor, s *codec.Shape, i, rows int) bool {
	c.name, c.typ = s.Name(i), s.Type(i)
	c.encoding = cur.u8()
	text := c.typ == edm.TypeString || c.typ == edm.TypeBinary
	switch c.encoding {
	case encodingWord:
		c.a = cur.vector(rows)
		return !cur.bad && !text && c.typ != edm.TypeBoolean && c.typ != edm.TypeGuid
	case encodingBits:
		c.bytes = cur.bytes((rows + 7) / 8)
		return !cur.bad && c.typ == edm.TypeBoolean && (rows%8 == 0 || c.bytes[rows/8]>>(rows%8) == 0)
	case encodingGuid:
		c.bytes = cur.bytes(16 * rows)
		return !cur.bad && c.typ == edm.TypeGuid
	case encodingHeap:
		c.a = cur.vector(rows)
		return !cur.bad && text
	case encodingHeapLast:
		return text
	case encodingDict:
		return text && c.decodeDict(cur, rows)
	}
	return false
}

func (c *column) decodeDict(cur *cursor, rows int) bool {
	n, size := int(cur.u8())+1, cur.u16()
	c.ends, c.bytes = cur.bytes(2*n), cur.bytes(size)
	c.a = cur.vector(rows)
	if cur.bad {
		return false
	}
	last := 0
	for i := range n {
		end := le16(c.ends, i)
		if end < last {
			return false
		}
		last = end
	}
	if last != size {
		return false
	}
	for i := range rows {
		if c.a.at(i) >= uint64(n) {
			return false
		}
	}
	return true
}

// linkHeap tells each column of the heap where the value before it ends. found
// is whether there is such a column, ok whether the last of them and no other
// ends where the row does.
func linkHeap(cols []column) (found, ok bool) {
	prev, before, last := vector{data: zeros[:]}, -1, false
	for i := range cols {
		c := &cols[i]
		if !c.heap() {
			continue
		}
		if last {
			return true, false
		}
		c.b, prev = prev, c.a
		c.prev, before = before, i
		found, last = true, c.encoding == encodingHeapLast
	}
	return found, last == found
}

var zeros [8]byte

// checkHeap checks the ends of the values of one row, whose part of the heap
// has n bytes.
func checkHeap(cols []column, rank, n int) bool {
	last := uint64(0)
	for i := range cols {
		c := &cols[i]
		if c.encoding != encodingHeap {
			continue
		}
		end := c.a.at(rank)
		if end < last || end > uint64(n) {
			return false
		}
		last = end
	}
	return true
}

// inDict returns the value of c from the dictionary.
func (c *column) inDict(rank int) []byte {
	code := int(c.a.at(rank))
	from, to := 0, le16(c.ends, code)
	if code > 0 {
		from = le16(c.ends, code-1)
	}
	return c.bytes[from:to:to]
}
