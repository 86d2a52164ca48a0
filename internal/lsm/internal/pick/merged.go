package pick

import "github.com/tablerock-db/tablerock/internal/lsm/internal/runs"

const (
	// minMergeCost is the least that MergeCost returns: queries take some milliseconds for it, as the syncs
	// of a compaction do.
	minMergeCost = 4 << 20
	// bottomCost is by how much a compaction into the bottom counts for more than its bytes. The bottom is
	// large, and the run of the next flush overlaps it again: by CPU time alone it would be written so often
	// that the disk wears out.
	bottomCost = 4
)

// MergeCost returns how many bytes the compactions of mergedRuns read until queries have to merge fewer
// runs, times bottomCost if they are into the bottom, 0 if there is nothing to compact.
func MergeCost(l runs.List) int64 {
	tiers := l.Tiers()
	if len(tiers) > 1 {
		return max(minMergeCost, l.Tier(fullest(l)).Bytes())
	}
	bottom := int64(0)
	for _, s := range l.Bottom().SSTs {
		if tiers.Overlaps(s) {
			bottom += s.Bytes
		}
	}
	if bottom == 0 {
		return 0
	}
	return max(minMergeCost, bottomCost*(tiers.Bytes()+bottom))
}

// mergedRuns compacts runs once queries have spent as much time on merging them as the compaction takes.
// It compacts the fullest tier, as fullestTier does. If there is only one run above the bottom, it
// compacts that run into the bottom, one range at a time.
func (k *Picker) mergedRuns() *Plan {
	cost := MergeCost(k.Runs)
	if cost == 0 || k.Merged.Load() < cost {
		return nil
	}
	// If a compaction finds the disk full, the database refuses writes, although it may have space for them.
	need := min(cost, k.Runs.Bytes())
	if k.OutputLimit()-k.Runs.CompactionSpace() < need+need/4 {
		return nil
	}
	if len(k.Runs.Tiers()) > 1 {
		k.Merged.Add(-cost)
		return k.startTierCompaction(fullest(k.Runs))
	}
	rs := k.ranges()
	for i := range rs {
		if rs[i].Above > 0 {
			k.Merged.Add(-bottomCost * (rs[i].Bottom + rs[i].Above))
			return k.intoBottom("merged", rs, i, i+1)
		}
	}
	return nil
}
