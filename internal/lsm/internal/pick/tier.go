package pick

import (
	"slices"
	"sort"

	"github.com/tablerock-db/tablerock/internal/lsm/internal/runs"
)

const (
	// A tier with overfullRuns more runs than Picker.TierRuns is compacted before
	// all compactions into the bottom, so that flushes do not have to wait, if the
	// backlog is more than MaxTierRuns. Below, what a tier compaction writes would often
	// be written again into the bottom: without this limit, three overwrites of
	// a table write 14 % more bytes (bench, overwrite/passes=3/until=merged).
	overfullRuns = 2
	// MaxTierRuns is the number of runs above the bottom that may overlap before a
	// tier that is not full is compacted. With the bottom, and with the flushes that
	// arrive during the compaction, a key is in at most 20 runs, or 32 beside a full one.
	MaxTierRuns = 14
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
func (k *Picker) forgetFinished() {
	k.Policy.tierCompactions = slices.DeleteFunc(k.Policy.tierCompactions, func(c tierCompaction) bool { return len(k.inputsOf(c)) == 0 })
}

func (k *Picker) inputsOf(c tierCompaction) runs.List {
	all := k.Runs.Tier(c.tier)
	return all[sort.Search(len(all), func(i int) bool { return all[i].Number <= c.newest }):]
}

// tierRuns returns the number of runs of each tier above the bottom.
func tierRuns(l runs.List) []int {
	var counts []int
	for _, r := range l.Tiers() {
		for int(r.Tier) >= len(counts) {
			counts = append(counts, 0)
		}
		counts[r.Tier]++
	}
	return counts
}

// overfullTier compacts a tier if one has too many runs and writers may soon wait.
func (k *Picker) overfullTier() *Plan {
	if k.Runs.Backlog(k.Overlap) <= MaxTierRuns {
		return nil
	}
	for _, n := range tierRuns(k.Runs) {
		if n >= k.TierRuns+overfullRuns {
			return k.fullTier()
		}
	}
	return nil
}

// fullTier continues a tier compaction, or starts one of a full tier. It picks the uppermost tier:
// while a tier compaction still adds to its output run, that run must not be an input of another
// tier compaction.
func (k *Picker) fullTier() *Plan {
	for tier, n := range tierRuns(k.Runs) {
		for _, c := range k.Policy.tierCompactions {
			if c.tier == uint32(tier) {
				return k.continueTierCompaction(c)
			}
		}
		if n >= k.TierRuns {
			return k.startTierCompaction(uint32(tier))
		}
	}
	return nil
}

// fullestTier compacts the tier with the most runs if too many runs exist or overlap. If no tier
// has two, that is the uppermost one: its run gets to the next tier, whose run it is compacted
// with.
func (k *Picker) fullestTier() *Plan {
	if len(k.Runs.Tiers()) <= maxUpperRuns && (k.Overlap <= MaxTierRuns || k.Runs.Tiers().Overlap() <= MaxTierRuns) {
		return nil
	}
	return k.startTierCompaction(fullest(k.Runs))
}

// fullest returns the tier with the most runs, of several the uppermost one. There must be one.
func fullest(l runs.List) uint32 {
	counts := tierRuns(l)
	return uint32(slices.Index(counts, slices.Max(counts)))
}

// Debt returns how many bytes compactions have to read before fewer runs overlap: those of the
// tier that fullTier or fullestTier compacts, 0 if there is none.
func (k *Picker) Debt() int64 {
	tier := slices.IndexFunc(tierRuns(k.Runs), func(n int) bool { return n >= k.TierRuns })
	if tier < 0 && k.Overlap > MaxTierRuns {
		tier = int(fullest(k.Runs))
	}
	if tier < 0 {
		return 0
	}
	return k.Runs.Tier(uint32(tier)).Bytes()
}

// TierSince compacts a tier if many runs were written since the number since. It returns nil if
// that is not so. Without it, the runs of flushes would collect in the keys that a full compaction
// has passed, and writers would wait for its end.
func (k *Picker) TierSince(since uint64) *Plan {
	n := 0
	for _, r := range k.Runs.Tiers() {
		if r.Number > since {
			n++
		}
	}
	if n < k.TierRuns {
		return nil
	}
	k.forgetFinished()
	if p := k.fullTier(); p != nil {
		return p // the other one would start a compaction too
	}
	return k.fullestTier()
}

func (k *Picker) startTierCompaction(tier uint32) *Plan {
	c := tierCompaction{tier: tier, newest: k.Runs.Tier(tier)[0].Number, run: k.NewRun()}
	c.fileBytes = k.FileBytes.Share(k.Runs.Tier(tier).Bytes(), k.FileBytes.MinShare())
	k.Policy.tierCompactions = append(k.Policy.tierCompactions, c)
	return k.continueTierCompaction(c)
}

// continueTierCompaction plans the next file.
func (k *Picker) continueTierCompaction(c tierCompaction) *Plan {
	inputs := k.inputsOf(c)
	if len(inputs) == 1 {
		// The keys of the last input are greater than all keys of the output.
		p := &Plan{Reason: "tier", Remove: inputs[0].SSTs}
		for _, s := range inputs[0].SSTs {
			p.Add = append(p.Add, s.Moved(c.tier+1, c.run))
		}
		return p
	}
	return &Plan{
		Reason:    "tier",
		Inputs:    inputs,
		Older:     k.Runs.From(c.tier + 1),
		Tier:      c.tier + 1,
		Run:       c.run,
		FileBytes: c.fileBytes,
		OneFile:   true,
	}
}
