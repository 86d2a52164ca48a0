package predicate

import (
	"bytes"
	"encoding/binary"
)

// Text is the place of the String or Binary of a row in some bytes.
type Text struct{ Row, From, To int }

// AddTexts adds to set the rows of list whose bytes in data match. The kind of t must be
// Texts or Blobs. The first eight bytes mostly decide, so that the loads of several rows
// from slow memory overlap.
func (t *Test) AddTexts(data []byte, list []Text, set *Bits) {
	if t.op == choice {
		t.texts.addTexts(data, list, t.outside, set)
		return
	}
	want := textPrefix(t.bytes)
	decides := t.byteOrder || t.op == Eq || t.op == Ne
	below, above := t.op.Accepts(-1), t.op.Accepts(1)
	for i := range list {
		x := &list[i]
		p := x.prefix(data)
		match := below
		switch {
		case !decides || p == want:
			match = t.Bytes(data[x.From:x.To])
		case p > want:
			match = above
		}
		if match {
			set.Add(x.Row)
		}
	}
}

// prefix is textPrefix for the bytes of x in data.
func (x *Text) prefix(data []byte) uint64 {
	if rest := data[x.From:]; len(rest) >= 8 {
		// A shift by 64 or more gives 0.
		return binary.BigEndian.Uint64(rest) & (^uint64(0) << (64 - 8*min(x.To-x.From, 8)))
	}
	return textPrefix(data[x.From:x.To])
}

// textPrefix returns the first eight bytes of b, with zeros behind a shorter one, as a
// number that orders like them.
func textPrefix(b []byte) uint64 {
	var p [8]byte
	copy(p[:], b)
	return binary.BigEndian.Uint64(p[:])
}

// MaxPrefix is the greatest number of bytes of a value that Prefixes know.
const MaxPrefix = 64

// Prefixes are the beginnings of Strings or Binaries. Value i begins with Common and the eight
// bytes of word i, the first of them the most significant one; zeros stand for the bytes behind
// a shorter value. They are at most MaxPrefix bytes.
type Prefixes struct {
	Common []byte
	Words  Words
}

// KeepPrefixes removes from set the rows, less than n, that do not match. It reports false
// without a change if the prefix of some row of set does not decide whether the row matches.
// The kind of t must be Texts or Blobs.
func (t *Test) KeepPrefixes(x *Prefixes, n int, set *Bits) bool {
	if t.op == choice {
		if !t.texts.none(x, n, set) {
			return false
		}
		if !t.outside {
			*set = Bits{}
		}
		return true
	}
	var c [MaxPrefix]byte
	copy(c[:], t.bytes)
	below, above := t.op.Accepts(-1), t.op.Accepts(1)
	if below != above && !t.byteOrder {
		return false
	}
	match := above
	switch bytes.Compare(x.Common, c[:len(x.Common)]) {
	case -1:
		match = below
	case 0:
		want := textPrefix(c[len(x.Common):])
		equal := *set
		if x.Words.keep(want, 0, false, n, &equal); !equal.Empty() {
			return false
		}
		if below != above {
			x.Words.keep(want, -want-1, below, n, set)
			return true
		}
	}
	if !match {
		*set = Bits{}
	}
	return true
}
