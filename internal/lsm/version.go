package lsm

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/sstable"
)

// run is a list of parts, sorted by key, that do not overlap.
type run struct {
	tier   uint32
	number uint64
	parts  []*part
}

// find returns the index of the first part that ends at key or after it.
func (r *run) find(key []byte) int {
	return sort.Search(len(r.parts), func(i int) bool { return bytes.Compare(r.parts[i].hi, key) >= 0 })
}

// within returns the parts that hold keys in [lower, upper).
func (r *run) within(lower, upper []byte) []*part {
	from := r.find(lower)
	to := from
	for to < len(r.parts) && r.parts[to].overlaps(lower, upper) {
		to++
	}
	return r.parts[from:to]
}

func (r *run) bytes() (n int64) {
	for _, p := range r.parts {
		n += p.bytes
	}
	return n
}

// Version is an immutable list of runs. Its files stay on disk and open until
// its last holder calls Unref.
type Version struct {
	tree *Tree
	runs []*run // newest first; the bottom, if there is one, is last
	// runsMax is how many runs overlap at the worst key.
	runsMax int
	refs    atomic.Int64
}

// newVersion arranges parts in runs. It does not take hold of the files.
func newVersion(t *Tree, parts []*part) (*Version, error) {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b *part) int {
		return cmp.Or(cmp.Compare(a.meta.Tier, b.meta.Tier), cmp.Compare(b.meta.Run, a.meta.Run), bytes.Compare(a.lo, b.lo))
	})
	v := &Version{tree: t}
	for _, p := range parts {
		n := len(v.runs)
		if n == 0 || v.runs[n-1].tier != p.meta.Tier || v.runs[n-1].number != p.meta.Run {
			if n > 0 && v.runs[n-1].tier == manifest.BottomTier {
				return nil, fmt.Errorf("two runs %d and %d at the bottom", v.runs[n-1].number, p.meta.Run)
			}
			v.runs = append(v.runs, &run{tier: p.meta.Tier, number: p.meta.Run})
			n++
		}
		r := v.runs[n-1]
		if k := len(r.parts); k > 0 && bytes.Compare(r.parts[k-1].hi, p.lo) >= 0 {
			return nil, fmt.Errorf("files %d and %d overlap in run %d of tier %d", r.parts[k-1].number, p.number, r.number, r.tier)
		}
		r.parts = append(r.parts, p)
	}
	v.runsMax = maxOverlap(v.runs)
	return v, nil
}

// maxOverlap returns how many runs overlap at the worst key.
func maxOverlap(runs []*run) int {
	var starts, ends [][]byte
	for _, r := range runs {
		for _, p := range r.parts {
			starts, ends = append(starts, p.lo), append(ends, p.hi)
		}
	}
	return overlapDepth(starts, ends)
}

// hold takes hold of the files on behalf of v's holders, of which there is one.
func (v *Version) hold() {
	v.refs.Store(1)
	for _, p := range v.parts() {
		p.refs.Add(1)
	}
}

// tryRef adds a holder unless the last one is gone.
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

// Unref gives up one hold. Sources and rows taken from v must be closed and
// released before. The last Unref of an old version removes the files that
// nothing needs any more.
func (v *Version) Unref() {
	n := v.refs.Add(-1)
	if n > 0 {
		return
	}
	if n < 0 {
		panic("lsm: version given up twice")
	}
	for _, p := range v.parts() {
		if p.refs.Add(-1) == 0 {
			v.tree.retire(p.file)
		}
	}
}

// Get finds the newest version of a user key whose sequence is <= snap, and
// fills row if it is a put. keyHash is codec.KeyHash(key). The row must be
// released before Unref.
func (v *Version) Get(key []byte, keyHash, snap uint64, row *sstable.Row) (seq uint64, kind codec.Kind, ok bool, err error) {
	for _, r := range v.runs {
		i := r.find(key)
		if i == len(r.parts) || r.parts[i].meta.MinSeq > snap || bytes.Compare(key, r.parts[i].lo) < 0 {
			continue
		}
		// Every run below is older at this key: the first answer is the newest.
		seq, kind, ok, err = r.parts[i].reader.Get(key, keyHash, snap, row)
		if ok || err != nil {
			return seq, kind, ok, err
		}
	}
	return 0, 0, false, nil
}

// Candidate is a user key that a Version may hold an entry of.
type Candidate struct {
	Key   []byte
	Hash  uint64 // codec.KeyHash
	Maybe bool
}

// Sift sets Maybe of each in list, keys of one partition, that the filters do not
// rule out. A run is asked for all keys before the next, so that the processor
// waits for many places of a filter at once.
func (v *Version) Sift(list []Candidate) {
	byKey := func(a, b Candidate) int { return bytes.Compare(a.Key, b.Key) }
	lo, hi := slices.MinFunc(list, byKey).Key, slices.MaxFunc(list, byKey).Key
	for _, r := range v.runs {
		at := r.find(lo)
		if at == len(r.parts) || bytes.Compare(hi, r.parts[at].lo) < 0 {
			continue
		}
		one := at == r.find(hi)
		for i := range list {
			if !one {
				at = r.find(list[i].Key)
			}
			if at < len(r.parts) && r.parts[at].reader.MayContain(list[i].Hash) {
				list[i].Maybe = true
			}
		}
	}
}

// AppendSources appends one source for every run that holds keys within the
// bounds, newest first. They must be closed before Unref. o.Prune is heeded where
// it cannot uncover an older version: in files that lie above no other.
func (v *Version) AppendSources(dst []merge.Source, o IterOptions) []merge.Source {
	for i, r := range v.runs {
		if parts := r.within(o.Lower, o.Upper); len(parts) > 0 {
			dst = append(dst, &runSource{parts: parts, older: v.runs[i+1:], o: o})
		}
	}
	return dst
}

// overlapsAny reports whether one of the runs has a part that overlaps p.
func overlapsAny(runs []*run, p *part) bool {
	return slices.ContainsFunc(runs, func(r *run) bool {
		i := r.find(p.lo)
		return i < len(r.parts) && bytes.Compare(r.parts[i].lo, p.hi) <= 0
	})
}

// RunsMax returns how many runs overlap at the worst key.
func (v *Version) RunsMax() int { return v.runsMax }

// Files returns the manifest's records of v, newest run first. A file of which
// a range was merged away may be listed more than once, with disjoint bounds.
func (v *Version) Files() []manifest.File {
	var out []manifest.File
	for _, p := range v.parts() {
		out = append(out, p.meta)
	}
	return out
}

func (v *Version) parts() []*part {
	var out []*part
	for _, r := range v.runs {
		out = append(out, r.parts...)
	}
	return out
}

// from returns the runs of a tier and of those below.
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
