// Package runs arranges the sstables of a database in runs and tiers: open files, the virtual
// sstables that list them or ranges of them, runs of virtual sstables, and lists of runs. Package
// lsm describes runs and tiers.
//
// An SST, a Run and a List do not change once they are made, so any number of goroutines may use
// them, and lists share them. A File reads its index at the first use.
//
// A File belongs to its opener until a List with a reference has it. Ref and Unref count these
// lists. The caller of the Unref that releases the last reference to a file closes it, and removes
// it from the disk if it is obsolete.
package runs

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/tablerock-db/tablerock/internal/lsm/internal/keyrange"
	"github.com/tablerock-db/tablerock/internal/manifest"
)

// Run is a list of virtual sstables, sorted by key, that do not overlap.
type Run struct {
	Tier   uint32
	Number uint64
	SSTs   []*SST
}

// Find returns the index of the first sstable that ends at key or after it.
func (r *Run) Find(key []byte) int {
	return sort.Search(len(r.SSTs), func(i int) bool { return bytes.Compare(r.SSTs[i].Hi, key) >= 0 })
}

// Within returns the sstables that may contain keys in [lower, upper).
func (r *Run) Within(lower, upper []byte) []*SST {
	from, to := r.Find(lower), len(r.SSTs)
	if upper != nil {
		to = from + sort.Search(to-from, func(i int) bool { return bytes.Compare(r.SSTs[from+i].Lo, upper) >= 0 })
	}
	return r.SSTs[from:to]
}

// Bytes returns the size of the sstables.
func (r *Run) Bytes() (n int64) {
	for _, s := range r.SSTs {
		n += s.Bytes
	}
	return n
}

// List is a list of runs, newest first. The bottom, if there is one, is last.
type List []*Run

// New arranges ssts in runs. It does not add references to the files. It returns an error if
// sstables of a run overlap, or if there are two runs at the bottom.
func New(ssts []*SST) (List, error) {
	ssts = slices.Clone(ssts)
	slices.SortFunc(ssts, func(a, b *SST) int {
		return cmp.Or(cmp.Compare(a.Meta.Tier, b.Meta.Tier), cmp.Compare(b.Meta.Run, a.Meta.Run), bytes.Compare(a.Lo, b.Lo))
	})
	var l List
	for _, s := range ssts {
		n := len(l)
		if n == 0 || l[n-1].Tier != s.Meta.Tier || l[n-1].Number != s.Meta.Run {
			if n > 0 && l[n-1].Tier == manifest.BottomTier {
				return nil, fmt.Errorf("two runs %d and %d at the bottom", l[n-1].Number, s.Meta.Run)
			}
			l = append(l, &Run{Tier: s.Meta.Tier, Number: s.Meta.Run})
			n++
		}
		r := l[n-1]
		if k := len(r.SSTs); k > 0 && bytes.Compare(r.SSTs[k-1].Hi, s.Lo) >= 0 {
			return nil, fmt.Errorf("files %d and %d overlap in run %d of tier %d", r.SSTs[k-1].Number, s.Number, r.Number, r.Tier)
		}
		r.SSTs = append(r.SSTs, s)
	}
	return l, nil
}

// SSTs returns the sstables of all runs.
func (l List) SSTs() (out []*SST) {
	for _, r := range l {
		out = append(out, r.SSTs...)
	}
	return out
}

// From returns the runs of a tier and of the tiers below it.
func (l List) From(tier uint32) List {
	return l[sort.Search(len(l), func(i int) bool { return l[i].Tier >= tier }):]
}

// FromRun returns the run of this tier and number, if it is there, and the older runs.
func (l List) FromRun(tier uint32, number uint64) List {
	return l[sort.Search(len(l), func(i int) bool { return l[i].Tier > tier || l[i].Tier == tier && l[i].Number <= number }):]
}

// Tier returns the runs of one tier, newest first.
func (l List) Tier(n uint32) List {
	runs := l.From(n)
	return runs[:len(runs)-len(l.From(n+1))]
}

// Tiers returns the runs above the bottom.
func (l List) Tiers() List { return l[:len(l)-len(l.From(manifest.BottomTier))] }

// Bottom returns the bottom run, an empty one if there is none.
func (l List) Bottom() *Run {
	if runs := l.From(manifest.BottomTier); len(runs) > 0 {
		return runs[0]
	}
	return &Run{Tier: manifest.BottomTier}
}

// Overlap returns the greatest number of runs that overlap at a key.
func (l List) Overlap() int {
	var starts, ends [][]byte
	for _, r := range l {
		for _, s := range r.SSTs {
			starts, ends = append(starts, s.Lo), append(ends, s.Hi)
		}
	}
	return keyrange.OverlapDepth(starts, ends)
}

// Backlog returns the greatest number of runs that overlap at a key, or a quarter of the runs above
// the bottom if that is more: runs that do not overlap cost open files, not reads. overlap is
// l.Overlap(), which the caller computes once.
func (l List) Backlog(overlap int) int { return max(overlap, len(l.Tiers())/4) }

// Overlaps reports whether one of the runs has an sstable that overlaps s.
func (l List) Overlaps(s *SST) bool {
	return slices.ContainsFunc(l, func(r *Run) bool {
		i := r.Find(s.Lo)
		return i < len(r.SSTs) && bytes.Compare(r.SSTs[i].Lo, s.Hi) <= 0
	})
}
