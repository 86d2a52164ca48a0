package lsm

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/keyrange"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
)

// run is a list of virtual sstables, sorted by key, that do not overlap.
type run struct {
	tier   uint32
	number uint64
	ssts   []*virtualSST
}

// find returns the index of the first sstable that ends at key or after it.
func (r *run) find(key []byte) int {
	return sort.Search(len(r.ssts), func(i int) bool { return bytes.Compare(r.ssts[i].hi, key) >= 0 })
}

// within returns the sstables that may contain keys in [lower, upper).
func (r *run) within(lower, upper []byte) []*virtualSST {
	from := r.find(lower)
	to := from
	for to < len(r.ssts) && r.ssts[to].overlaps(lower, upper) {
		to++
	}
	return r.ssts[from:to]
}

func (r *run) bytes() (n int64) {
	for _, s := range r.ssts {
		n += s.bytes
	}
	return n
}

// bytes returns the size of all runs.
func (v *Version) bytes() int64 { return runsBytes(v.runs) }

func runsBytes(runs []*run) (n int64) {
	for _, r := range runs {
		n += r.bytes()
	}
	return n
}

// Version is an immutable list of runs. Its files remain on disk and open until its
// last reference is released by Unref.
type Version struct {
	tree *Tree
	runs []*run // newest first; the bottom, if there is one, is last
	// runsMax is the greatest number of runs that overlap at a key.
	runsMax int
	refs    atomic.Int64
}

// fileLimit returns the limit of the files of a new run with the given number of entries.
func (v *Version) fileLimit(entries int) keyrange.FileLimit {
	older := func(user []byte) (least []byte) {
		for _, r := range v.runs {
			if i := r.find(user); i < len(r.ssts) && (least == nil || bytes.Compare(r.ssts[i].lo, least) < 0) {
				least = r.ssts[i].lo
			}
		}
		return least
	}
	return keyrange.FileLimit{Entries: uint64(entries/filesPerRun + 1), Older: older}
}

// newVersion arranges ssts in runs. It does not add references to the files.
func newVersion(t *Tree, ssts []*virtualSST) (*Version, error) {
	ssts = slices.Clone(ssts)
	slices.SortFunc(ssts, func(a, b *virtualSST) int {
		return cmp.Or(cmp.Compare(a.meta.Tier, b.meta.Tier), cmp.Compare(b.meta.Run, a.meta.Run), bytes.Compare(a.lo, b.lo))
	})
	v := &Version{tree: t}
	for _, s := range ssts {
		n := len(v.runs)
		if n == 0 || v.runs[n-1].tier != s.meta.Tier || v.runs[n-1].number != s.meta.Run {
			if n > 0 && v.runs[n-1].tier == manifest.BottomTier {
				return nil, fmt.Errorf("two runs %d and %d at the bottom", v.runs[n-1].number, s.meta.Run)
			}
			v.runs = append(v.runs, &run{tier: s.meta.Tier, number: s.meta.Run})
			n++
		}
		r := v.runs[n-1]
		if k := len(r.ssts); k > 0 && bytes.Compare(r.ssts[k-1].hi, s.lo) >= 0 {
			return nil, fmt.Errorf("files %d and %d overlap in run %d of tier %d", r.ssts[k-1].number, s.number, r.number, r.tier)
		}
		r.ssts = append(r.ssts, s)
	}
	v.runsMax = maxOverlap(v.runs)
	return v, nil
}

// maxOverlap returns the greatest number of runs that overlap at a key.
func maxOverlap(runs []*run) int {
	var starts, ends [][]byte
	for _, r := range runs {
		for _, s := range r.ssts {
			starts, ends = append(starts, s.lo), append(ends, s.hi)
		}
	}
	return keyrange.OverlapDepth(starts, ends)
}

// refFiles adds the references of v to its files. v then has one reference.
func (v *Version) refFiles() {
	v.refs.Store(1)
	for _, s := range v.ssts() {
		s.refs.Add(1)
	}
}

// tryRef adds a reference unless v has none.
func (v *Version) tryRef() bool {
	for {
		n := v.refs.Load()
		if n == 0 {
			return false
		}
		if v.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Unref releases a reference. Close all sources and release all rows of v first. The
// last Unref of an old version removes the files that no other version lists.
func (v *Version) Unref() {
	n := v.refs.Add(-1)
	if n > 0 {
		return
	}
	if n < 0 {
		panic("lsm: Unref of a version without references")
	}
	var unused []*file
	for _, s := range v.ssts() {
		if s.refs.Add(-1) == 0 {
			unused = append(unused, s.file)
		}
	}
	v.tree.close(unused...)
	for _, f := range unused {
		if f.obsolete.Load() {
			v.tree.trash.Remove(f.number)
		}
	}
}

// Get finds the newest version of a user key with a sequence of at most snap, and sets row if it is a put. keyHash is
// codec.KeyHash(key). Release the row before Unref.
func (v *Version) Get(key []byte, keyHash, snap uint64, row *sstable.Row) (seq uint64, kind codec.Kind, ok bool, err error) {
	for _, r := range v.runs {
		i := r.find(key)
		if i == len(r.ssts) || r.ssts[i].meta.MinSeq > snap || bytes.Compare(key, r.ssts[i].lo) < 0 {
			continue
		}
		// Every run below is older at this key, so the first version found is the newest.
		sst, err := r.ssts[i].reader()
		if err != nil {
			return 0, 0, false, err
		}
		seq, kind, ok, err = sst.Get(key, keyHash, snap, row)
		if ok || err != nil {
			return seq, kind, ok, err
		}
	}
	return 0, 0, false, nil
}

// Candidate is a user key that a Version may contain.
type Candidate struct {
	Key   []byte
	Hash  uint64 // codec.KeyHash
	Maybe bool
}

// ProbeFilters sets Maybe of each candidate that the filters do not exclude. The keys must be in one partition. It probes one run for
// all keys before the next run, so that the loads of a filter's cache lines overlap.
func (v *Version) ProbeFilters(list []Candidate) {
	byKey := func(a, b Candidate) int { return bytes.Compare(a.Key, b.Key) }
	lo, hi := slices.MinFunc(list, byKey).Key, slices.MaxFunc(list, byKey).Key
	for _, r := range v.runs {
		at := r.find(lo)
		if at == len(r.ssts) || bytes.Compare(hi, r.ssts[at].lo) < 0 {
			continue
		}
		one := at == r.find(hi)
		for i := range list {
			if !one {
				at = r.find(list[i].Key)
			}
			if at < len(r.ssts) && r.ssts[at].mayContain(list[i].Hash) {
				list[i].Maybe = true
			}
		}
	}
}

// Sources returns sources for all sstables that may contain keys within the bounds, in memory of closed ones. Close them before Unref.
// Runs whose sstables do not overlap share a source: it passes from one sstable to the next, and the caller has less to merge.
func (v *Version) Sources(closed []*Source, o IterOptions) []*Source {
	sources := closed[:0]
	for _, r := range v.runs {
		ssts := r.within(o.Lower, o.Upper)
		if len(ssts) == 0 {
			continue
		}
		i := slices.IndexFunc(sources, func(s *Source) bool { return !overlapping(s.ssts, ssts) })
		if i < 0 {
			if i = len(sources); i < len(closed) {
				sources = closed[:i+1]
			} else {
				sources = append(sources, &Source{})
			}
			sources[i].ssts, sources[i].o = ssts, o
			continue
		}
		s := sources[i]
		s.ssts = append(slices.Clip(s.ssts), ssts...) // the list may be that of a run
		slices.SortFunc(s.ssts, func(a, b *virtualSST) int { return bytes.Compare(a.lo, b.lo) })
	}
	return sources
}

// overlapping reports whether an sstable of a overlaps one of b. Both are sorted.
func overlapping(a, b []*virtualSST) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case bytes.Compare(a[0].hi, b[0].lo) < 0:
			a = a[1:]
		case bytes.Compare(b[0].hi, a[0].lo) < 0:
			b = b[1:]
		default:
			return true
		}
	}
	return false
}

// overlapsAny reports whether one of the runs has an sstable that overlaps s.
func overlapsAny(runs []*run, s *virtualSST) bool {
	return slices.ContainsFunc(runs, func(r *run) bool {
		i := r.find(s.lo)
		return i < len(r.ssts) && bytes.Compare(r.ssts[i].lo, s.hi) <= 0
	})
}

// Backlog returns the greatest number of runs that overlap at a key, or a quarter of the
// runs above the bottom if that is more: runs that do not overlap cost open files, not reads.
func (v *Version) Backlog() int { return max(v.runsMax, len(v.tiers())/4) }

// Files returns the manifest's records of v, newest run first. A file that a
// compaction consumed in part may be listed more than once, with disjoint bounds.
func (v *Version) Files() (out []manifest.File) {
	v.Visit(nil, nil, func(f *manifest.File, _ func() (*sstable.Reader, error)) { out = append(out, *f) })
	return out
}

// Visit calls f with the Files that may have user keys in [lower, upper), nil is open.
func (v *Version) Visit(lower, upper []byte, f func(_ *manifest.File, open func() (*sstable.Reader, error))) {
	for _, r := range v.runs {
		for _, s := range r.within(lower, upper) {
			f(&s.meta, s.reader)
		}
	}
}

func (v *Version) ssts() (out []*virtualSST) {
	for _, r := range v.runs {
		out = append(out, r.ssts...)
	}
	return out
}

// from returns the runs of a tier and of the tiers below it.
func (v *Version) from(tier uint32) []*run {
	return v.runs[sort.Search(len(v.runs), func(i int) bool { return v.runs[i].tier >= tier }):]
}

// tier returns the runs of one tier, newest first.
func (v *Version) tier(n uint32) []*run {
	runs := v.from(n)
	return runs[:len(runs)-len(v.from(n+1))]
}

// tiers returns the runs above the bottom.
func (v *Version) tiers() []*run { return v.runs[:len(v.runs)-len(v.from(manifest.BottomTier))] }

// bottom returns the bottom run, an empty one if there is none.
func (v *Version) bottom() *run {
	if runs := v.from(manifest.BottomTier); len(runs) > 0 {
		return runs[0]
	}
	return &run{tier: manifest.BottomTier}
}
