package lsm

import (
	"bytes"

	"github.com/tablerock-db/tablerock/internal/manifest"
)

// ranges estimates the garbage of the version. Without a bottom there is one
// range, and the oldest run counts as the bottom.
func (k *picker) ranges() keyRanges {
	bottom, runs := k.v.bottom().parts, k.v.tiers()
	rs := make(keyRanges, max(1, len(bottom)))
	for i, p := range bottom {
		rs[i].start = p.lo
		rs[i].bottom = p.bytes
	}
	if len(bottom) == 0 && len(runs) > 0 {
		rs[0].bottom = runs[len(runs)-1].bytes()
		runs = runs[:len(runs)-1]
	}
	for _, run := range runs {
		for _, p := range run.parts {
			for i := rs.find(p.lo); i < len(rs); i++ {
				lower, upper := rs.bounds(i, i+1)
				if !p.overlaps(lower, upper) {
					break
				}
				share := p.bytesWithin(lower, upper)
				rs[i].above += share
				rs[i].garbage += p.garbage(share)
			}
		}
	}
	return rs
}

// heavyRange merges a range down whose bottom takes part: a heavy one, or, when
// the files take twice the bytes of what is live, the next one of some weight.
func (k *picker) heavyRange() *plan {
	rs := k.ranges()
	first := 0
	if k.policy.cursor != nil {
		first = rs.find(k.policy.cursor)
	}
	best := rs.pick(first, k.crowdedDisk(rs))
	if best < 0 {
		return nil
	}
	end := rs.pickEnd(best, k.o.FileBytes)
	_, k.policy.cursor = rs.bounds(best, end)
	return k.mergeDown("range", rs, best, end)
}

// crowdedDisk reports whether the files take twice the space of what is live. What
// merges took from the middle of a file takes space until the file is gone.
func (k *picker) crowdedDisk(rs keyRanges) bool {
	return len(k.v.bottom().parts) > 0 && k.v.Stats().Bytes >= 2*rs.live()
}

// maxMergeFiles is how many files a merge into the bottom installs at once. Of
// more it makes the first, and the next pick goes on behind it.
const maxMergeFiles = 4

// mergeDown merges all runs within ranges i up to j into the bottom. Its files
// are of even size, since a small rest would become a range of its own.
func (k *picker) mergeDown(reason string, rs keyRanges, i, j int) *plan {
	lower, upper := rs.bounds(i, j)
	total := int64(0)
	for ; i < j; i++ {
		total += rs[i].bottom + rs[i].above
	}
	b, first := k.v.bottom(), k.firstAbove(lower, upper)
	if first != nil {
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
		oneFile:   files > maxMergeFiles,
		past:      first, // or it could end before it has taken anything from above
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
