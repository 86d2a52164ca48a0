package filter

import (
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// firstLegal is the least character that a key can have.
const firstLegal = ' '

// spansOf returns the keys k for which "k op s" holds. Every legal key is told
// from every other by its places, although s may be no legal key: it is then
// replaced by one that all legal keys compare with in the same way, but for
// being equal.
func spansOf(op predicate.Op, s string) spans {
	low, high := beforeText(s), place{after, s}
	if end := controlIndex(s); end < len(s) {
		// What has s[:end] as a prefix goes on with a greater character.
		low = place{after, s[:end]}
		s, high = s[:end], low
	}
	if cut, whole := cutUnits(s, edm.MaxKeyUnits); cut < len(s) {
		low = place{after, s[:cut]}
		if !whole {
			// A key can have one more unit, but no half of a pair: either all of
			// the pair is too long, or the unit is less or greater than every
			// surrogate.
			low = beforeText(s[:cut] + "\uE000")
		}
		high = low
	}
	return spansBetween(op, low, high)
}

// spansBetween returns what is less than, equal to or greater than a text that
// lies between low and high, as op accepts it.
func spansBetween(op predicate.Op, low, high place) spans {
	var out spans
	add := func(from, to place) {
		if n := len(out); n > 0 && out[n-1].to == from {
			out[n-1].to = to
		} else if from.compare(to) < 0 {
			out = append(out, span{from, to})
		}
	}
	if op.Accepts(-1) {
		add(place{kind: first}, low)
	}
	if op.Accepts(0) {
		add(low, high)
	}
	if op.Accepts(1) {
		add(high, place{kind: last})
	}
	return out
}

// controlIndex returns the index of the first character of s below firstLegal,
// or the length of s.
func controlIndex(s string) int {
	for i := range len(s) {
		if s[i] < firstLegal {
			return i
		}
	}
	return len(s)
}

// cutUnits returns the length in bytes of the longest prefix of s that has at
// most n UTF-16 code units, and whether it has n or is all of s.
func cutUnits(s string, n int) (cut int, whole bool) {
	if len(s) <= n {
		return len(s), true
	}
	for i, r := range s {
		if n == 0 {
			return i, true
		}
		if r > 0xFFFF {
			n--
		}
		if n--; n < 0 {
			return i, false
		}
	}
	return len(s), true
}
