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
	prev     int16  // column of the heap before this one, -1 none
	dict     uint32 // place of the ends
	bytes    uint32 // of the dictionary, or of the bits
	a        vector // words, ends, codes, guids
}

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

var errNotText = errors.New("text that is not UTF-8")

// checkHeap checks the values of one row, whose part of the heap is given: that
// their ends are within it, and that Strings are text.
func checkHeap(section []byte, cols []column, rank int, part []byte) error {
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
			return errors.New("values outside their row")
		}
		if c.typ != edm.TypeString {
			if !utf8.Valid(part[text:last]) {
				return errNotText
			}
			text = end
		} else if last < end && !utf8.RuneStart(part[last]) {
			return errNotText
		}
		last = end
	}
	if !utf8.Valid(part[text:last]) {
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
