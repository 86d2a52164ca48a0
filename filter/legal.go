package filter

import (
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// firstLegal is the least character of a legal key.
const firstLegal = ' '

// spansOf returns the legal keys k for which "k op s" is true. If s is not a legal
// key, no key equals it, and spansOf uses bounds that compare with all legal keys
// as s does.
func spansOf(op predicate.Op, s string) spans {
	low, high := boundBefore(s), textBound{afterText, s}
	if end := controlIndex(s); end < len(s) {
		// Legal keys with the prefix s[:end] continue with a greater character.
		low = textBound{afterText, s[:end]}
		s, high = s[:end], low
	}
	if cut, whole := cutUnits(s, edm.MaxKeyUnits); cut < len(s) {
		low = textBound{afterText, s[:cut]}
		if !whole {
			// A key can have one more code unit, but not half of a surrogate
			// pair. The unit is less or greater than every surrogate.
			low = boundBefore(s[:cut] + "\uE000")
		}
		high = low
	}
	return spansBetween(op, low, high)
}

// spansBetween returns the texts t for which "t op s" is true, where s is any text
// between low and high.
func spansBetween(op predicate.Op, low, high textBound) spans {
	var out spans
	add := func(from, to textBound) {
		if n := len(out); n > 0 && out[n-1].to == from {
			out[n-1].to = to
		} else if from.compare(to) < 0 {
			out = append(out, span{from, to})
		}
	}
	if op.Accepts(-1) {
		add(textBound{kind: atStart}, low)
	}
	if op.Accepts(0) {
		add(low, high)
	}
	if op.Accepts(1) {
		add(high, textBound{kind: atEnd})
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

// cutUnits returns the length in bytes of the longest prefix of s of at most n
// UTF-16 code units. It reports whether the prefix has n units or is all of s.
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
