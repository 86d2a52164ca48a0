package lsm

import (
	"log/slog"

	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
)

const (
	defaultFileBytes = 32 << 20
	defaultTierRuns  = 8
	// A file is cut where a table ends once it has this size, and a file of
	// this size is worth moving to the bottom as it is.
	maxPieceBytes = 4 << 20
)

// Options configure a Tree.
type Options struct {
	FS  vfs.FS // has no default
	Dir string // has no default
	// Cache keeps blocks that reads use, by default none.
	Cache *cache.Cache
	// CacheDB is the number of the database within Cache, by default 0.
	CacheDB uint64
	// FileBytes is the size at which files are cut, by default 32 MiB.
	FileBytes int64
	// TierRuns is how many runs of a tier are merged into one of the next, by
	// default 8.
	TierRuns int
	// Compression is that of flushed files and of the tiers; BottomCompression
	// is that of files that will stay. The default is sstable's.
	Compression, BottomCompression sstable.Compression
	// GroupBytes is sstable.WriterOptions.GroupBytes, with its default.
	GroupBytes int
	// Snapshots returns, rising, the sequences that registered snapshots read:
	// the versions they need survive. It is asked when a job starts. A snapshot
	// that is registered later reads a sequence that is not below those of all
	// rows in files and in memtables given to NewFlush, so it misses nothing.
	// By default there are none.
	Snapshots func() []uint64
	// Dropped reports whether a table was dropped and no snapshot is older than
	// the drop, so that no reader can see its rows. Once true it must stay true as
	// long as files may contain rows of the table. By default no table is dropped.
	Dropped func(table uint32) bool
	// ProvenLogs returns the Number and Proven of the open log segments, by rising
	// number: manifest.Edit.Proven of every manifest that is written. It is called
	// under Tree.mu, right before the write, and must not call the Tree. By default
	// there are none.
	ProvenLogs func() []manifest.Log
	// Logger gets a line for what is not returned as an error. The default logs
	// nothing.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.FileBytes <= 0 {
		o.FileBytes = defaultFileBytes
	}
	if o.TierRuns < 2 {
		o.TierRuns = defaultTierRuns
	}
	if o.Snapshots == nil {
		o.Snapshots = func() []uint64 { return nil }
	}
	if o.Dropped == nil {
		o.Dropped = func(uint32) bool { return false }
	}
	if o.ProvenLogs == nil {
		o.ProvenLogs = func() []manifest.Log { return nil }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o *Options) pieceBytes() int64 { return min(maxPieceBytes, o.FileBytes/8) }

// IterOptions bound what Version.AppendSources gives.
type IterOptions = sstable.IterOptions
