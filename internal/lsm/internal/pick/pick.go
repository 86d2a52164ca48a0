// Package pick chooses compactions: which sstables to read, to move or to drop, and where the
// output goes. It writes nothing. Package lsm describes runs, tiers and the bottom, and carries out
// a Plan.
//
// # Rules
//
// The first rule that applies picks the compaction:
//
//	dropped tables   a file has only rows of dropped tables: drop it unread
//	move             a file of a tier overlaps nothing below it: list it in the bottom
//	tier, overfull   a tier has TierRuns+2 runs or more, and the backlog is more than 14:
//	                 compact it into the next tier
//	deleted          queries have spent more on a range of deleted rows than its compaction takes:
//	                 compact the range
//	tombstones       files of over 30 % tombstones may hide a quarter of a range: compact the range
//	garbage          half of a range is garbage: compact the range into the bottom
//	tier, full       a tier has TierRuns runs: compact it into the next tier
//	tier, fullest    more than 14 runs above the bottom overlap, or more than 64 are there:
//	                 compact the fullest
//	merged           queries have spent as much time on merging runs as their compaction takes:
//	                 compact the fullest tier, or the only run above the bottom into the bottom
//	compress         a move was not done, because a rewrite would compress the file in another way
//
// Garbage is the estimated size of obsolete versions. Entries above the bottom shadow older
// versions, except keys that the older runs' filters did not contain: a sample is looked up when a
// file is written, and the manifest records the share of new keys. In the bottom, versions are
// garbage that were kept for snapshots, once these are closed, and so are rows of dropped tables.
//
// The garbage rule bounds space amplification: the files take at most about twice the space of the
// live rows. If they take more, a third of garbage in a range is enough, and what compactions have
// consumed of a file of the bottom counts as garbage of its rest. The tier rules bound read
// amplification: a key is in at most 20 runs, or 32 beside a full compaction. A load of new keys
// has no garbage, so it is compacted within the tiers only.
//
// # Concurrency and ownership
//
// A Picker belongs to one goroutine, and is made for one list of runs, which must be pinned until
// the Picker and its plans are no longer used. A Plan shares its sstables with that list, and
// belongs to the caller. The Policy is the state that the pickers of a tree share: use one of them
// at a time, and the next one when the last Plan is installed or given up. To choose may read
// files: the index of files that nothing has used yet, and keys of one file to know its tables.
package pick

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/internal/lsm/internal/bound"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/filesize"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/keyrange"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/runs"
	"github.com/tablerock-db/tablerock/internal/manifest"
)

const (
	// tombstonePercent of tombstones make a file worth a compaction by itself.
	tombstonePercent = 30
	// partTombstones are added to the estimate for a part of a file, which can be too low within
	// a row group. So few are not worth a compaction of a range of the usual size.
	partTombstones = 400
	// maxVirtual virtual sstables of a file of the bottom slow reads and installs about as much as they
	// may: to rewrite the file takes as long as queries have spent on so many deleted ranges.
	maxVirtual = 32
)

// Plan describes a compaction.
type Plan struct {
	Reason string // the rule, for logs
	// Remove and Add are the sstables to drop and to move without reading them.
	Remove, Add []*runs.SST
	// Inputs are the runs to compact within [Lower, Upper), newest first. Older are the runs below
	// the output.
	Inputs       runs.List
	Older        runs.List
	Lower, Upper []byte
	// Tier and Run are those of the output.
	Tier uint32
	Run  uint64
	// FileBytes is the target size of the output files. With OneFile the compaction
	// ends with the first file that ends after the key EndAfter.
	FileBytes int64
	OneFile   bool
	EndAfter  []byte
}

// Policy is the state that picks share. It is lost at Close, which costs some repeated work. The
// zero Policy is that of a tree that was just opened.
type Policy struct {
	// tierCompactions are the incremental compactions under way, at most one for each tier.
	tierCompactions []tierCompaction
	// cursor is the end of the last range that was compacted into the bottom.
	cursor []byte
}

// Picker picks a compaction of a list of runs. Set the exported fields before the first call.
type Picker struct {
	Runs runs.List
	// Overlap is Runs.Overlap().
	Overlap int
	// Snapshots are the sequences that registered snapshots read, rising.
	Snapshots []uint64
	Policy    *Policy
	// NewRun returns the number of a new run, greater than those of all others.
	NewRun func() uint64

	FileBytes filesize.Target
	// TierRuns is the number of runs of a tier that are compacted into one run of the next tier.
	TierRuns int
	// Recompress says that compactions compress files in another way than flushes.
	Recompress bool
	// Dropped reports whether no reader can see the rows of a table.
	Dropped func(table uint32) bool
	// Deleted has the ranges that queries found deleted.
	Deleted *keyrange.Deleted
	// Merged is the time that queries have spent on merging runs, as the bytes that a compaction reads in it.
	Merged *atomic.Int64
	// OutputLimit returns how many bytes a compaction may write before it removes any.
	OutputLimit func() int64

	read bool // a file to know its tables: at most one for each pick
}

// Pick returns the compaction of the first rule that applies, nil if none does.
func (k *Picker) Pick() *Plan {
	k.forgetFinished()
	rules := []func() *Plan{
		k.FilesOfDroppedTables, k.trivialMoves, k.overfullTier, k.deletedRange, k.tombstoneRange, k.garbageRange, k.fullTier, k.fullestTier, k.mergedRuns,
		k.compress,
	}
	for _, rule := range rules {
		if p := rule(); p != nil {
			return p
		}
	}
	return nil
}

// FilesOfDroppedTables drops the files that contain only rows of dropped tables. It returns nil if
// there are none.
func (k *Picker) FilesOfDroppedTables() *Plan {
	out := slices.DeleteFunc(k.Runs.SSTs(), func(s *runs.SST) bool { return !bound.AllTables(s.Lo, s.Hi, k.Dropped) })
	if len(out) == 0 {
		return nil
	}
	return &Plan{Reason: "dropped tables", Remove: out}
}

// trivialMoves moves the files that overlap nothing below them to the bottom.
func (k *Picker) trivialMoves() *Plan {
	p := &Plan{Reason: "move"}
	for _, s := range k.movable(false) {
		p.Remove, p.Add = append(p.Remove, s), append(p.Add, s.Moved(manifest.BottomTier, 0))
	}
	if p.Add == nil {
		return nil
	}
	return p
}

// compress rewrites a file into the bottom that a compaction would compress in another way.
func (k *Picker) compress() *Plan {
	files := k.movable(true) // the last is the oldest
	if len(files) == 0 {
		return nil
	}
	s := files[len(files)-1]
	inputs := runs.List{{Tier: s.Meta.Tier, Number: s.Meta.Run, SSTs: []*runs.SST{s}}}
	return &Plan{Reason: "compress", Inputs: inputs, Lower: s.Lo, Upper: bound.After(s.Hi), Tier: manifest.BottomTier, FileBytes: int64(k.FileBytes)}
}

// movable returns the files that overlap nothing below them: those that a compaction would
// compress otherwise, or the others.
func (k *Picker) movable(otherwise bool) (out []*runs.SST) {
	for i, r := range k.Runs.Tiers() {
		for _, s := range r.SSTs {
			// Small files would fragment the bottom. Tombstones would remain there. So
			// would the rest of a clipped file, whose virtual sstables share a run.
			if s.Bytes < k.FileBytes.Min() || s.Clipped || k.compressible(s) != otherwise || mostlyTombstones(s) || k.Runs[i+1:].Overlaps(s) {
				continue
			}
			out = append(out, s)
		}
	}
	return out
}

// compressible reports whether a compaction would compress s in another way.
func (k *Picker) compressible(s *runs.SST) bool {
	if !k.Recompress {
		return false
	}
	r, err := s.Reader()
	return err == nil && !r.Small()
}

func mostlyTombstones(s *runs.SST) bool {
	return s.Meta.Tombstones*100 > s.Meta.Entries*tombstonePercent
}

// deletedRange compacts a range in which queries have found only deleted rows, unless a snapshot
// needs them. It consumes no more of the files than queries have passed, and writes nothing. If rows
// were inserted there again, it ends with the first file of them, however long the range is.
func (k *Picker) deletedRange() *Plan {
	lower, upper := k.Deleted.Take()
	for upper != nil && !k.dropsTombstones(lower, upper) {
		lower, upper = k.Deleted.Take()
	}
	if upper == nil {
		return nil
	}
	lower, upper = k.widened(lower, upper)
	return &Plan{
		Reason:    "deleted",
		Inputs:    k.Runs,
		Lower:     lower,
		Upper:     upper,
		Tier:      manifest.BottomTier,
		FileBytes: min(int64(k.FileBytes), k.Runs.BytesWithin(lower, upper)), // a disk that is nearly full has space for it
		OneFile:   true,
	}
}

// dropsTombstones reports whether there are tombstones in a range, since another compaction can have
// dropped them, and no snapshot needs what they hide.
func (k *Picker) dropsTombstones(lower, upper []byte) bool {
	tombstones := false
	for _, r := range k.Runs {
		for _, s := range r.Within(lower, upper) {
			if len(k.Snapshots) > 0 && k.Snapshots[0] < s.Meta.MaxSeq {
				return false
			}
			tombstones = tombstones || s.MostTombstones > 0
		}
	}
	return tombstones
}

// widened widens a range to all virtual sstables of the files of the bottom in it that have too many.
func (k *Picker) widened(lower, upper []byte) (from, to []byte) {
	from, to = lower, upper
	virtual := make(map[*runs.File][]*runs.SST)
	for _, s := range k.Runs.Bottom().SSTs {
		virtual[s.File] = append(virtual[s.File], s)
	}
	for _, s := range k.Runs.Bottom().Within(lower, upper) {
		p := virtual[s.File]
		if len(p) < maxVirtual {
			continue
		}
		if bytes.Compare(p[0].Lo, from) < 0 {
			from = p[0].Lo
		}
		if end := bound.After(p[len(p)-1].Hi); bytes.Compare(end, to) > 0 {
			to = end
		}
	}
	return from, to
}

// tombstoneRange compacts a range in which files of many tombstones, which no snapshot needs,
// may hide enough entries.
func (k *Picker) tombstoneRange() *Plan {
	var ranges keyrange.Ranges
	for _, s := range k.Runs.SSTs() {
		if !mostlyTombstones(s) || s.MostTombstones == 0 || len(k.Snapshots) > 0 && k.Snapshots[0] < s.Meta.MaxSeq {
			continue
		}
		if ranges == nil {
			ranges = k.ranges()
		}
		ranges.AddTombstones(s.Lo, s.Hi, min(s.MostTombstones, s.Tombstones()+partTombstones))
	}
	i := ranges.MostlyDeleted()
	if i < 0 {
		return nil
	}
	return k.intoBottom("tombstones", ranges, i, i+1)
}
