package engine

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/vfs"
)

// Options say how a database is opened. The zero Options open a durable
// database on the operating system's file system.
type Options struct {
	// FS is where the files are. The default is vfs.OS. With vfs.NewMem the
	// database lives in memory.
	FS vfs.FS
	// Logger receives events of the background work. The default is silence.
	Logger *slog.Logger
	// Cache is a block cache to share with other databases of this process.
	// The default is one of CacheBytes for this database alone.
	Cache *Cache
	// CacheBytes is the size of the database's own block cache. The default is
	// 256 MiB.
	CacheBytes int64
	// SegmentBytes is the size of a log segment and of the memory that mirrors
	// it; at most three of them are waiting to be flushed at any time, and the
	// memory of one is kept for the next. At least 64 KiB. The default is 64 MiB.
	SegmentBytes int64
	// FileBytes is the size at which sorted files are cut. At least 64 KiB and
	// at most 64 MiB: index and filter of a file are read at once. The default is
	// 32 MiB.
	FileBytes int64
	// TierRuns is how many sorted runs gather in a tier before they are merged
	// into one of the next. The default is 8.
	TierRuns int
	// Compact spends CPU on smaller files. The default is speed.
	Compact bool
	// NoSync acknowledges writes before they are on stable storage: a crash of
	// the process or the machine may lose the newest of them, never their
	// order. The default is to sync.
	NoSync bool
	// ReadOnly opens a view of the database at this moment without the lock
	// and without writing, also beside a writer. The default is to write.
	ReadOnly bool
	// Manual starts no goroutine: background work is done by Step, and by
	// writers that would otherwise wait for it. The default is one background
	// goroutine.
	Manual bool
	// Clock tells the time. The default is the system's clock.
	Clock Clock
	// Random names new databases. The default is crypto/rand.
	Random io.Reader
}

// inMemory reports whether the files are in memory, where making space ahead of
// need only costs.
func (o *Options) inMemory() bool {
	_, ok := o.FS.(*vfs.Mem)
	return ok
}

// Cache is a block cache that several databases of one process can share.
type Cache = cache.Cache

// NewCache returns a cache that keeps at most bytes of blocks.
func NewCache(bytes int64) *Cache { return cache.New(bytes) }

// Clock tells the time and calls back later.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// AfterFunc calls f once in its own goroutine after d, unless stop is
	// called first.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

const (
	minSegmentBytes     = 64 << 10
	maxSegmentBytes     = 1 << 30
	defaultSegmentBytes = 64 << 20
	defaultCacheBytes   = 256 << 20
	defaultFileBytes    = 32 << 20
	minFileBytes        = 64 << 10
	maxFileBytes        = 64 << 20
	defaultTierRuns     = 8
)

// withDefaults returns o with every zero field replaced, or an error that names
// the field that cannot be used.
func (o Options) withDefaults() (Options, error) {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
	if o.FileBytes == 0 {
		o.FileBytes = defaultFileBytes
	}
	if o.TierRuns == 0 {
		o.TierRuns = defaultTierRuns
	}
	switch {
	case o.SegmentBytes < minSegmentBytes || o.SegmentBytes > maxSegmentBytes:
		return o, fmt.Errorf("options: SegmentBytes is %d, must be between %d and %d", o.SegmentBytes, minSegmentBytes, maxSegmentBytes)
	case o.FileBytes < minFileBytes || o.FileBytes > maxFileBytes:
		return o, fmt.Errorf("options: FileBytes is %d, must be between %d and %d", o.FileBytes, minFileBytes, maxFileBytes)
	case o.TierRuns < 2 || o.TierRuns > 16:
		return o, fmt.Errorf("options: TierRuns is %d, must be between 2 and 16", o.TierRuns)
	case o.CacheBytes < 0:
		return o, fmt.Errorf("options: CacheBytes is %d, must not be negative", o.CacheBytes)
	}
	if o.Cache == nil {
		o.Cache = cache.New(o.CacheBytes)
	}
	return o, nil
}
