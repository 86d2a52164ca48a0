package keyrange

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
)

// OverlapBytes estimates how many of n bytes, spread evenly over the keys of
// [lo, hi], are within [lower, upper), which overlaps [lo, hi]; a nil upper is the
// end. It returns at least 1, and n if the keys are too similar to tell.
func OverlapBytes(n int64, lo, hi, lower, upper []byte) int64 {
	skip := codec.CommonLen(lo, hi)
	first, last := keyNumber(lo, skip), keyNumber(hi, skip)
	from, to := first, last
	if bytes.Compare(lower, lo) > 0 {
		from = keyNumber(lower, skip)
	}
	if upper != nil && bytes.Compare(upper, hi) <= 0 {
		to = keyNumber(upper, skip)
	}
	if last <= first {
		return n
	}
	// Never 0: what remains must be less than before.
	return max(1, int64(float64(n)*(to-from)/(last-first)))
}

// OverlapDepth returns how many ranges contain the key that most ranges contain.
// starts and ends are the bounds of the ranges, both inclusive. It sorts both.
func OverlapDepth(starts, ends [][]byte) (most int) {
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

// keyNumber returns the eight bytes of key from byte n on as a number.
func keyNumber(key []byte, n int) float64 {
	var b [8]byte
	copy(b[:], key[n:])
	return float64(binary.BigEndian.Uint64(b[:]))
}
