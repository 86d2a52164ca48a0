package lsm

import (
	"log/slog"
	"math"

	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/filesize"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/vfs"
)

const (
	defaultFileBytes = 32 << 20
	defaultTierRuns  = 8
)

// Options configure a Tree.
type Options struct {
	FS  vfs.FS // required
	Dir string // required
	// Cache is the block cache, by default none.
	Cache *cache.Cache
	// CacheDB is the number of the database in Cache, by default 0.
	CacheDB uint64
	// FileBytes is the target size of a file, by default 32 MiB.
	FileBytes int64
	// TierRuns is the number of runs of a tier that are compacted into one run of the next tier, by
	// default 8.
	TierRuns int
	// Compression applies to flushed files, CompactedCompression to those of compactions and
	// loads. The default is sstable's.
	Compression, CompactedCompression sstable.Compression
	// GroupBytes is sstable.WriterOptions.GroupBytes, with its default. Only tests set it.
	GroupBytes int
	// Behind reports whether writers will soon wait for a job, which then writes a file while
	// another goroutine syncs the one before. It may be called concurrently and must not call
	// the Tree. By default no job does so.
	Behind func() bool
	// Snapshots returns the sequences that registered snapshots read, rising. A job
	// calls it at its start and keeps the versions that these snapshots need. A
	// snapshot that is registered later must read a sequence that is not less than
	// the sequence of any row in files and in memtables given to NewFlush. By default
	// there are none.
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
	// OutputLimit returns how many bytes a compaction may write before it removes any.
	// It may be called concurrently and must not call the Tree. By default there is no
	// limit.
	OutputLimit func() int64
	// Logger logs failures that no method returns. By default they are not logged.
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
	if o.OutputLimit == nil {
		o.OutputLimit = func() int64 { return math.MaxInt64 }
	}
	if o.Behind == nil {
		o.Behind = func() bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o *Options) fileSize() filesize.Target { return filesize.Target(o.FileBytes) }
