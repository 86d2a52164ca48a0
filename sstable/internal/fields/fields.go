// Package fields reads the fields of an encoded section one after the other.
package fields

import "encoding/binary"

// Cursor is a position in a section. A read past the end sets Bad and returns zeros.
type Cursor struct {
	P   []byte
	Off int
	Bad bool
}

// Bytes returns the next n bytes, which share the memory of P, nil past the end.
func (c *Cursor) Bytes(n int) []byte {
	if n < 0 || n > len(c.P)-c.Off {
		c.Bad = true
		return nil
	}
	b := c.P[c.Off : c.Off+n]
	c.Off += n
	return b
}

// fixed is Bytes for at most 8 bytes. It returns zeros past the end.
func (c *Cursor) fixed(n int) []byte {
	if b := c.Bytes(n); b != nil {
		return b
	}
	return make([]byte, 8)
}

// U8 returns the next byte.
func (c *Cursor) U8() uint8 { return c.fixed(1)[0] }

// U16 returns the next little-endian u16.
func (c *Cursor) U16() int { return int(binary.LittleEndian.Uint16(c.fixed(2))) }

// U32 returns the next little-endian u32.
func (c *Cursor) U32() uint32 { return binary.LittleEndian.Uint32(c.fixed(4)) }

// U64 returns the next little-endian u64.
func (c *Cursor) U64() uint64 { return binary.LittleEndian.Uint64(c.fixed(8)) }
