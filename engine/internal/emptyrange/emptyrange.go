// Package emptyrange remembers ranges of keys in which queries found no entity. A table that is
// used as a queue is read and deleted at its start: each query would pass the tombstones of all
// entities deleted there until a compaction drops them, and so it leaves them out.
package emptyrange

import (
	"bytes"
	"slices"
	"sort"
)

// maxRanges is how many ranges a List has at most. A put looks for its key among them.
const maxRanges = 64

// List is a set of ranges of user keys that have no entity at one sequence number. It is immutable,
// so any number of goroutines may use it. The zero List is empty.
//
// If the ranges of a List have no entity at one sequence number, they have none at the next one
// either, unless it is that of a put: Without gives the List then.
type List struct {
	ranges []keyRange // ascending; they neither overlap nor touch
}

// keyRange is [lower, upper).
type keyRange struct {
	lower, upper []byte
	seq          uint64 // at which the range was found
}

// after returns the index of the first range that ends above key.
func (l List) after(key []byte) int {
	return sort.Search(len(l.ranges), func(i int) bool { return bytes.Compare(l.ranges[i].upper, key) > 0 })
}

// With returns l with [lower, upper), which has no entity at the sequence number seq. It keeps no
// reference to the bounds. If there are too many ranges, the one that was found first is left out.
func (l List) With(lower, upper []byte, seq uint64) List {
	if bytes.Compare(lower, upper) >= 0 {
		return l
	}
	from := sort.Search(len(l.ranges), func(i int) bool { return bytes.Compare(l.ranges[i].upper, lower) >= 0 })
	to := from
	for to < len(l.ranges) && bytes.Compare(l.ranges[to].lower, upper) <= 0 {
		to++
	}
	r := keyRange{lower, upper, seq}
	if from < to {
		if first := l.ranges[from].lower; bytes.Compare(first, lower) < 0 {
			r.lower = first
		}
		if last := l.ranges[to-1].upper; bytes.Compare(last, upper) > 0 {
			r.upper = last
		}
	}
	r.lower, r.upper = bytes.Clone(r.lower), bytes.Clone(r.upper)
	ranges := slices.Concat(l.ranges[:from], []keyRange{r}, l.ranges[to:])
	if len(ranges) > maxRanges {
		oldest := 0
		for i := range ranges {
			if ranges[i].seq < ranges[oldest].seq {
				oldest = i
			}
		}
		ranges = slices.Delete(ranges, oldest, oldest+1)
	}
	return List{ranges}
}

// Without returns l without the range that contains key, of which it keeps no reference. It keeps the
// part before key, where a query that begins there ends.
func (l List) Without(key []byte) List {
	if _, _, ok := l.Around(key); !ok {
		return l
	}
	i, ranges := l.after(key), slices.Clone(l.ranges)
	if ranges[i].upper = bytes.Clone(key); bytes.Equal(ranges[i].lower, key) {
		ranges = slices.Delete(ranges, i, i+1)
	}
	return List{ranges}
}

// Empty reports whether l has no range.
func (l List) Empty() bool { return len(l.ranges) == 0 }

// Around returns the range of l that contains key, if there is one.
func (l List) Around(key []byte) (lower, upper []byte, ok bool) {
	i := l.after(key)
	if i == len(l.ranges) || bytes.Compare(key, l.ranges[i].lower) < 0 {
		return nil, nil, false
	}
	return l.ranges[i].lower, l.ranges[i].upper, true
}

// Trim returns [lower, upper) without the ranges of l at its ends: the bounds are those given, or
// parts of l, which must not be changed. If nothing is left, the new lower is not below the new
// upper.
func (l List) Trim(lower, upper []byte) (newLower, newUpper []byte) {
	if _, end, ok := l.Around(lower); ok {
		lower = end
	}
	i := sort.Search(len(l.ranges), func(i int) bool { return bytes.Compare(l.ranges[i].upper, upper) >= 0 })
	if i < len(l.ranges) && bytes.Compare(l.ranges[i].lower, upper) < 0 {
		upper = l.ranges[i].lower
	}
	return lower, upper
}

// After returns the lower bound of the first range of l above key, nil if there is none. It is part
// of l.
func (l List) After(key []byte) []byte {
	i := sort.Search(len(l.ranges), func(i int) bool { return bytes.Compare(l.ranges[i].lower, key) > 0 })
	if i == len(l.ranges) {
		return nil
	}
	return l.ranges[i].lower
}

// Before returns the upper bound of the last range of l below key, nil if there is none. It is part
// of l.
func (l List) Before(key []byte) []byte {
	i := sort.Search(len(l.ranges), func(i int) bool { return bytes.Compare(l.ranges[i].upper, key) >= 0 })
	if i == 0 {
		return nil
	}
	return l.ranges[i-1].upper
}
