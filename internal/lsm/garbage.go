package lsm

import (
	"bytes"
	"sort"
)

// keyRange is the range of keys from the start of a file of the bottom to the
// start of the next file.
type keyRange struct {
	start  []byte
	bottom int64 // bytes of the bottom
	above  int64 // estimated bytes of the tiers above
	// garbage estimates how many bytes of obsolete versions the range contains.
	garbage int64
}

// live estimates the bytes without garbage.
func (r *keyRange) live() int64 { return r.bottom + r.above - r.garbage }

// mostlyGarbage reports whether half of the range may be garbage.
func (r *keyRange) mostlyGarbage() bool { return r.garbage > 0 && r.garbage >= r.live() }

// keyRanges partition the keys where the files of the bottom start. The first
// range starts at the least key, whatever its start says.
type keyRanges []keyRange

// find returns the index of the range that contains key.
func (rs keyRanges) find(key []byte) int {
	return sort.Search(len(rs)-1, func(i int) bool { return bytes.Compare(rs[i+1].start, key) > 0 })
}

// bounds returns the bounds of ranges [i, j).
func (rs keyRanges) bounds(i, j int) (lower, upper []byte) {
	if i > 0 {
		lower = rs[i].start
	}
	if j < len(rs) {
		upper = rs[j].start
	}
	return lower, upper
}

// live estimates the bytes of all ranges without garbage.
func (rs keyRanges) live() (n int64) {
	for i := range rs {
		n += rs[i].live()
	}
	return n
}

// pick returns the range to compact, -1 for none: the first that is mostly
// garbage, searched from first on and around. If space is short, a third of
// garbage is enough, and if no range has that much, it returns the range with the
// largest share of garbage.
func (rs keyRanges) pick(first int, spaceShort bool) int {
	n, best := len(rs), -1
	for j := range n {
		i := (first + j) % n
		r := &rs[i]
		if r.mostlyGarbage() || spaceShort && r.garbage > 0 && r.garbage >= r.live()/2 {
			return i
		}
		// Compare garbage/live without dividing.
		if spaceShort && r.garbage > 0 &&
			(best < 0 || float64(r.garbage)*float64(rs[best].live()) > float64(rs[best].garbage)*float64(r.live())) {
			best = i
		}
	}
	return best
}

// pickEnd returns the end of the ranges to compact together with range i: the
// following ranges that are mostly garbage, and others as long as the output
// would be a small file.
func (rs keyRanges) pickEnd(i int, fileBytes int64) (end int) {
	bottom, total := rs[i].bottom, rs[i].bottom+rs[i].above
	for end = i + 1; end < len(rs); end++ {
		r := &rs[end]
		if !r.mostlyGarbage() && bottom >= fileBytes/2 {
			break
		}
		bottom += r.bottom
		total += r.bottom + r.above
		if total > 2*fileBytes {
			break
		}
	}
	return end
}
