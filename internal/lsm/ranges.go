package lsm

import (
	"bytes"
	"sort"

	"github.com/tablerock-db/tablerock/internal/manifest"
)

// ranges cuts the keys where the files of the bottom begin. Range i goes from
// starts[i] to the next start; the first reaches down to the least key.
type ranges struct {
	starts [][]byte
	bottom []int64 // bytes of the bottom in each range
	above  []int64 // estimated bytes above it
}

// find returns the range of a key.
func (r *ranges) find(key []byte) int {
	return sort.Search(len(r.starts)-1, func(i int) bool { return bytes.Compare(r.starts[i+1], key) > 0 })
}

// bounds returns the bounds of ranges i up to j.
func (r *ranges) bounds(i, j int) (lower, upper []byte) {
	if i > 0 {
		lower = r.starts[i]
	}
	if j < len(r.starts) {
		upper = r.starts[j]
	}
	return lower, upper
}

// heavy reports whether what lies above range i weighs as much as its bottom.
func (r *ranges) heavy(i int) bool { return r.above[i] > 0 && r.above[i] >= r.bottom[i] }

// ranges weighs the ranges of the version. Without a bottom there is one range,
// and the oldest run counts as the bottom.
func (k *picker) ranges() *ranges {
	bottom, runs := k.v.bottom().parts, k.v.tiers()
	n := max(1, len(bottom))
	r := &ranges{starts: make([][]byte, n), bottom: make([]int64, n), above: make([]int64, n)}
	for i, p := range bottom {
		r.starts[i] = p.lo
		r.bottom[i] = p.bytes
	}
	if len(bottom) == 0 && len(runs) > 0 {
		r.bottom[0] = runs[len(runs)-1].bytes()
		runs = runs[:len(runs)-1]
	}
	for _, run := range runs {
		for _, p := range run.parts {
			for i := r.find(p.lo); i < n; i++ {
				lower, upper := r.bounds(i, i+1)
				if !p.overlaps(lower, upper) {
					break
				}
				r.above[i] += p.bytesWithin(lower, upper)
			}
		}
	}
	return r
}

// heavyRange merges a range down whose bottom takes part: one where the bytes
// above weigh as much, or, when the files take twice the bytes of the bottom,
// the next one of some weight.
func (k *picker) heavyRange() *plan {
	r := k.ranges()
	n := len(r.starts)
	first := 0
	if k.policy.cursor != nil {
		first = r.find(k.policy.cursor)
	}
	best, crowded := -1, k.crowdedDisk()
	for j := range n {
		i := (first + j) % n
		if r.heavy(i) || crowded && r.above[i] > 0 && r.above[i] >= r.bottom[i]/2 {
			best = i
			break
		}
		// Compare above/bottom without dividing.
		if crowded && r.above[i] > 0 && (best < 0 || float64(r.above[i])*float64(r.bottom[best]) > float64(r.above[best])*float64(r.bottom[i])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	end := r.extend(best, k.o.FileBytes)
	_, k.policy.cursor = r.bounds(best, end)
	return k.mergeDown("range", r, best, end)
}

// extend returns the end of a stretch of ranges that begins with i and is worth
// merging at once: neighbours that are due as well, and others as long as the
// stretch would leave a small file.
func (r *ranges) extend(i int, fileBytes int64) (end int) {
	bottom, total := r.bottom[i], r.bottom[i]+r.above[i]
	for end = i + 1; end < len(r.starts); end++ {
		if !r.heavy(end) && bottom >= fileBytes/2 {
			break
		}
		bottom += r.bottom[end]
		total += r.bottom[end] + r.above[end]
		if total > 2*fileBytes {
			break
		}
	}
	return end
}

// crowdedDisk reports whether the files take twice the space of the bottom. What
// merges took from the middle of a file takes space until the file is gone.
func (k *picker) crowdedDisk() bool {
	bottom := k.v.bottom().bytes()
	return bottom > 0 && k.v.Stats().Bytes >= 2*bottom
}

// mergeDown merges all runs within ranges i up to j into the bottom. Its files
// are of even size, since a small rest would become a range of its own.
func (k *picker) mergeDown(reason string, r *ranges, i, j int) *plan {
	lower, upper := r.bounds(i, j)
	total := int64(0)
	for ; i < j; i++ {
		total += r.bottom[i] + r.above[i]
	}
	if b, first := k.v.bottom(), k.firstAbove(lower, upper); first != nil {
		// What lies behind the end of a large file does not rewrite it.
		at := b.find(lower)
		if at < len(b.parts) && b.parts[at].bytes >= k.o.FileBytes/2 && bytes.Compare(b.parts[at].hi, first) < 0 {
			lower = first
			total -= b.parts[at].bytes
		}
	}
	files := max(1, (total+k.o.FileBytes-1)/k.o.FileBytes)
	return &plan{
		reason:    reason,
		inputs:    k.v.runs,
		lower:     lower,
		upper:     upper,
		tier:      manifest.BottomTier,
		fileBytes: max(total/files, k.o.FileBytes/2),
	}
}

// firstAbove returns a bound below which nothing lies above the bottom within
// [lower, upper), nil if nothing does at all.
func (k *picker) firstAbove(lower, upper []byte) (first []byte) {
	for _, r := range k.v.tiers() {
		parts := r.within(lower, upper)
		if len(parts) == 0 {
			continue
		}
		lo := parts[0].lo
		if bytes.Compare(lo, lower) < 0 {
			lo = lower
		}
		if first == nil || bytes.Compare(lo, first) < 0 {
			first = lo
		}
	}
	return first
}
