// Package span reckons with ranges of keys: how much of one lies within another,
// and how many lie over each other.
package span

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Share estimates how many of n bytes, spread evenly over the keys of [lo, hi],
// lie within [lower, upper), which overlaps [lo, hi]; a nil upper is the end. It
// returns at least 1, and n where the keys are too alike to tell.
func Share(n int64, lo, hi, lower, upper []byte) int64 {
	skip := commonLen(lo, hi)
	first, last := position(lo, skip), position(hi, skip)
	from, to := first, last
	if bytes.Compare(lower, lo) > 0 {
		from = position(lower, skip)
	}
	if upper != nil && bytes.Compare(upper, hi) <= 0 {
		to = position(upper, skip)
	}
	if last <= first {
		return n
	}
	// Not nothing: work that is done must be seen to be less.
	return max(1, int64(float64(n)*(to-from)/(last-first)))
}

// Deepest returns how many ranges, which have the given starts and ends, both
// inclusive, hold the key that most of them hold. It sorts both lists.
func Deepest(starts, ends [][]byte) (most int) {
	slices.SortFunc(starts, bytes.Compare)
	slices.SortFunc(ends, bytes.Compare)
	open, e := 0, 0
	for _, s := range starts {
		for bytes.Compare(ends[e], s) < 0 {
			e++
			open--
		}
		open++
		most = max(most, open)
	}
	return most
}

func commonLen(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// position reads the eight bytes of key from byte n on as a number.
func position(key []byte, n int) float64 {
	var b [8]byte
	copy(b[:], key[n:])
	return float64(binary.BigEndian.Uint64(b[:]))
}
