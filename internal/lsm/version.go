package lsm

import (
	"bytes"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/pick"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/runs"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
)

// Version is an immutable list of runs. Its files remain on disk and open until its
// last reference is released by Unref.
type Version struct {
	tree *Tree
	runs runs.List
	// overlap is the greatest number of runs that overlap at a key.
	overlap int
	// mergeCost is pick.MergeCost(runs).
	mergeCost int64
	maxSeq    uint64
	refs      atomic.Int64
}

// newVersion arranges ssts in runs. It does not add references to the files.
func newVersion(t *Tree, ssts []*runs.SST) (*Version, error) {
	list, err := runs.New(ssts)
	if err != nil {
		return nil, err
	}
	v := &Version{tree: t, runs: list, overlap: list.Overlap(), mergeCost: pick.MergeCost(list)}
	for _, s := range ssts {
		v.maxSeq = max(v.maxSeq, s.Meta.MaxSeq)
	}
	return v, nil
}

// MaxSeq returns the greatest sequence number of an entry, 0 if compactions have found that no
// reader needs them.
func (v *Version) MaxSeq() uint64 { return v.maxSeq }

// refFiles adds the references of v to its files. v then has one reference.
func (v *Version) refFiles() {
	v.refs.Store(1)
	v.runs.Ref()
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

// Ref adds a reference to v, which the caller has one of.
func (v *Version) Ref() { v.refs.Add(1) }

// Unref releases a reference. Close all sources and release all rows of v first. The
// last Unref of an old version removes the files that no other version lists, unless the tree is closed.
func (v *Version) Unref() {
	n := v.refs.Add(-1)
	if n > 0 {
		return
	}
	if n < 0 {
		panic("lsm: Unref of a version without references")
	}
	unused := v.runs.Unref()
	v.tree.close(unused...)
	for _, f := range unused {
		if f.Obsolete() {
			v.tree.trash.Remove(f.Number)
		}
	}
}

// Get finds the newest version of a user key with a sequence of at most snap, and sets row if it is
// a put. keyHash is codec.KeyHash(key). Release the row before Unref.
func (v *Version) Get(key []byte, keyHash, snap uint64, row *sstable.Row) (seq uint64, kind codec.Kind, ok bool, err error) {
	for _, r := range v.runs {
		i := r.Find(key)
		if i == len(r.SSTs) || r.SSTs[i].Meta.MinSeq > snap || bytes.Compare(key, r.SSTs[i].Lo) < 0 {
			continue
		}
		// Every run below is older at this key, so the first version found is the newest.
		sst, err := r.SSTs[i].Reader()
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

// ProbeFilters sets Maybe of each candidate that the filters do not exclude. The keys must be in
// one partition. It probes one run for all keys before the next run, so that the loads of a
// filter's cache lines overlap.
func (v *Version) ProbeFilters(list []Candidate) {
	byKey := func(a, b Candidate) int { return bytes.Compare(a.Key, b.Key) }
	lo, hi := slices.MinFunc(list, byKey).Key, slices.MaxFunc(list, byKey).Key
	for _, r := range v.runs {
		at := r.Find(lo)
		if at == len(r.SSTs) || bytes.Compare(hi, r.SSTs[at].Lo) < 0 {
			continue
		}
		one := at == r.Find(hi)
		for i := range list {
			if !one {
				at = r.Find(list[i].Key)
			}
			if at < len(r.SSTs) && r.SSTs[at].MayContain(list[i].Hash) {
				list[i].Maybe = true
			}
		}
	}
}

// Sources returns sources for all sstables that may contain keys within the bounds, in memory of
// closed ones. Close them before Unref. Runs whose sstables do not overlap share a source: it
// passes from one sstable to the next, and the caller has less to merge.
func (v *Version) Sources(closed []*Source, o sstable.IterOptions) []*Source {
	sources := closed[:0]
	for _, r := range v.runs {
		ssts := r.Within(o.Lower, o.Upper)
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
		sorted := bytes.Compare(s.ssts[len(s.ssts)-1].Lo, ssts[0].Lo) < 0
		s.ssts = append(slices.Clip(s.ssts), ssts...) // the list may be that of a run
		if !sorted {
			slices.SortFunc(s.ssts, func(a, b *runs.SST) int { return bytes.Compare(a.Lo, b.Lo) })
		}
	}
	return sources
}

// overlapping reports whether an sstable of a overlaps one of b. Both are sorted, and those of one do
// not overlap.
func overlapping(a, b []*runs.SST) bool {
	for len(a) > 0 && len(b) > 0 {
		if bytes.Compare(a[0].Lo, b[0].Lo) > 0 {
			a, b = b, a
		}
		if bytes.Compare(a[0].Hi, b[0].Lo) >= 0 {
			return true
		}
		a = a[sort.Search(len(a), func(i int) bool { return bytes.Compare(a[i].Hi, b[0].Lo) >= 0 }):]
	}
	return false
}

// Backlog returns the greatest number of runs that overlap at a key, or a quarter of the
// runs above the bottom if that is more: runs that do not overlap cost open files, not reads.
func (v *Version) Backlog() int { return v.runs.Backlog(v.overlap) }

// Files returns the manifest's records of v, newest run first. A file that a
// compaction consumed in part may be listed more than once, with disjoint bounds.
func (v *Version) Files() (out []manifest.File) {
	v.Visit(nil, nil, func(f *manifest.File, _ func() (*sstable.Reader, error)) { out = append(out, *f) })
	return out
}

// Visit calls f with the Files that may have user keys in [lower, upper), nil is open.
func (v *Version) Visit(lower, upper []byte, f func(_ *manifest.File, open func() (*sstable.Reader, error))) {
	for _, r := range v.runs {
		for _, s := range r.Within(lower, upper) {
			f(&s.Meta, s.Reader)
		}
	}
}
