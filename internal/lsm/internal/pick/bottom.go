package pick

import (
	"bytes"

	"github.com/tablerock-db/tablerock/internal/lsm/internal/bound"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/keyrange"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/runs"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/visibility"
	"github.com/tablerock-db/tablerock/internal/manifest"
)

// maxOutputFiles is the number of files that a compaction into the bottom installs at once. A
// larger compaction writes the first file, and the next pick continues after it.
const maxOutputFiles = 4

// ranges estimates the garbage of the runs. Without a bottom there is one range, and the oldest run
// counts as the bottom.
func (k *Picker) ranges() keyrange.Ranges {
	bottom, tiers := k.Runs.Bottom().SSTs, k.Runs.Tiers()
	rs := make(keyrange.Ranges, max(1, len(bottom)))
	for i, s := range bottom {
		rs[i].Start = s.Lo
		rs[i].Bottom, rs[i].Garbage, rs[i].Entries = s.Bytes, k.hidden(s), s.Entries
	}
	k.addConsumed(rs)
	if len(bottom) == 0 && len(tiers) > 0 {
		rs[0].Bottom = tiers[len(tiers)-1].Bytes()
		tiers = tiers[:len(tiers)-1]
	}
	for _, r := range tiers {
		for _, s := range r.SSTs {
			for i := rs.Find(s.Lo); i < len(rs); i++ {
				lower, upper := rs.Bounds(i, i+1)
				if !s.Overlaps(lower, upper) {
					break
				}
				share := s.BytesWithin(lower, upper)
				rs[i].Above += share
				rs[i].Garbage += s.Garbage(share)
			}
		}
	}
	return rs
}

// addConsumed adds what compactions have consumed of the files of the bottom to the ranges of the rest.
func (k *Picker) addConsumed(rs keyrange.Ranges) {
	rest := make(map[*runs.File]int64)
	for _, s := range k.Runs.Bottom().SSTs {
		if s.Clipped {
			rest[s.File] += s.Bytes
		}
	}
	for i, s := range k.Runs.Bottom().SSTs {
		if s.Clipped {
			consumed := max(0, s.Size-rest[s.File])
			rs[i].Consumed = int64(float64(consumed) * float64(s.Bytes) / float64(rest[s.File]))
		}
	}
}

// hidden estimates the bytes in a file of the bottom of versions that were kept for closed
// snapshots, and of rows of dropped tables, 0 for few of each.
func (k *Picker) hidden(s *runs.SST) int64 {
	share := s.Tables.Share(s.Lo, s.Hi, s.Reader, k.Dropped, &k.read)
	if s.Meta.NewKeys > 0 && (len(k.Snapshots) == 0 || k.Snapshots[0] >= s.Meta.MaxSeq) {
		share = max(share, 1-float64(s.Meta.NewKeys)/manifest.AllNewKeys)
	}
	if share < 0.25 {
		return 0
	}
	return int64(float64(s.Bytes) * share)
}

// garbageRange compacts the next range that is mostly garbage or, if space is short,
// the next range with less garbage.
func (k *Picker) garbageRange() *Plan {
	rs := k.ranges()
	first := 0
	if k.Policy.cursor != nil {
		first = rs.Find(k.Policy.cursor)
	}
	best := rs.Pick(first, k.spaceShort(rs))
	if best < 0 {
		return nil
	}
	end := rs.PickEnd(best, int64(k.FileBytes))
	_, k.Policy.cursor = rs.Bounds(best, end)
	return k.intoBottom("garbage", rs, best, end)
}

// spaceShort reports whether the files take twice the space of the live rows. A
// range that a compaction consumed takes space until its whole file is removed.
func (k *Picker) spaceShort(rs keyrange.Ranges) bool {
	return len(k.Runs.Bottom().SSTs) > 0 && k.Runs.FileBytes() >= 2*rs.Live()
}

// intoBottom compacts all runs within ranges [i, j) into the bottom. The output
// files have equal size, because a small last file would be a small range.
func (k *Picker) intoBottom(reason string, rs keyrange.Ranges, i, j int) *Plan {
	lower, upper := rs.Bounds(i, j)
	fileBytes, total := int64(k.FileBytes), int64(0)
	for ; i < j; i++ {
		total += rs[i].Bottom + rs[i].Above
	}
	b, first := k.Runs.Bottom(), k.firstAbove(lower, upper)
	if first != nil {
		// Do not rewrite a large file if all keys above are greater than its last key.
		at := b.Find(lower)
		if at < len(b.SSTs) && b.SSTs[at].Bytes >= fileBytes/2 && bytes.Compare(b.SSTs[at].Hi, first) < 0 && k.hidden(b.SSTs[at]) == 0 {
			lower = first
			total -= b.SSTs[at].Bytes
		}
	}
	files := max(1, (total+fileBytes-1)/fileBytes)
	return &Plan{
		Reason:    reason,
		Inputs:    k.Runs,
		Lower:     lower,
		Upper:     upper,
		Tier:      manifest.BottomTier,
		FileBytes: max(total/files, fileBytes/2),
		OneFile:   files > maxOutputFiles,
		EndAfter:  first, // so that it consumes something from above
	}
}

// firstAbove returns a lower bound, which may be below lower, of the keys above the bottom within
// [lower, upper), nil if there are none.
func (k *Picker) firstAbove(lower, upper []byte) (first []byte) {
	for _, r := range k.Runs.Tiers() {
		ssts := r.Within(lower, upper)
		if len(ssts) == 0 {
			continue
		}
		if lo := ssts[0].Lo; first == nil || bytes.Compare(lo, first) < 0 {
			first = lo
		}
	}
	return first
}

// Full plans the next file of a full compaction, from a key on. It leaves out the files of the
// bottom for which skip, FullyCompacted or WithoutGarbage, is true and that no tier overlaps. It
// returns nil if there is nothing else.
func (k *Picker) Full(from []byte, skip func(*runs.SST) bool) *Plan {
	var lower []byte
	found := false
	for _, r := range k.Runs {
		for _, s := range r.Within(from, nil) {
			if r.Tier == manifest.BottomTier && skip(s) {
				continue
			}
			lo := s.Lo
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
	for _, s := range k.Runs.Bottom().SSTs {
		if s.Overlaps(lower, bound.After(lower)) && bytes.Compare(s.Lo, from) >= 0 {
			lower = s.Lo
		}
	}
	return &Plan{
		Reason:    "full",
		Inputs:    k.Runs,
		Lower:     lower,
		Upper:     k.nextSkipped(lower, skip),
		Tier:      manifest.BottomTier,
		FileBytes: k.FileBytes.Share(k.Runs.Bytes(), k.FileBytes.Min()),
		OneFile:   true,
	}
}

// nextSkipped returns the start of the first file after lower that is large, for which
// skip is true, and that no tier overlaps, nil if there is none.
func (k *Picker) nextSkipped(lower []byte, skip func(*runs.SST) bool) []byte {
	for _, s := range k.Runs.Bottom().SSTs {
		if bytes.Compare(s.Lo, lower) > 0 && s.Bytes >= int64(k.FileBytes)/2 && !k.Runs.Tiers().Overlaps(s) && skip(s) {
			return s.Lo
		}
	}
	return nil
}

// FullyCompacted reports whether a compaction of a file of the bottom alone would
// change nothing.
func (k *Picker) FullyCompacted(s *runs.SST) bool { return s.Meta.MaxSeq == 0 && k.WithoutGarbage(s) }

// versions reports whether s has several versions of a key, which were kept for snapshots. A file
// that cannot be read has none: its compaction would fail.
func versions(s *runs.SST) bool {
	if s.Meta.MaxSeq == 0 {
		return false
	}
	r, err := s.Reader()
	return err == nil && r.Versions()
}

// WithoutGarbage reports whether a compaction of a file of the bottom alone would not
// make it smaller.
func (k *Picker) WithoutGarbage(s *runs.SST) bool {
	kept := s.Meta.Tombstones == 0 && !versions(s) || visibility.AllOpen(s.Snapshots, k.Snapshots)
	return kept && !s.Clipped && !k.compressible(s) && s.Tables.None(s.Lo, s.Hi, s.Reader, k.Dropped)
}
