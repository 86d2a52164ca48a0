package rowgroup

import (
	"encoding/binary"
	"math"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/sstable/internal/fields"
)

// column is a decoded column.
type column struct {
	name     string
	encoding uint8
	typ      edm.Type
	prev     int16  // heap column before this one, -1 if none
	dict     uint32 // offset of the ends
	bytes    uint32 // offset of the entries of the dictionary
	a        vector // words, ends, codes, guids; of bits the offset alone
}

// heap reports whether the values are in the heap.
func (c *column) heap() bool { return c.encoding == encodingHeap || c.encoding == encodingHeapLast }

// decode reads the column of property i. It reports whether the column is valid for
// the type and the number of rows.
func (c *column) decode(cur *fields.Cursor, s *codec.Shape, i, rows int) bool {
	c.name, c.typ = s.Name(i), s.Type(i)
	c.encoding = cur.U8()
	text := c.typ == edm.TypeString || c.typ == edm.TypeBinary
	switch c.encoding {
	case encodingWord:
		c.a = readVector(cur, rows)
		return !cur.Bad && !text && c.typ != edm.TypeBoolean && c.typ != edm.TypeGuid && c.wordsFit(withSum(cur), rows)
	case encodingBits:
		c.a = vector{off: uint32(cur.Off)}
		bits := cur.Bytes((rows + 7) / 8)
		return !cur.Bad && c.typ == edm.TypeBoolean && (rows%8 == 0 || bits[rows/8]>>(rows%8) == 0)
	case encodingGuid:
		c.a = vector{off: uint32(cur.Off), step: guidBytes}
		cur.Bytes(guidBytes * rows)
		return !cur.Bad && c.typ == edm.TypeGuid
	case encodingHeap:
		c.a = readVector(cur, rows)
		return !cur.Bad && text
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

// linkHeap sets prev of the heap columns and returns the index of the last one, -1 if
// there is none. ok reports whether that one, and no other, has encodingHeapLast.
func linkHeap(cols []column) (last int, ok bool) {
	last = -1
	for i := range cols {
		c := &cols[i]
		if !c.heap() {
			continue
		}
		if last >= 0 && cols[last].encoding == encodingHeapLast {
			return last, false
		}
		c.prev, last = int16(last), i
	}
	return last, last < 0 || cols[last].encoding == encodingHeapLast
}

// checkHeap reports whether the values of one row are within the size bytes that the
// row has in the heap. last is the last heap column. It does not read the values: the
// sum of the unit says that they are those of the writer.
func checkHeap(data []byte, cols []column, last, ordinal, size int) bool {
	end := uint64(size)
	for i := cols[last].prev; i >= 0; i = cols[i].prev {
		to := cols[i].a.at(data, ordinal)
		if to > end {
			return false
		}
		end = to
	}
	return true
}

func (c *columnBuilder) text() bool { return c.typ == edm.TypeString || c.typ == edm.TypeBinary }

func (c *columnBuilder) appendTo(dst []byte, last bool) []byte {
	switch {
	case c.inDict:
		return appendUnsigned(c.dict.AppendTo(append(dst, encodingDict)), c.dict.Codes())
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
