package lsm

import (
	"cmp"
	"slices"
)

// Counters add up what jobs have done since Open.
type Counters struct {
	Flushes uint64
	Merges  uint64 // that read and wrote
	Edits   uint64 // that only changed the manifest
	// FlushedBytes is what flushes wrote; MergedBytes is what merges wrote, of
	// ReadBytes, an estimate.
	FlushedBytes, MergedBytes, ReadBytes int64
	// FlushedFiles is how many files flushes wrote; MergedFiles is how many
	// merges wrote, of ReadFiles.
	FlushedFiles, MergedFiles, ReadFiles uint64
	// EntriesIn of flushes and merges is EntriesOut and what was dropped.
	EntriesIn, EntriesOut uint64
	Shadowed              uint64 // hidden by a newer version
	Graves                uint64 // tombstones that hid nothing
	DroppedRows           uint64 // rows of dropped tables
	DroppedFiles          uint64 // files of dropped tables, removed unread
	MovedFiles            uint64 // to the bottom, unread
}

// TierStats describes the runs of a tier.
type TierStats struct {
	Tier    uint32 // manifest.BottomTier for the bottom
	Runs    int
	Files   int
	Bytes   int64 // without what merges have taken away
	Entries uint64
	// Tombstones, like Entries, counts whole files.
	Tombstones uint64
}

// Stats describes a Tree.
type Stats struct {
	Tiers []TierStats // newest first
	// Files and Bytes are those on disk that the manifest lists.
	Files      int
	Bytes      int64
	Entries    uint64
	Tombstones uint64
	// RunsMax is how many runs overlap at the worst key.
	RunsMax int
	// LiveBytes estimates the size of the rows that readers of the present see:
	// that of the largest run, and of those that overlap no larger one. SpaceAmp
	// is Bytes over LiveBytes, 1 for an empty tree.
	LiveBytes int64
	SpaceAmp  float64
	Counters  Counters
}

// Stats describes the current version.
func (t *Tree) Stats() Stats {
	v := t.Version()
	defer v.Unref()
	s := v.Stats()
	s.Counters = t.Counters()
	return s
}

// Counters returns what jobs have done since Open. It does not wait for a change
// under way.
func (t *Tree) Counters() Counters {
	t.countersMu.Lock()
	defer t.countersMu.Unlock()
	return t.counters
}

// Stats describes the version; Counters are the Tree's alone. It may be called
// after Tree.Close.
func (v *Version) Stats() Stats {
	s := Stats{RunsMax: v.runsMax, SpaceAmp: 1}
	seen := make(map[*file]bool)
	for _, r := range v.runs {
		n := len(s.Tiers)
		if n == 0 || s.Tiers[n-1].Tier != r.tier {
			s.Tiers = append(s.Tiers, TierStats{Tier: r.tier})
			n++
		}
		ts := &s.Tiers[n-1]
		ts.Runs++
		ts.Bytes += r.bytes()
		for _, p := range r.parts {
			if seen[p.file] {
				continue
			}
			seen[p.file] = true
			ts.Files++
			ts.Entries += p.meta.Entries
			ts.Tombstones += p.meta.Tombstones
			s.Files++
			s.Bytes += p.size
			s.Entries += p.meta.Entries
			s.Tombstones += p.meta.Tombstones
		}
	}
	if s.LiveBytes = v.liveBytes(); s.LiveBytes > 0 {
		s.SpaceAmp = float64(s.Bytes) / float64(s.LiveBytes)
	}
	return s
}

// liveBytes takes the largest runs that overlap no larger one as what is live,
// or more if entries above the bottom are known to hide nothing.
func (v *Version) liveBytes() (live int64) {
	known := v.bottom().bytes()
	for _, r := range v.tiers() {
		for _, p := range r.parts {
			known += p.bytes - p.garbage(p.bytes)
		}
	}
	runs := slices.Clone(v.runs)
	slices.SortStableFunc(runs, func(a, b *run) int { return cmp.Compare(b.bytes(), a.bytes()) })
	var apart []*run
	for _, r := range runs {
		if !slices.ContainsFunc(apart, r.overlaps) {
			apart = append(apart, r)
			live += r.bytes()
		}
	}
	return max(live, known)
}

// overlaps reports whether r and o can hold the same key.
func (r *run) overlaps(o *run) bool {
	for _, p := range r.parts {
		if len(o.within(p.lo, after(p.hi))) > 0 {
			return true
		}
	}
	return false
}

// count adds a finished job to the counters.
func (w *rewrite) count() {
	w.t.countersMu.Lock()
	defer w.t.countersMu.Unlock()
	c := &w.t.counters
	switch {
	case w.flush:
		c.Flushes++
		c.FlushedBytes += w.out.bytes
		c.FlushedFiles += uint64(len(w.out.done))
	case len(w.plan.inputs) > 0:
		c.Merges++
		c.MergedBytes += w.out.bytes
		c.MergedFiles += uint64(len(w.out.done))
		c.ReadBytes += w.before
		c.ReadFiles += uint64(len(w.taken))
	default:
		c.Edits++
		c.MovedFiles += uint64(len(w.plan.add))
		c.DroppedFiles += uint64(len(w.plan.remove) - len(w.plan.add))
	}
	c.EntriesIn += w.in.entries
	c.EntriesOut += w.decided[keepEntry].entries + w.decided[keepZeroSeq].entries
	c.Shadowed += w.decided[dropShadowed].entries
	c.Graves += w.decided[dropTombstone].entries
	c.DroppedRows += w.decided[dropTable].entries
}
