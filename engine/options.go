package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tablerock-db/tablerock/engine/internal/budget"
	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/vfs"
)

// Options configure a database. The zero value opens a durable database on the
// operating system's file system.
type Options struct {
	// FS is the file system. vfs.NewMem keeps the database in memory. The default
	// is vfs.OS.
	FS vfs.FS
	// Logger receives a record at level Info when the database opens or closes, when writers stall and
	// when a full disk has space again, at level Debug when a flush or compaction begins and ends, at
	// level Warn when the disk is full or something is left to the next Open, and at level Error for
	// other failures. Its handler may read entities and Stats of the DB. Other methods may wait for the
	// handler, and so for ever. The default logs nothing.
	Logger *slog.Logger
	// MemoryBytes is the memory of the database's own block cache, its log segments
	// and their indexes, at least 1 MiB. SegmentBytes and CacheBytes divide it.
	// Not part of it are indexes and filters of sstables, some 2 bytes an entity and more
	// with keys of hundreds of bytes, the names of properties in each sstable, once for each
	// set of names, and garbage of the Go heap. The default is 128 MiB, or more if
	// SegmentBytes and CacheBytes need more.
	MemoryBytes int64
	// Cache is a block cache to share with other databases of this process. It is
	// not part of MemoryBytes. The default is a cache of CacheBytes for this
	// database alone.
	Cache *Cache
	// CacheBytes is the size of the database's own block cache, decoded heads
	// included. The blocks are outside the Go heap. The default is what MemoryBytes
	// leaves beside five segments and the indexes of four, a quarter of a segment
	// each: 80 MiB of 128 MiB. It is at least a quarter of MemoryBytes, 32 MiB if that is 0.
	CacheBytes int64
	// SegmentBytes is the size of a log segment and of the memory that mirrors
	// it, from 64 KiB to 1 GiB. At most three segments wait for their flush, and
	// the memory of one is kept for the next. A batch that is larger takes a segment of
	// its size, beyond MemoryBytes. The default is a sixteenth of MemoryBytes, at most 64 MiB.
	SegmentBytes int64
	// FileBytes is the size at which sstables are cut, from 64 KiB to 64 MiB. The
	// index and the filter of an sstable are read at once. The default is 32 MiB.
	FileBytes int64
	// TierRuns is how many sorted runs a tier gathers before they are compacted
	// into one run of the next tier, from 2 to 16. The default is 8.
	TierRuns int
	// ReserveBytes is the disk space that the database keeps for a full disk, on which
	// deletes and drops of tables still succeed and make room again: at most 16 MiB,
	// the default, and at most a sixteenth of the volume. With -1 it keeps none.
	//
	// Whatever SegmentBytes and FileBytes say, a segment has at most a 64th of the volume
	// and an sstable a 512th, or 64 KiB if that is less, because the space of a file is
	// free only when it is removed.
	ReserveBytes int64
	// Compression chooses between CPU time and space. The default is
	// CompressFast.
	Compression Compression
	// NoSync acknowledges writes before they are on stable storage. A crash of the process may
	// lose about 2 MiB of writes, a crash of the machine those of at most four segments. No
	// write survives if an earlier one is lost. The default is to sync.
	NoSync bool
	// Archive gets each log segment, and the files of each install of Load, before the
	// database removes or merges them; until then they stay in its directory. Writers do
	// not wait for it. The default archives nothing.
	Archive Archive
	// ReadOnly opens the database as its files are at the time of Open. It takes no lock
	// and writes nothing, so it works beside a writer. The newest acknowledged writes can be
	// missing if the writer has NoSync, those that a crash of its process would lose, and if
	// its log has failed, of which Logger gets a warning. The default is to write.
	ReadOnly bool

	// Testing is for tests. The default is a database for production.
	Testing TestHooks
}

// Archive keeps the chunks of a database's history; docs/format.md has their format.
type Archive interface {
	// Put stores a chunk under a name with slashes, and returns when it is durable. That
	// the archive has the chunk is no error. Calls come one after the other, in the order
	// of the sequence numbers. After an error the chunk is put again, unless Read has
	// returned a store.ErrCorrupt three times. Return when ctx ends: Close waits for Put.
	Put(ctx context.Context, name string, chunk io.Reader) error
}

// TestHooks replace what makes a run differ from the next. They are for tests
// that must be repeatable.
type TestHooks struct {
	// Manual starts no background goroutine: DB.Step does the background work,
	// and so do writers that would stall otherwise. The default is one goroutine.
	Manual bool
	// Clock tells the time. The default is the system's clock.
	Clock Clock
	// Random is the source of the ids of new databases, and of the numbers with which
	// checkpoints go on. The default is crypto/rand.
	Random io.Reader
	// LoadBytes is the size of a piece of Load. The default is 64 MiB.
	LoadBytes int64
}

// inMemory reports whether the files are in memory, where preallocation only costs.
func (o *Options) inMemory() bool {
	_, ok := o.FS.(*vfs.Mem)
	return ok
}

// Compression says how much CPU time compactions spend on smaller files.
type Compression uint8

// The compressions. A database can be opened with either at any time, and new files follow
// the choice. A database that was opened with CompressSmall has the required feature zstd
// from the first change of its manifest on, which can come before the first flush.
const (
	// CompressFast compresses with s2 what gets clearly smaller by it.
	CompressFast Compression = iota
	// CompressSmall compresses the files of compactions and loads with Zstandard: a
	// seventh to a fifth less than with CompressFast, for several times the CPU time.
	CompressSmall
)

// Cache is a block cache that several databases of a process can share. Make one
// with NewCache.
type Cache struct{ blocks *cache.Cache }

// NewCache returns a cache that keeps at most the given number of bytes of blocks. With 0 it keeps nothing.
func NewCache(bytes int64) *Cache { return &Cache{blocks: cache.New(bytes)} }

// Clock tells the time and calls back later.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// AfterFunc calls f once in its own goroutine after d, unless stop is
	// called first.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// systemClock is the default Clock. Nothing else in the engine reads the time.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

const (
	defaultFileBytes = 32 << 20
	minFileBytes     = 64 << 10
	maxFileBytes     = 64 << 20
	defaultTierRuns  = 8
)

// withDefaults returns o with every zero field replaced, or an error that names
// the invalid field.
func (o Options) withDefaults() (Options, error) {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Testing.Clock == nil {
		o.Testing.Clock = systemClock{}
	}
	if o.Testing.Random == nil {
		o.Testing.Random = rand.Reader
	}
	o.Testing.LoadBytes = cmp.Or(o.Testing.LoadBytes, loadInstallBytes)
	m, err := budget.Memory{Total: o.MemoryBytes, Segment: o.SegmentBytes, Cache: o.CacheBytes}.Divide(o.Cache != nil)
	if err != nil {
		return o, err
	}
	o.MemoryBytes, o.SegmentBytes, o.CacheBytes = m.Total, m.Segment, m.Cache
	if o.FileBytes == 0 {
		o.FileBytes = defaultFileBytes
	}
	if o.TierRuns == 0 {
		o.TierRuns = defaultTierRuns
	}
	if o.ReserveBytes == 0 {
		o.ReserveBytes = space.MaxBytes
	}
	switch {
	case o.FileBytes < minFileBytes || o.FileBytes > maxFileBytes:
		return o, fmt.Errorf("options: FileBytes is %d, must be between %d and %d", o.FileBytes, minFileBytes, maxFileBytes)
	case o.TierRuns < 2 || o.TierRuns > 16:
		return o, fmt.Errorf("options: TierRuns is %d, must be between 2 and 16", o.TierRuns)
	case o.ReserveBytes < -1 || o.ReserveBytes > space.MaxBytes:
		return o, fmt.Errorf("options: ReserveBytes is %d, must be between -1 and %d", o.ReserveBytes, space.MaxBytes)
	case o.Compression > CompressSmall:
		return o, fmt.Errorf("options: Compression is %d, must be CompressFast or CompressSmall", o.Compression)
	}
	return o, nil
}
