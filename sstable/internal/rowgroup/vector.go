package rowgroup

import (
	"encoding/binary"
	"math/bits"

	"github.com/tablerock-db/tablerock/sstable/internal/fields"
)

// withSum returns the section of c with its sum, which follows P in memory.
func withSum(c *fields.Cursor) []byte { return c.P[:len(c.P)+SumBytes] }

// le16 returns entry i of an array of little-endian u16.
func le16(p []byte, i int) int { return int(binary.LittleEndian.Uint16(p[2*i:])) }

// vector is an array of integers, stored as differences from the smallest one:
//
//	0  u8  width of a difference in bytes, 0..8
//	1  u64 base
//	9  n * width bytes
//
// at reads eight bytes and masks them, whatever the width. So eight more bytes must
// follow each vector; the sum of the section provides them.
type vector struct {
	base, mask uint64
	off, step  uint32 // offset of the first difference, and bytes from one to the next
}

const vectorHeaderBytes = 9

// offset returns the offset of entry i.
func (v *vector) offset(i int) int { return int(v.off) + i*int(v.step) }

func (v *vector) at(data []byte, i int) uint64 {
	at := v.offset(i)
	return v.base + binary.LittleEndian.Uint64(data[at:at+8])&v.mask
}

// within reports whether the n integers, as signed ones, are between low and high.
func (v *vector) within(data []byte, n int, low, high int64) bool {
	// Usually the width alone decides.
	if base := int64(v.base); base >= low && base <= high && v.mask <= uint64(high-base) {
		return true
	}
	for i := range n {
		if x := int64(v.at(data, i)); x < low || x > high {
			return false
		}
	}
	return true
}

// readVector reads a vector of n integers. The capacity of c.P must exceed its length by
// eight bytes.
func readVector(c *fields.Cursor, n int) (v vector) {
	width := int(c.U8())
	v.base = c.U64()
	from := c.Off
	c.Bytes(n * width)
	if width > 8 || c.Bad {
		c.Bad = true
		return vector{}
	}
	v.mask = widthMask(width)
	if width > 0 {
		v.off, v.step = uint32(from), uint32(width)
	}
	return v
}

func widthMask(width int) uint64 { return uint64(1)<<(8*width) - 1 }

// appendVector appends words as differences from base. base is the smallest word, and
// limit the largest difference, in the same order, signed or unsigned.
func appendVector(dst []byte, words []uint64, base, limit uint64) []byte {
	width := (bits.Len64(limit) + 7) / 8
	dst = append(dst, byte(width))
	dst = binary.LittleEndian.AppendUint64(dst, base)
	if width == 0 {
		return dst
	}
	n := len(dst)
	dst = append(dst, make([]byte, len(words)*width+8)...)
	for _, w := range words {
		binary.LittleEndian.PutUint64(dst[n:], w-base)
		n += width
	}
	return dst[:n]
}

// appendSigned appends words that are two's complement integers.
func appendSigned(dst []byte, words []uint64) []byte {
	lo, hi := int64(words[0]), int64(words[0])
	for _, w := range words[1:] {
		lo, hi = min(lo, int64(w)), max(hi, int64(w))
	}
	return appendVector(dst, words, uint64(lo), uint64(hi)-uint64(lo))
}

// appendUnsigned appends words that are unsigned integers or bit patterns.
func appendUnsigned(dst []byte, words []uint64) []byte {
	lo, hi := words[0], words[0]
	for _, w := range words[1:] {
		lo, hi = min(lo, w), max(hi, w)
	}
	return appendVector(dst, words, lo, hi-lo)
}
