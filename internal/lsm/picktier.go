package lsm

import (
	"cmp"
	"slices"
	"sort"
)

const (
	// A tier with overfullRuns more runs than Options.TierRuns is compacted before
	// all compactions into the bottom, so that flushes do not have to wait.
	overfullRuns = 2
	// maxTierRuns is the number of runs above the bottom that may overlap before a
	// tier that is not full is compacted. With the bottom, and with the flushes that
	// arrive during the compaction, a key is in at most 20 runs, or 32 beside a full one.
	maxTierRuns = 14
	// maxUpperRuns is how many runs may be above the bottom, whether they overlap or not,
	// before a tier that is not full is compacted: less than the Backlog at which writers wait.
	maxUpperRuns = 64
)

// tierCompaction is an incremental compaction of the older runs of a tier into one
// run of the next tier. It proceeds from the least key of the inputs on.
type tierCompaction struct {
	tier   uint32
	newest uint64 // the newest input run
	run    uint64 // the output, newer than any run that the next tier had
	// fileBytes is the target size of the output files.
	fileBytes int64
}

// forgetFinished removes the tier compactions whose inputs are consumed.
func (k *picker) forgetFinished() {
	k.policy.tierCompactions = slices.DeleteFunc(k.policy.tierCompactions, func(c tierCompaction) bool { return len(k.inputsOf(c)) == 0 })
}

func (k *picker) inputsOf(c tierCompaction) []*run {
	runs := k.v.tier(c.tier)
	return runs[sort.Search(len(runs), func(i int) bool { return runs[i].number <= c.newest }):]
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

// overfullTier compacts a tier if one has too many runs.
func (k *picker) overfullTier() *plan {
	for _, n := range k.tierRuns() {
		if n >= k.o.TierRuns+overfullRuns {
			return k.fullTier()
		}
	}
	return nil
}

// fullTier continues a tier compaction, or starts one of a full tier. It picks the uppermost tier: while a tier compaction still adds
// to its output run, that run must not be an input of another tier compaction.
func (k *picker) fullTier() *plan {
	for tier, n := range k.tierRuns() {
		for _, c := range k.policy.tierCompactions {
			if c.tier == uint32(tier) {
				return k.continueTierCompaction(c)
			}
		}
		if n >= k.o.TierRuns {
			return k.startTierCompaction(uint32(tier))
		}
	}
	return nil
}

// fullestTier compacts the tier with the most runs if too many runs exist or overlap. If no tier has two, that is the
// uppermost one: its run gets to the next tier, whose run it is compacted with.
func (k *picker) fullestTier() *plan {
	if len(k.v.tiers()) <= maxUpperRuns && (k.v.runsMax <= maxTierRuns || maxOverlap(k.v.tiers()) <= maxTierRuns) {
		return nil
	}
	counts := k.tierRuns()
	return k.startTierCompaction(uint32(slices.Index(counts, slices.Max(counts))))
}

// tierSince compacts a tier if many runs were written since the number since. Without it, the runs of flushes would
// collect in the keys that a full compaction has passed, and writers would wait for its end.
func (k *picker) tierSince(since uint64) *plan {
	n := 0
	for _, r := range k.v.tiers() {
		if r.number > since {
			n++
		}
	}
	if n < k.o.TierRuns {
		return nil
	}
	k.forgetFinished()
	if p := k.fullTier(); p != nil {
		return p // the other one would start a compaction too
	}
	return k.fullestTier()
}

func (k *picker) startTierCompaction(tier uint32) *plan {
	c := tierCompaction{tier: tier, newest: k.v.tier(tier)[0].number, run: k.newRun()}
	c.fileBytes = k.o.shareBytes(runsBytes(k.v.tier(tier)), k.o.minShareBytes())
	k.policy.tierCompactions = append(k.policy.tierCompactions, c)
	slices.SortFunc(k.policy.tierCompactions, func(a, b tierCompaction) int { return cmp.Compare(a.tier, b.tier) })
	return k.continueTierCompaction(c)
}

// continueTierCompaction plans the next file.
func (k *picker) continueTierCompaction(c tierCompaction) *plan {
	inputs := k.inputsOf(c)
	if len(inputs) == 1 {
		// The keys of the last input are greater than all keys of the output.
		p := &plan{reason: "tier", remove: inputs[0].ssts}
		for _, s := range inputs[0].ssts {
			p.add = append(p.add, s.moved(c.tier+1, c.run))
		}
		return p
	}
	return &plan{
		reason:    "tier",
		inputs:    inputs,
		older:     k.v.from(c.tier + 1),
		tier:      c.tier + 1,
		run:       c.run,
		fileBytes: c.fileBytes,
		oneFile:   true,
	}
}
