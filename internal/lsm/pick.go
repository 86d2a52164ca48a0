package lsm

import (
	"slices"

	"github.com/tablerock-db/tablerock/internal/lsm/internal/bound"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/keyrange"
	"github.com/tablerock-db/tablerock/internal/manifest"
)

const (
	// tombstonePercent of tombstones make a file worth a compaction by itself.
	tombstonePercent = 30
	// partTombstones are added to the estimate for a part of a file, which can be too low within
	// a row group. So few are not worth a compaction of a range of the usual size.
	partTombstones = 400
)

// policy is the state that picks share. It is lost at Close, which costs some
// repeated work.
type policy struct {
	// tierCompactions are the incremental compactions under way, by rising tier.
	tierCompactions []tierCompaction
	// cursor is the end of the last range that was compacted into the bottom.
	cursor []byte
}

// picker picks a compaction of a version.
type picker struct {
	o         *Options
	v         *Version
	snapshots []uint64
	policy    *policy
	newRun    func() uint64
	read      bool // a file to know its tables: at most one for each pick
}

func (t *Tree) picker(v *Version, snapshots []uint64) *picker {
	// A full compaction uses the policy without jobsMu: Tree.compacting keeps PickCompaction from it.
	return &picker{o: &t.o, v: v, snapshots: snapshots, policy: &t.policy, newRun: t.NewNumber} // +checklocksignore
}

// pick returns the compaction of the first rule that applies, nil if none does. The
// package comment describes the rules.
func (k *picker) pick() *plan {
	k.forgetFinished()
	rules := []func() *plan{
		k.filesOfDroppedTables, k.trivialMoves, k.overfullTier, k.deletedRange, k.garbageRange, k.fullTier, k.fullestTier, k.compress,
	}
	for _, rule := range rules {
		if p := rule(); p != nil {
			return p
		}
	}
	return nil
}

// filesOfDroppedTables drops the files that contain only rows of dropped tables.
func (k *picker) filesOfDroppedTables() *plan {
	out := slices.DeleteFunc(k.v.ssts(), func(s *virtualSST) bool { return !bound.AllTables(s.lo, s.hi, k.o.Dropped) })
	if len(out) == 0 {
		return nil
	}
	return &plan{reason: "dropped tables", remove: out}
}

// trivialMoves moves the files that overlap nothing below them to the bottom.
func (k *picker) trivialMoves() *plan {
	p := &plan{reason: "move"}
	for _, s := range k.movable(false) {
		p.remove, p.add = append(p.remove, s), append(p.add, s.moved(manifest.BottomTier, 0))
	}
	if p.add == nil {
		return nil
	}
	return p
}

// compress rewrites a file into the bottom that a compaction would compress in another way.
func (k *picker) compress() *plan {
	files := k.movable(true) // the last is the oldest
	if len(files) == 0 {
		return nil
	}
	s := files[len(files)-1]
	inputs := []*run{{tier: s.meta.Tier, number: s.meta.Run, ssts: []*virtualSST{s}}}
	return &plan{reason: "compress", inputs: inputs, lower: s.lo, upper: bound.After(s.hi), tier: manifest.BottomTier, fileBytes: k.o.FileBytes}
}

// movable returns the files that overlap nothing below them: those that a compaction would
// compress otherwise, or the others.
func (k *picker) movable(otherwise bool) (out []*virtualSST) {
	for i, r := range k.v.tiers() {
		for _, s := range r.ssts {
			// Small files would fragment the bottom. Tombstones would remain there. So
			// would the rest of a clipped file, whose virtual sstables share a run.
			if s.bytes < k.o.minFileBytes() || s.clipped || s.compressible(k.o) != otherwise || mostlyTombstones(s) || overlapsAny(k.v.runs[i+1:], s) {
				continue
			}
			out = append(out, s)
		}
	}
	return out
}

// compressible reports whether a compaction would compress s in another way.
func (s *virtualSST) compressible(o *Options) bool {
	if o.CompactedCompression == o.Compression {
		return false
	}
	r, err := s.reader()
	return err == nil && !r.Small()
}

func mostlyTombstones(s *virtualSST) bool {
	return s.meta.Tombstones*100 > s.meta.Entries*tombstonePercent
}

// deletedRange compacts a range in which files of many tombstones, which no snapshot needs,
// may hide enough entries.
func (k *picker) deletedRange() *plan {
	var ranges keyrange.Ranges
	for _, s := range k.v.ssts() {
		if !mostlyTombstones(s) || len(k.snapshots) > 0 && k.snapshots[0] < s.meta.MaxSeq {
			continue
		}
		if ranges == nil {
			ranges = k.ranges()
		}
		ranges.AddTombstones(s.lo, s.hi, min(s.meta.Tombstones, s.tombstones()+partTombstones))
	}
	i := ranges.MostlyDeleted()
	if i < 0 {
		return nil
	}
	return k.intoBottom("tombstones", ranges, i, i+1)
}
