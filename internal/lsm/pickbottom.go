package lsm

import (
	"bytes"

	"github.com/tablerock-db/tablerock/internal/lsm/internal/bound"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/keyrange"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/visibility"
	"github.com/tablerock-db/tablerock/internal/manifest"
)

// maxOutputFiles is the number of files that a compaction into the bottom installs at once. A larger compaction writes the first file,
// and the next pick continues after it.
const maxOutputFiles = 4

// ranges estimates the garbage of the version. Without a bottom there is one range,
// and the oldest run counts as the bottom.
func (k *picker) ranges() keyrange.Ranges {
	bottom, runs := k.v.bottom().ssts, k.v.tiers()
	rs := make(keyrange.Ranges, max(1, len(bottom)))
	for i, s := range bottom {
		rs[i].Start = s.lo
		rs[i].Bottom, rs[i].Garbage, rs[i].Entries = s.bytes, k.hidden(s), s.entries
	}
	if len(bottom) == 0 && len(runs) > 0 {
		rs[0].Bottom = runs[len(runs)-1].bytes()
		runs = runs[:len(runs)-1]
	}
	for _, run := range runs {
		for _, s := range run.ssts {
			for i := rs.Find(s.lo); i < len(rs); i++ {
				lower, upper := rs.Bounds(i, i+1)
				if !s.overlaps(lower, upper) {
					break
				}
				share := s.bytesWithin(lower, upper)
				rs[i].Above += share
				rs[i].Garbage += s.garbage(share)
			}
		}
	}
	return rs
}

// hidden estimates the bytes in a file of the bottom of versions that were kept for closed snapshots, and of rows of dropped
// tables, 0 for few of each.
func (k *picker) hidden(s *virtualSST) int64 {
	share := s.tables.Share(s.lo, s.hi, s.reader, k.o.Dropped, &k.read)
	if s.meta.NewKeys > 0 && (len(k.snapshots) == 0 || k.snapshots[0] >= s.meta.MaxSeq) {
		share = max(share, 1-float64(s.meta.NewKeys)/manifest.AllNewKeys)
	}
	if share < 0.25 {
		return 0
	}
	return int64(float64(s.bytes) * share)
}

// garbageRange compacts the next range that is mostly garbage or, if space is short,
// the next range with less garbage.
func (k *picker) garbageRange() *plan {
	rs := k.ranges()
	first := 0
	if k.policy.cursor != nil {
		first = rs.Find(k.policy.cursor)
	}
	best := rs.Pick(first, k.spaceShort(rs))
	if best < 0 {
		return nil
	}
	end := rs.PickEnd(best, k.o.FileBytes)
	_, k.policy.cursor = rs.Bounds(best, end)
	return k.intoBottom("garbage", rs, best, end)
}

// spaceShort reports whether the files take twice the space of the live rows. A
// range that a compaction consumed takes space until its whole file is removed.
func (k *picker) spaceShort(rs keyrange.Ranges) bool {
	return len(k.v.bottom().ssts) > 0 && k.v.Stats().Bytes >= 2*rs.Live()
}

// intoBottom compacts all runs within ranges [i, j) into the bottom. The output
// files have equal size, because a small last file would be a small range.
func (k *picker) intoBottom(reason string, rs keyrange.Ranges, i, j int) *plan {
	lower, upper := rs.Bounds(i, j)
	total := int64(0)
	for ; i < j; i++ {
		total += rs[i].Bottom + rs[i].Above
	}
	b, first := k.v.bottom(), k.firstAbove(lower, upper)
	if first != nil {
		// Do not rewrite a large file if all keys above are greater than its last key.
		at := b.find(lower)
		if at < len(b.ssts) && b.ssts[at].bytes >= k.o.FileBytes/2 && bytes.Compare(b.ssts[at].hi, first) < 0 && k.hidden(b.ssts[at]) == 0 {
			lower = first
			total -= b.ssts[at].bytes
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
		oneFile:   files > maxOutputFiles,
		endAfter:  first, // so that it consumes something from above
	}
}

// firstAbove returns a lower bound of the keys above the bottom within
// [lower, upper), nil if there are none.
func (k *picker) firstAbove(lower, upper []byte) (first []byte) {
	for _, r := range k.v.tiers() {
		ssts := r.within(lower, upper)
		if len(ssts) == 0 {
			continue
		}
		lo := ssts[0].lo
		if bytes.Compare(lo, lower) < 0 {
			lo = lower
		}
		if first == nil || bytes.Compare(lo, first) < 0 {
			first = lo
		}
	}
	return first
}

// full plans the next file of a full compaction, from a key on. It leaves out the files
// of the bottom for which skip is true and that no tier overlaps.
func (k *picker) full(from []byte, skip func(*virtualSST) bool) *plan {
	var lower []byte
	found := false
	for _, r := range k.v.runs {
		for _, s := range r.within(from, nil) {
			if r.tier == manifest.BottomTier && skip(s) {
				continue
			}
			lo := s.lo
			if bytes.Compare(lo, from) < 0 {
				lo = from
			}
			if !found || bytes.Compare(lo, lower) < 0 {
				lower, found = lo, true
			}
			break
		}
	}
	if !found {
		return nil
	}
	// Rewrite a file of the bottom that starts before lower as a whole, unless this
	// compaction has just written its start.
	for _, s := range k.v.bottom().ssts {
		if s.overlaps(lower, bound.After(lower)) && bytes.Compare(s.lo, from) >= 0 {
			lower = s.lo
		}
	}
	return &plan{
		reason:    "full",
		inputs:    k.v.runs,
		lower:     lower,
		upper:     k.nextSkipped(lower, skip),
		tier:      manifest.BottomTier,
		fileBytes: k.o.shareBytes(k.v.bytes(), k.o.minFileBytes()),
		oneFile:   true,
	}
}

// nextSkipped returns the start of the first file after lower that is large, for which
// skip is true, and that no tier overlaps, nil if there is none.
func (k *picker) nextSkipped(lower []byte, skip func(*virtualSST) bool) []byte {
	for _, s := range k.v.bottom().ssts {
		if bytes.Compare(s.lo, lower) > 0 && s.bytes >= k.o.FileBytes/2 && !overlapsAny(k.v.tiers(), s) && skip(s) {
			return s.lo
		}
	}
	return nil
}

// fullyCompacted reports whether a compaction of a file of the bottom alone would
// change nothing.
func (k *picker) fullyCompacted(s *virtualSST) bool { return s.meta.MaxSeq == 0 && k.withoutGarbage(s) }

// versions reports whether s has several versions of a key, which were kept for snapshots. A file that cannot be read has
// none: its compaction would fail.
func (s *virtualSST) versions() bool {
	if s.meta.MaxSeq == 0 {
		return false
	}
	r, err := s.reader()
	return err == nil && r.Versions()
}

// withoutGarbage reports whether a compaction of a file of the bottom alone would not
// make it smaller.
func (k *picker) withoutGarbage(s *virtualSST) bool {
	kept := s.meta.Tombstones == 0 && !s.versions() || visibility.AllOpen(s.snapshots, k.snapshots)
	return kept && !s.clipped && !s.compressible(k.o) && s.tables.None(s.lo, s.hi, s.reader, k.o.Dropped)
}
