package rowgroup

import (
	"encoding/binary"
	"math/bits"
)

// cursor reads consecutive fields. A read past the end sets bad and returns zeros.
type cursor struct {
	p   []byte
	off int
	bad bool
}

func (c *cursor) bytes(n int) []byte {
	if n < 0 || n > len(c.p)-c.off {
		c.bad = true
		return nil
	}
	b := c.p[c.off : c.off+n]
	c.off += n
	return b
}

// data returns the whole section, its sum included.
func (c *cursor) data() []byte { return c.p[:len(c.p)+SumBytes] }

// fixed is bytes for at most 8 bytes. It returns zeros past the end.
func (c *cursor) fixed(n int) []byte {
	if b := c.bytes(n); b != nil {
		return b
	}
	return make([]byte, 8)
}

func (c *cursor) u8() uint8   { return c.fixed(1)[0] }
func (c *cursor) u16() int    { return int(binary.LittleEndian.Uint16(c.fixed(2))) }
func (c *cursor) u32() uint32 { return binary.LittleEndian.Uint32(c.fixed(4)) }
func (c *cursor) u64() uint64 { return binary.LittleEndian.Uint64(c.fixed(8)) }

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

// vector reads a vector of n integers. The capacity of c.p must exceed its length by
// eight bytes.
func (c *cursor) vector(n int) (v vector) {
	width := int(c.u8())
	v.base = c.u64()
	from := c.off
	c.bytes(n * width)
	if width > 8 || c.bad {
		c.bad = true
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
