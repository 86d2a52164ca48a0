package group

import (
	"math"
	"unicode/utf8"

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

	guidBytes = 16
)

// column is a decoded column.
type column struct {
	name     string
	encoding uint8
	typ      edm.Type
	prev     int16  // column of the heap before this one, -1 none
	dict     uint32 // place of the ends
	bytes    uint32 // of the dictionary, or of the bits
	a        vector // words, ends, codes, guids
}

const columnMemBytes = 56

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
		return !cur.bad && !text && c.typ != edm.TypeBoolean && c.typ != edm.TypeGuid && c.wordsFit(cur.section(), rows)
	case encodingBits:
		c.bytes = uint32(cur.off)
		bits := cur.bytes((rows + 7) / 8)
		return !cur.bad && c.typ == edm.TypeBoolean && (rows%8 == 0 || bits[rows/8]>>(rows%8) == 0)
	case encodingGuid:
		c.a = vector{off: uint32(cur.off), step: guidBytes}
		cur.bytes(guidBytes * rows)
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

// wordsFit reports whether every word is a value of the column's type.
func (c *column) wordsFit(section []byte, rows int) bool {
	switch c.typ {
	case edm.TypeDateTime:
		return c.a.within(section, rows, 0, int64(edm.MaxTicks))
	case edm.TypeInt32:
		return c.a.within(section, rows, math.MinInt32, math.MaxInt32)
	}
	return true
}

func (c *column) decodeDict(cur *cursor, rows int) bool {
	n, size := int(cur.u8())+1, cur.u16()
	c.dict = uint32(cur.off)
	ends := cur.bytes(2 * n)
	c.bytes = uint32(cur.off)
	texts := cur.bytes(size)
	c.a = cur.vector(rows)
	if cur.bad {
		return false
	}
	section := cur.section()
	last := 0
	for i := range n {
		end := le16(ends, i)
		if end < last || end > size || c.typ == edm.TypeString && !utf8.Valid(texts[last:end]) {
			return false
		}
		last = end
	}
	if last != size {
		return false
	}
	for i := range rows {
		if c.a.at(section, i) >= uint64(n) {
			return false
		}
	}
	return true
}

// linkHeap tells each column of the heap where the value before it ends. found
// is whether there is such a column, ok whether the last of them and no other
// ends where the row does.
func linkHeap(cols []column) (found, ok bool) {
	before, last := -1, false
	for i := range cols {
		c := &cols[i]
		if !c.heap() {
			continue
		}
		if last {
			return true, false
		}
		c.prev, before = int16(before), i
		found, last = true, c.encoding == encodingHeapLast
	}
	return found, last == found
}

const notText = "text that is not UTF-8"

// checkHeap checks the values of one row, whose part of the heap is given: that
// their ends are within it, and that Strings are text.
func checkHeap(section []byte, cols []column, rank int, part []byte) (what string) {
	// Strings that follow each other are looked at together: they are text if all
	// is and each begins where a character does.
	last, text := uint64(0), uint64(0) // since text there are Strings only
	for i := range cols {
		c := &cols[i]
		end := uint64(len(part))
		switch c.encoding {
		case encodingHeap:
			end = c.a.at(section, rank)
		case encodingHeapLast:
		default:
			continue
		}
		if end < last || end > uint64(len(part)) {
			return "values outside their row"
		}
		if c.typ != edm.TypeString {
			if !utf8.Valid(part[text:last]) {
				return notText
			}
			text = end
		} else if last < end && !utf8.RuneStart(part[last]) {
			return notText
		}
		last = end
	}
	if !utf8.Valid(part[text:last]) {
		return notText
	}
	return ""
}

// inDict returns the value of c from the dictionary.
func (c *column) inDict(section []byte, rank int) []byte {
	code := int(c.a.at(section, rank))
	ends, from := section[c.dict:], 0
	if code > 0 {
		from = le16(ends, code-1)
	}
	texts, to := section[c.bytes:], le16(ends, code)
	return texts[from:to:to]
}
