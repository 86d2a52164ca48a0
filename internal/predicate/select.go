package predicate

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/tablerock-db/tablerock/edm"
)

// Rows evaluates comparisons for many rows at once.
type Rows interface {
	// Keep removes from set the rows that do not satisfy t.
	Keep(t *Term, set *Bits)
}

// Select removes from set the rows that do not satisfy p.
func (p *Program) Select(rows Rows, set *Bits) { p.joined.keep(rows, set) }

func (n *Node) keep(rows Rows, set *Bits) {
	switch n.Kind {
	case True:
	case False:
		*set = Bits{}
	case Compare:
		if !n.Negated {
			rows.Keep(n.Term, set)
			return
		}
		satisfied := *set
		rows.Keep(n.Term, &satisfied)
		set.AndNot(&satisfied)
	case And:
		for _, k := range n.Kids {
			if set.Empty() {
				return
			}
			k.keep(rows, set)
		}
	default: // Or: a Program has no Not
		var result Bits
		for _, k := range n.Kids {
			if set.Empty() {
				break
			}
			satisfied := *set
			k.keep(rows, &satisfied)
			result.Or(&satisfied)
			set.AndNot(&satisfied)
		}
		*set = result
	}
}

// Words are 64-bit values at equal distances in memory: value i is Base plus the eight
// bytes at Data[Off+i*Step:], little-endian, masked.
type Words struct {
	Data       []byte
	Base, Mask uint64
	Off, Step  int
}

// At returns value i.
func (w *Words) At(i int) uint64 {
	at := w.Off + i*w.Step
	return w.Base + binary.LittleEndian.Uint64(w.Data[at:at+8])&w.Mask
}

// KeepWords removes from set the rows, less than n, whose word does not match. The kind of
// t must be Ints or Floats.
func (t *Test) KeepWords(w *Words, n int, set *Bits) {
	if t.Kind == Ints {
		w.keep(t.lo, t.hi-t.lo, t.outside, n, set)
		return
	}
	lo, hi := t.lo, t.hi
	const sign = 1 << 63
	if w.Base >= sign || w.Mask >= sign-w.Base {
		w.keepFloats(t, n, set)
		return
	}
	// No value is negative, so the bits order like the floats, and NaN is above all.
	switch {
	case hi > sign: // negative; the bits of -0 are sign
		if !t.outside {
			*set = Bits{}
		}
		return
	case hi == sign:
		hi = 0
	}
	if lo >= sign {
		lo = 0
	}
	w.keep(lo, hi-lo, t.outside, n, set)
}

// keep removes the rows whose word is not in the interval of span+1 values from lo, or
// those whose word is.
func (w *Words) keep(lo, span uint64, outside bool, n int, set *Bits) {
	d, mask, step := w.Base-lo, w.Mask, w.Step
	invert := ^uint64(0)
	if outside {
		invert = 0
	}
	for i := 0; 64*i < n; i++ {
		if set[i] == 0 {
			continue
		}
		p := w.Data[w.Off+64*i*step:]
		rows := min(n-64*i, 64)
		beyond, at := uint64(0), 0
		for range rows {
			// Without a branch: whether a value matches is hard to predict. Without the
			// rotation and the capacity of the slice, the loop takes 1.5 times as long.
			_, above := bits.Sub64(span, binary.LittleEndian.Uint64(p[at:at+8:at+8])&mask+d, 0)
			beyond = bits.RotateLeft64(beyond|above, -1)
			at += step
		}
		set[i] &= bits.RotateLeft64(beyond, rows) ^ invert
	}
}

// keepFloats is KeepWords for floats of which some may be negative.
func (w *Words) keepFloats(t *Test, n int, set *Bits) {
	for i := 0; 64*i < n; i++ {
		if set[i] == 0 {
			continue
		}
		p := w.Data[w.Off+64*i*w.Step:]
		var match uint64
		for j, at := 0, 0; j < min(n-64*i, 64); j++ {
			x := math.Float64frombits(binary.LittleEndian.Uint64(p[at:])&w.Mask + w.Base)
			if t.Float(x) {
				match |= 1 << (j & 63)
			}
			at += w.Step
		}
		set[i] &= match
	}
}

// KeepCodes removes from set the rows, less than n, whose word is not in match.
func (w *Words) KeepCodes(match *Bits, n int, set *Bits) {
	code := match.After(-1)
	switch {
	case code < 0:
		*set = Bits{}
		return
	case match.After(code) < 0:
		w.keep(uint64(code), 0, false, n, set)
		return
	}
	for i, left := range set {
		for ; left != 0; left &= left - 1 {
			row := 64*i + bits.TrailingZeros64(left)
			code := binary.LittleEndian.Uint64(w.Data[w.Off+row*w.Step:])&w.Mask + w.Base
			if match[code/64%uint64(len(match))]>>(code%64)&1 == 0 {
				set.Remove(row)
			}
		}
	}
}

// KeepBooleans removes from set the rows, less than n, whose Boolean does not match. The
// Booleans are bits, the least significant ones first. The kind of t must be Ints.
func (t *Test) KeepBooleans(data []byte, n int, set *Bits) {
	ifTrue, ifFalse := t.Int(1), t.Int(0)
	for i := 0; 64*i < n; i++ {
		var b [8]byte
		copy(b[:], data[8*i:])
		values, match := binary.LittleEndian.Uint64(b[:]), uint64(0)
		if ifTrue {
			match = values
		}
		if ifFalse {
			match |= ^values
		}
		set[i] &= match
	}
}

// Length returns the only length of bytes that match, if there is one. The kind of t must
// be Texts or Blobs.
func (t *Test) Length() (n int, ok bool) { return len(t.bytes), t.op == Eq }

// Property returns what t compares for rows of the shape of b: the index of a property,
// Timestamp, Absent if the rows do not have it, or another negative number for a key.
func (b *Binding) Property(t *Term) int {
	if t.source >= 0 {
		if i := b.index[t.source]; i >= 0 {
			return i
		}
		return Absent
	}
	return t.source
}

// Absent is what Binding.Property returns for a property that the rows do not have.
const Absent = -4

// Test reports whether row, which must have the shape of b, satisfies t.
func (b *Binding) Test(t *Term, row edm.Row) bool {
	b.keys.reset()
	return t.satisfied(row, b.index, &b.keys)
}
