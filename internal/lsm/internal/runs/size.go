package runs

import (
	"cmp"
	"slices"
)

// Bytes returns the size of the sstables. It does not include the ranges of files that compactions
// consumed.
func (l List) Bytes() (n int64) {
	for _, r := range l {
		n += r.Bytes()
	}
	return n
}

// BytesWithin estimates the size of the entries within [lower, upper); a nil upper is the end.
func (l List) BytesWithin(lower, upper []byte) (n int64) {
	for _, r := range l {
		for _, s := range r.Within(lower, upper) {
			n += s.BytesWithin(lower, upper)
		}
	}
	return n
}

// FileBytes returns the size of the files.
func (l List) FileBytes() (n int64) {
	seen := make(map[*File]bool)
	for _, r := range l {
		for _, s := range r.SSTs {
			if !seen[s.File] {
				seen[s.File] = true
				n += s.Size
			}
		}
	}
	return n
}

// CompactionSpace estimates how many bytes a compaction of all keys needs beside its inputs:
// one file of each run is consumed in part, and its file is still on disk.
func (l List) CompactionSpace() (n int64) {
	for _, r := range l {
		if len(r.SSTs) > 0 {
			n += slices.MaxFunc(r.SSTs, func(a, b *SST) int { return cmp.Compare(a.Size, b.Size) }).Size
		}
	}
	return n
}

// OldestWithin returns the oldest runs whose CompactionSpace is at most space, and at least two.
func (l List) OldestWithin(space int64) List {
	for len(l) > 2 && l.CompactionSpace() > space {
		l = l[1:]
	}
	return l
}

// LiveBytes estimates the size of the rows that readers of the present see: that of the runs that
// overlap no larger run, or more if entries above the bottom are known to hide nothing.
func (l List) LiveBytes() (live int64) {
	known := l.Bottom().Bytes()
	for _, s := range l.Tiers().SSTs() {
		known += s.Bytes - s.Garbage(s.Bytes)
	}
	largest := slices.Clone(l)
	slices.SortStableFunc(largest, func(a, b *Run) int { return cmp.Compare(b.Bytes(), a.Bytes()) })
	var apart List
	for _, r := range largest {
		if !slices.ContainsFunc(r.SSTs, apart.Overlaps) {
			apart = append(apart, r)
			live += r.Bytes()
		}
	}
	return max(live, known)
}
