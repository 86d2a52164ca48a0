package predicate

import (
	"encoding/binary"
	"math/bits"
)

// MaxRows is the most rows that Bits can hold.
const MaxRows = 1024

// Bits is a set of rows, by their index in a group of rows.
type Bits [MaxRows / 64]uint64

// Add adds a row.
func (b *Bits) Add(row int) { b[row/64] |= 1 << (row % 64) }

// Has reports whether b has a row.
func (b *Bits) Has(row int) bool { return b[row/64]>>(row%64)&1 != 0 }

// Remove removes a row.
func (b *Bits) Remove(row int) { b[row/64] &^= 1 << (row % 64) }

// AddRange adds the rows from to to-1.
func (b *Bits) AddRange(from, to int) {
	for from < to {
		n := min(to-from, 64-from%64)
		b[from/64] |= ^uint64(0) >> (64 - n) << (from % 64)
		from += n
	}
}

// Len returns the number of rows.
func (b *Bits) Len() (n int) {
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// Empty reports whether b has no row.
func (b *Bits) Empty() bool { return *b == Bits{} }

// After returns the first row after a row, or -1 if there is none. A row of -1 is
// before all.
func (b *Bits) After(row int) int {
	row++
	for i := row / 64; i < len(b); i++ {
		w := b[i]
		if i == row/64 {
			w &= ^uint64(0) << (row % 64)
		}
		if w != 0 {
			return 64*i + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// Before returns the last row before a row, or -1 if there is none. A row of MaxRows is
// after all.
func (b *Bits) Before(row int) int {
	row--
	for i := row >> 6; i >= 0; i-- {
		w := b[i]
		if i == row>>6 {
			w &= ^uint64(0) >> (63 - row%64)
		}
		if w != 0 {
			return 64*i + 63 - bits.LeadingZeros64(w)
		}
	}
	return -1
}

// AppendRows appends the rows from from to to-1 to dst, in ascending order, and at most most.
func (b *Bits) AppendRows(dst []int, from, to, most int) []int {
	for i := from / 64; 64*i < to; i++ {
		w := b[i]
		if i == from/64 {
			w &= ^uint64(0) << (from % 64)
		}
		if 64*i+64 > to {
			w &= 1<<(to%64) - 1
		}
		for ; w != 0; w &= w - 1 {
			if most == 0 {
				return dst
			}
			most--
			dst = append(dst, 64*i+bits.TrailingZeros64(w))
		}
	}
	return dst
}

// And removes the rows that are not in o.
func (b *Bits) And(o *Bits) {
	for i := range b {
		b[i] &= o[i]
	}
}

// AndBytes removes the rows that are not in o, whose bits begin with the least significant one of
// its first byte.
func (b *Bits) AndBytes(o []byte) {
	for i := range b {
		var w [8]byte
		if 8*i < len(o) {
			copy(w[:], o[8*i:])
		}
		b[i] &= binary.LittleEndian.Uint64(w[:])
	}
}

// AndNot removes the rows that are in o.
func (b *Bits) AndNot(o *Bits) {
	for i := range b {
		b[i] &^= o[i]
	}
}

// Or adds the rows of o.
func (b *Bits) Or(o *Bits) {
	for i := range b {
		b[i] |= o[i]
	}
}

// Within returns the rows from from to to-1, and how many they are.
func (b *Bits) Within(from, to int) (r Bits, n int) {
	if from >= to {
		return r, 0
	}
	last := (to - 1) / 64
	for i := from / 64; i <= last; i++ {
		r[i] = b[i]
	}
	r[from/64] &= ^uint64(0) << (from % 64)
	r[last] &= ^uint64(0) >> (63 - (to-1)%64)
	for i := from / 64; i <= last; i++ {
		n += bits.OnesCount64(r[i])
	}
	return r, n
}
