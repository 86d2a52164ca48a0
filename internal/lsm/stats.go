package lsm

import (
	"github.com/tablerock-db/tablerock/internal/lsm/internal/runs"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/visibility"
)

// Counters count the work of jobs since Open.
type Counters struct {
	Flushes     uint64 // and loads
	Compactions uint64 // that read and wrote entries
	Edits       uint64 // that only changed the manifest
	// FlushedBytes were written by flushes and loads, CompactedBytes by compactions. ReadBytes
	// were read by compactions, an estimate.
	FlushedBytes, CompactedBytes, ReadBytes int64
	// FlushedFiles were written by flushes and loads, CompactedFiles by compactions. ReadFiles
	// were read by compactions.
	FlushedFiles, CompactedFiles, ReadFiles uint64
	// EntriesIn of flushes and compactions is EntriesOut and the dropped entries.
	EntriesIn, EntriesOut uint64
	Shadowed              uint64 // hidden by a newer version
	ElidedTombstones      uint64 // dropped because they hid nothing
	DroppedRows           uint64 // rows of dropped tables
	DroppedFiles          uint64 // files of dropped tables, removed unread
	MovedFiles            uint64 // to the bottom, unread
}

// TierStats describes the runs of a tier.
type TierStats struct {
	Tier  uint32 // manifest.BottomTier for the bottom
	Runs  int
	Files int
	// Bytes, Entries and Tombstones do not include the ranges that compactions
	// consumed. They are exact unless a file was consumed in part.
	Bytes      int64
	Entries    uint64
	Tombstones uint64
}

// Stats describes a Version.
type Stats struct {
	Tiers []TierStats // newest first
	// Files and Bytes are those of the files that the manifest lists.
	Files int
	Bytes int64
	// Entries and Tombstones are the sums of Tiers.
	Entries    uint64
	Tombstones uint64
	// RunsMax is the greatest number of runs that overlap at a key.
	RunsMax int
	// LiveBytes estimates the size of the rows that readers of the present see: the
	// size of the largest run, and of the runs that overlap no larger one. SpaceAmp is
	// Bytes / LiveBytes, 1 for an empty tree.
	LiveBytes int64
	SpaceAmp  float64
	Epoch     uint64 // of the manifest
}

// Counters returns the work of jobs since Open. It does not wait for an install.
func (t *Tree) Counters() Counters {
	t.countersMu.Lock()
	defer t.countersMu.Unlock()
	return t.counters
}

// Stats describes the version. It may be called after Tree.Close.
func (v *Version) Stats() Stats {
	s := Stats{RunsMax: v.overlap, SpaceAmp: 1, Epoch: v.tree.epoch, Bytes: v.runs.FileBytes()}
	seen := make(map[*runs.File]bool)
	for _, r := range v.runs {
		n := len(s.Tiers)
		if n == 0 || s.Tiers[n-1].Tier != r.Tier {
			s.Tiers = append(s.Tiers, TierStats{Tier: r.Tier})
			n++
		}
		ts := &s.Tiers[n-1]
		ts.Runs++
		ts.Bytes += r.Bytes()
		for _, sst := range r.SSTs {
			ts.Entries += sst.Entries
			ts.Tombstones += sst.Tombstones()
			s.Entries += sst.Entries
			s.Tombstones += sst.Tombstones()
			if !seen[sst.File] {
				seen[sst.File] = true
				ts.Files++
			}
		}
	}
	s.Files = len(seen)
	if s.LiveBytes = v.runs.LiveBytes(); s.LiveBytes > 0 {
		s.SpaceAmp = float64(s.Bytes) / float64(s.LiveBytes)
	}
	return s
}

// count adds a finished compaction, which wrote so many files, to the counters.
func (c *compaction) count(files int) {
	c.t.countersMu.Lock()
	defer c.t.countersMu.Unlock()
	n := &c.t.counters
	switch {
	case c.flush:
		n.Flushes++
		n.FlushedBytes += c.out.bytes
		n.FlushedFiles += uint64(files)
	case len(c.plan.Inputs) > 0:
		n.Compactions++
		n.CompactedBytes += c.out.bytes
		n.CompactedFiles += uint64(files)
		n.ReadBytes += c.inputBytes
		n.ReadFiles += uint64(len(c.consumed))
	default:
		n.Edits++
		n.MovedFiles += uint64(len(c.plan.Add))
		n.DroppedFiles += uint64(len(c.plan.Remove) - len(c.plan.Add))
	}
	n.EntriesIn += c.in.Entries
	n.EntriesOut += c.decided.Kept().Entries
	n.Shadowed += c.decided[visibility.DropShadowed].Entries
	n.ElidedTombstones += c.decided[visibility.DropTombstone].Entries
	n.DroppedRows += c.decided[visibility.DropTable].Entries
}

// CompactionSpace estimates how many bytes a full compaction needs beside its inputs.
func (v *Version) CompactionSpace() int64 { return v.runs.CompactionSpace() }
