package lsm

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/tablerock-db/tablerock/internal/manifest"
)

const (
	// A tier with this many runs more than Options.TierRuns goes before
	// everything that reads: flushes must not be held up.
	urgentRuns = 2
	// maxTierRuns is how many runs above the bottom may overlap before tiers
	// that are not full are merged too. With the bottom, and the flushes that
	// arrive meanwhile, a key stays within 20 runs.
	maxTierRuns = 14
	// gravePercent of tombstones make a file worth merging by itself.
	gravePercent = 30
	// graveReach is how many entries of the bottom a tombstone is worth
	// rewriting for.
	graveReach = 4
)

// policy is what the choice of compactions remembers from one to the next. It
// is lost at Close, at the price of some work done twice.
type policy struct {
	// sweeps are the merges of whole tiers under way, by rising tier.
	sweeps []sweep
	// cursor is where the last merge into the bottom ended.
	cursor []byte
}

// sweep is a merge of the older runs of a tier into one run of the next. It is
// done range by range, from the least key of the inputs on.
type sweep struct {
	tier uint32
	upto uint64 // the newest of the input runs
	run  uint64 // the output, newer than any run that the next tier had
}

// picker chooses one compaction of a version.
type picker struct {
	o         *Options
	v         *Version
	snapshots []uint64
	policy    *policy
	newRun    func() uint64
}

func (t *Tree) picker(v *Version, snapshots []uint64) *picker {
	return &picker{o: &t.o, v: v, snapshots: snapshots, policy: &t.policy, newRun: t.NewNumber}
}

// pick returns what is most useful, nil for nothing.
func (k *picker) pick() *plan {
	k.forgetSweeps()
	for _, rule := range []func() *plan{k.droppedFiles, k.moves, k.urgentTier, k.graves, k.heavyRange, k.fullTier, k.crowd} {
		if p := rule(); p != nil {
			return p
		}
	}
	return nil
}

// droppedFiles drops files that hold nothing but dropped tables.
func (k *picker) droppedFiles() *plan {
	var out []*part
	for _, p := range k.v.parts() {
		if allTables(p, k.o.Dropped) {
			out = append(out, p)
		}
	}
	if out == nil {
		return nil
	}
	return &plan{reason: "dropped tables", remove: out}
}

// moves lets files with nothing below them become files of the bottom.
func (k *picker) moves() *plan {
	p := &plan{reason: "move"}
	for i, r := range k.v.tiers() {
		for _, f := range r.parts {
			// Small files would crumble the bottom; tombstones would stay there,
			// and so would what was clipped from a file, whose parts share a run.
			if f.bytes < k.o.pieceBytes() || f.clipped || isGraves(f) || overlapsAny(k.v.runs[i+1:], f) {
				continue
			}
			p.remove = append(p.remove, f)
			p.add = append(p.add, f.moved(manifest.BottomTier, 0))
		}
	}
	if p.add == nil {
		return nil
	}
	return p
}

func isGraves(p *part) bool { return p.meta.Tombstones*100 > p.meta.Entries*gravePercent }

// graves merges a file of many tombstones down, if no snapshot keeps them and
// what they hide is not too spread out.
func (k *picker) graves() *plan {
	for _, p := range k.v.parts() {
		if !isGraves(p) || len(k.snapshots) > 0 && k.snapshots[0] < p.meta.MaxSeq {
			continue
		}
		entries := uint64(0)
		for _, b := range k.v.bottom().within(p.lo, after(p.hi)) {
			entries += b.meta.Entries
		}
		if p.meta.Tombstones*graveReach < entries {
			continue
		}
		ranges := k.ranges()
		i := ranges.find(p.lo)
		return k.mergeDown("tombstones", ranges, i, i+1)
	}
	return nil
}

// forgetSweeps drops the sweeps whose inputs are gone.
func (k *picker) forgetSweeps() {
	k.policy.sweeps = slices.DeleteFunc(k.policy.sweeps, func(s sweep) bool { return len(k.inputsOf(s)) == 0 })
}

func (k *picker) inputsOf(s sweep) []*run {
	runs := k.v.tier(s.tier)
	return runs[sort.Search(len(runs), func(i int) bool { return runs[i].number <= s.upto }):]
}

// urgentTier merges a tier if one has far too many runs.
func (k *picker) urgentTier() *plan {
	for _, n := range k.tierRuns() {
		if n >= k.o.TierRuns+urgentRuns {
			return k.fullTier()
		}
	}
	return nil
}

// tierRuns returns the number of runs of each tier above the bottom.
func (k *picker) tierRuns() []int {
	var counts []int
	for _, r := range k.v.tiers() {
		for int(r.tier) >= len(counts) {
			counts = append(counts, 0)
		}
		counts[r.tier]++
	}
	return counts
}

// fullTier goes on with a sweep, or begins one of a full tier. It takes the upper
// tier first: a tier must not be swept while the one above it still adds to a run
// that would be among the inputs.
func (k *picker) fullTier() *plan {
	for tier, n := range k.tierRuns() {
		for _, s := range k.policy.sweeps {
			if s.tier == uint32(tier) {
				return k.sweep(s)
			}
		}
		if n >= k.o.TierRuns {
			return k.beginSweep(uint32(tier))
		}
	}
	return nil
}

// crowd merges the fullest tier when too many runs overlap.
func (k *picker) crowd() *plan {
	if k.v.runsMax <= maxTierRuns || maxOverlap(k.v.tiers()) <= maxTierRuns {
		return nil
	}
	counts := k.tierRuns()
	most := slices.Max(counts)
	if most < 2 {
		return nil
	}
	return k.beginSweep(uint32(slices.Index(counts, most)))
}

func (k *picker) beginSweep(tier uint32) *plan {
	s := sweep{tier: tier, upto: k.v.tier(tier)[0].number, run: k.newRun()}
	k.policy.sweeps = append(k.policy.sweeps, s)
	slices.SortFunc(k.policy.sweeps, func(a, b sweep) int { return cmp.Compare(a.tier, b.tier) })
	return k.sweep(s)
}

// sweep merges the next file's worth of a sweep.
func (k *picker) sweep(s sweep) *plan {
	inputs := k.inputsOf(s)
	if len(inputs) == 1 {
		// What is left of the last input lies above everything that the sweep
		// has written.
		p := &plan{reason: "sweep", remove: inputs[0].parts}
		for _, f := range inputs[0].parts {
			p.add = append(p.add, f.moved(s.tier+1, s.run))
		}
		return p
	}
	return &plan{
		reason:    "sweep",
		inputs:    inputs,
		older:     k.v.from(s.tier + 1),
		tier:      s.tier + 1,
		run:       s.run,
		fileBytes: k.o.FileBytes,
		oneFile:   true,
	}
}

// full plans the next file of a full compaction, from a key on. What is at the
// bottom, and holds nothing that could be dropped, is left alone.
func (k *picker) full(from []byte) *plan {
	var lower []byte
	found := false
	for _, r := range k.v.runs {
		for _, p := range r.within(from, nil) {
			if r.tier == manifest.BottomTier && k.settled(p) {
				continue
			}
			lo := p.lo
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
	// A file of the bottom that begins before is merged as a whole, unless what
	// was written a moment ago is its beginning.
	for _, p := range k.v.bottom().parts {
		if p.overlaps(lower, after(lower)) && bytes.Compare(p.lo, from) >= 0 {
			lower = p.lo
		}
	}
	return &plan{
		reason:    "full",
		inputs:    k.v.runs,
		lower:     lower,
		upper:     k.endOfDisorder(lower),
		tier:      manifest.BottomTier,
		fileBytes: k.o.FileBytes,
		oneFile:   true,
	}
}

// endOfDisorder returns the first key after lower where a settled file of the
// bottom begins that nothing overlaps, nil if there is none.
func (k *picker) endOfDisorder(lower []byte) []byte {
	for _, p := range k.v.bottom().parts {
		if bytes.Compare(p.lo, lower) > 0 && k.settled(p) && p.bytes >= k.o.FileBytes/2 && !overlapsAny(k.v.tiers(), p) {
			return p.lo
		}
	}
	return nil
}

// settled reports whether merging a file of the bottom alone changes nothing.
func (k *picker) settled(p *part) bool {
	if p.clipped || p.meta.MaxSeq > 0 || p.meta.Tombstones > 0 {
		return false
	}
	return allTables(p, func(id uint32) bool { return !k.o.Dropped(id) })
}

// allTables reports whether f holds for every table that p can have rows of. A
// part of very many tables is not looked at, and left to the merges.
func allTables(p *part, f func(id uint32) bool) bool {
	const maxTables = 256
	from := binary.BigEndian.Uint32(p.lo)
	n := binary.BigEndian.Uint32(p.hi) - from
	if n >= maxTables {
		return false
	}
	for i := range n + 1 {
		if !f(from + i) {
			return false
		}
	}
	return true
}
