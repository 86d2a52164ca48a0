package rowgroup

import (
	"encoding/binary"
	"errors"
	"math"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// column is a decoded column.
type column struct {
	name     string
	encoding uint8
	typ      edm.Type
	prev     int16  // heap column before this one, -1 if none
	dict     uint32 // offset of the ends
	bytes    uint32 // offset of the entries of the dictionary, or of the bits
	a        vector // words, ends, codes, guids
}

// heap reports whether the values are in the heap.
func (c *column) heap() bool { return c.encoding == encodingHeap || c.encoding == encodingHeapLast }

// decode reads the column of property i. It reports whether the column is valid for
// the type and the number of rows.
func (c *column) decode(cur *cursor, s *codec.Shape, i, rows int) bool {
	c.name, c.typ = s.Name(i), s.Type(i)
	c.encoding = cur.u8()
	text := c.typ == edm.TypeString || c.typ == edm.TypeBinary
	switch c.encoding {
	case encodingWord:
		c.a = cur.vector(rows)
		return !cur.bad && !text && c.typ != edm.TypeBoolean && c.typ != edm.TypeGuid && c.wordsFit(cur.data(), rows)
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

// wordsFit reports whether every word is in the range of the column's type.
func (c *column) wordsFit(data []byte, rows int) bool {
	switch c.typ {
	case edm.TypeDateTime:
		return c.a.within(data, rows, 0, int64(edm.MaxTicks))
	case edm.TypeInt32:
		return c.a.within(data, rows, math.MinInt32, math.MaxInt32)
	}
	return true
}

// linkHeap sets prev of the heap columns. found reports whether there is one; ok
// reports whether the last of them, and no other, has encodingHeapLast.
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

var errNotText = errors.New("text that is not UTF-8")

// checkHeap checks the values of one row in heap, the bytes of the row in the heap:
// their ends are within it, and Strings are UTF-8.
func checkHeap(data []byte, cols []column, ordinal int, heap []byte) error {
	// Adjacent Strings are checked together: each is valid if all the bytes are valid
	// and each String begins at the start of a character.
	last, text := uint64(0), uint64(0) // heap[text:last] is Strings only
	for i := range cols {
		c := &cols[i]
		end := uint64(len(heap))
		switch c.encoding {
		case encodingHeap:
			end = c.a.at(data, ordinal)
		case encodingHeapLast:
		default:
			continue
		}
		if end < last || end > uint64(len(heap)) {
			return errors.New("values outside their row")
		}
		if c.typ != edm.TypeString {
			if !utf8.Valid(heap[text:last]) {
				return errNotText
			}
			text = end
		} else if last < end && !utf8.RuneStart(heap[last]) {
			return errNotText
		}
		last = end
	}
	if !utf8.Valid(heap[text:last]) {
		return errNotText
	}
	return nil
}

func (c *columnBuilder) text() bool { return c.typ == edm.TypeString || c.typ == edm.TypeBinary }

func (c *columnBuilder) appendTo(dst []byte, last bool) []byte {
	switch {
	case c.inDict:
		return appendUnsigned(c.dict.appendTo(append(dst, encodingDict)), c.dict.codes)
	case last:
		return append(dst, encodingHeapLast)
	case c.text():
		return appendUnsigned(append(dst, encodingHeap), c.words)
	case c.typ == edm.TypeBoolean:
		dst = append(dst, encodingBits)
		at := len(dst)
		dst = append(dst, make([]byte, (len(c.words)+7)/8)...)
		for i, w := range c.words {
			dst[at+i/8] |= byte(w&1) << (i % 8)
		}
		return dst
	case c.typ == edm.TypeGuid:
		dst = append(dst, encodingGuid)
		for i, w := range c.words {
			dst = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, w), c.more[i])
		}
		return dst
	case c.typ == edm.TypeDouble:
		return appendUnsigned(append(dst, encodingWord), c.words)
	}
	return appendSigned(append(dst, encodingWord), c.words)
}
