// Package valuebounds computes the bounds of the values of a column.
package valuebounds

import (
	"encoding/binary"
	"math"

	"github.com/tablerock-db/tablerock/edm"
)

// maxText is the length of the longest bound of a String.
const maxText = 16 // part of the file format

// Bounds are the smallest and the largest of some values of one type, in the
// order of the type. NaN is counted separately. The zero Bounds have no values.
type Bounds struct {
	any, nan bool
	lo, hi   uint64
	lo2, hi2 uint64 // second halves of Guids
	textLo   textBound
	textHi   textBound
}

// textBound is the first bytes of a String.
type textBound struct {
	bytes [maxText]byte
	n     int
	cut   bool // the String is longer
}

func (t *textBound) set(b []byte) {
	t.n = copy(t.bytes[:], b)
	t.cut = len(b) > t.n
}

func (t *textBound) get() []byte { return t.bytes[:t.n] }

// AddText adds a String.
func (b *Bounds) AddText(text []byte) {
	if b.any {
		lo, hi := &b.textLo, &b.textHi
		// The first byte decides for most values. From EE on, byte order is not the
		// order of code units.
		if len(text) > 0 && lo.n > 0 && hi.n > 0 && text[0] > lo.bytes[0] && text[0] < hi.bytes[0] && hi.bytes[0] < 0xEE {
			return
		}
		if edm.Compare(text, lo.get()) < 0 {
			lo.set(text)
		}
		if edm.Compare(text, hi.get()) > 0 {
			hi.set(text)
		}
		return
	}
	b.any = true
	b.textLo.set(text)
	b.textHi.set(text)
}

// AddWords adds the values of a column of any type but String and Binary.
func (b *Bounds) AddWords(t edm.Type, words, more []uint64) {
	switch t {
	case edm.TypeGuid:
		for i, w := range words {
			b.addWord(t, w, more[i])
		}
	case edm.TypeDouble:
		for _, w := range words {
			if math.IsNaN(math.Float64frombits(w)) {
				b.nan = true
				continue
			}
			b.addWord(t, w, 0)
		}
	default: // the most frequent types, without a branch
		lo, hi := int64(words[0]), int64(words[0])
		for _, w := range words {
			lo, hi = min(lo, int64(w)), max(hi, int64(w))
		}
		b.addWord(t, uint64(lo), 0)
		b.addWord(t, uint64(hi), 0)
	}
}

func (b *Bounds) addWord(t edm.Type, w, w2 uint64) {
	switch {
	case !b.any:
		b.any, b.lo, b.hi, b.lo2, b.hi2 = true, w, w, w2, w2
	case WordLess(t, w, w2, b.lo, b.lo2):
		b.lo, b.lo2 = w, w2
	case WordLess(t, b.hi, b.hi2, w, w2):
		b.hi, b.hi2 = w, w2
	}
}

// WordLess compares two values of type t by their words; a2 and b2 are the second
// halves of Guids.
func WordLess(t edm.Type, a, a2, b, b2 uint64) bool {
	switch t {
	case edm.TypeDouble:
		return math.Float64frombits(a) < math.Float64frombits(b)
	case edm.TypeGuid:
		return a < b || a == b && a2 < b2
	}
	return int64(a) < int64(b)
}

// Merge adds the values that o has.
func (b *Bounds) Merge(t edm.Type, o *Bounds) {
	nan := b.nan || o.nan
	switch {
	case !b.any:
		*b = *o
	case o.any && t == edm.TypeString:
		if edm.Compare(o.textLo.get(), b.textLo.get()) < 0 {
			b.textLo = o.textLo
		}
		if c := edm.Compare(o.textHi.get(), b.textHi.get()); c > 0 || c == 0 && o.textHi.cut {
			b.textHi = o.textHi
		}
	case o.any:
		b.AddWords(t, []uint64{o.lo, o.hi}, []uint64{o.lo2, o.hi2})
	}
	b.nan = nan
}

// roundUp returns a bound greater than all strings that begin with p. It changes p. ok
// is false if there is no such bound.
func roundUp(p []byte) (bound []byte, ok bool) {
	for len(p) > 0 {
		last := len(p) - 1
		// Up to ED, ED included as the result, byte order is the order of code units.
		if p[last] < 0xED {
			p[last]++
			return p, true
		}
		p = p[:last]
	}
	return nil, false
}

// HasNaN reports whether NaN may be among the values.
func (b *Bounds) HasNaN() bool { return b.nan }

// AppendTo appends the bounds of values of type t and reports which of them exist. A
// String bound is a u8 length and the bytes, another one 8 or 16 bytes.
func (b *Bounds) AppendTo(dst []byte, t edm.Type) (out []byte, lower, upper bool) {
	switch {
	case !b.any || t == edm.TypeBinary:
		return dst, false, false
	case t == edm.TypeString:
		dst = append(append(dst, byte(b.textLo.n)), b.textLo.get()...)
		hi, ok := b.upperText()
		if ok {
			dst = append(append(dst, byte(len(hi))), hi...)
		}
		return dst, true, ok
	case t == edm.TypeGuid:
		for _, w := range []uint64{b.lo, b.lo2, b.hi, b.hi2} {
			dst = binary.BigEndian.AppendUint64(dst, w)
		}
	default:
		dst = binary.LittleEndian.AppendUint64(dst, b.lo)
		dst = binary.LittleEndian.AppendUint64(dst, b.hi)
	}
	return dst, true, true
}

// upperText returns the upper bound of Strings. ok is false if there is none.
func (b *Bounds) upperText() (bound []byte, ok bool) {
	if b.textHi.cut {
		return roundUp(b.textHi.get())
	}
	return b.textHi.get(), true
}
