package lsm

import (
	"bytes"
	"encoding/binary"
)

// bytesWithin estimates the size of what p holds within [lower, upper), as if
// its keys were spread evenly between its bounds.
func (p *part) bytesWithin(lower, upper []byte) int64 {
	if p.inside(lower, upper) {
		return p.bytes
	}
	n := commonLen(p.lo, p.hi)
	first, last := place(p.lo, n), place(p.hi, n)
	from, to := first, last
	if bytes.Compare(lower, p.lo) > 0 {
		from = place(lower, n)
	}
	if upper != nil && bytes.Compare(upper, p.hi) <= 0 {
		to = place(upper, n)
	}
	if last <= first {
		return p.bytes
	}
	// Not nothing: work that is done must be seen to be less.
	return max(1, int64(float64(p.bytes)*(to-from)/(last-first)))
}

func commonLen(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// place reads the eight bytes of key from byte n on as a number.
func place(key []byte, n int) float64 {
	var b [8]byte
	copy(b[:], key[n:])
	return float64(binary.BigEndian.Uint64(b[:]))
}
