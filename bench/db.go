package bench

import (
	"context"
	"iter"
	"time"

	"github.com/tablerock-db/tablerock/edm"
)

// Options configures a database for a workload.
type Options struct {
	// Durable makes writes wait for stable storage. By default, they do not.
	Durable bool
	// CacheBytes is the size of the block cache. It has no default.
	CacheBytes int64
	// LogBytes is the size at which the log is flushed to sstables. It has no
	// default.
	LogBytes int64
	// KeepRuns turns off compactions, so that each Flush leaves a sorted run.
	KeepRuns bool
}

// Store opens databases of one kind.
type Store interface {
	// Name is the store's name in reports.
	Name() string
	// Describe names the version and the options that matter.
	Describe() string
	// HasLog reports whether the store has a log to replay after a crash.
	HasLog() bool
	// Open opens the database in dir, which it creates if there is none. If ctx ends,
	// the operations of the database may return its error.
	Open(ctx context.Context, dir string, o Options) (DB, error)
}

// DB is an open database of one table.
type DB interface {
	// Session returns a session for one goroutine; sessions run concurrently.
	Session() Session
	// Flush writes the log to sstables, if the store has them. It may close and open
	// the database; call it while no session runs.
	Flush() error
	// WaitIdle flushes the log to sstables, if the store can without closing, and
	// waits for the background work to end. It returns how much of its time passed
	// after that end, because the store does not tell.
	WaitIdle() (idle time.Duration, err error)
	// Compact compacts all data into the form that is fastest to read. Call it
	// while no session runs.
	Compact() error
	// Syncs returns the number of syncs since Open, or -1 if the store does not
	// count them.
	Syncs() int64
	// Reads returns the number and the bytes of reads of files since Open, or -1 if
	// the store does not count them.
	Reads() (n, bytes int64)
	// Close closes the database. The next Open finds everything written.
	Close() error
}

// BulkDB is a DB that can load entities without transactions. A Store whose databases can
// has a method HasBulk that returns true.
type BulkDB interface {
	DB
	// Load inserts or replaces entities. An entity is valid until the next one.
	Load(entities iter.Seq2[edm.Entity, error]) error
}

// Session carries out operations, one after another.
type Session interface {
	// Put inserts or replaces entities. Adjacent entities of one partition are one
	// transaction; a store may write all entities in one.
	Put(entities []edm.Entity) error
	// Delete deletes entities, which must exist, in transactions like those of Put.
	Delete(keys []edm.Key) error
	// Get folds all properties of the entity into f and reports whether it exists.
	Get(key edm.Key, f *Fold) (found bool, err error)
	// Scan folds all properties of the entities that s selects into f.
	Scan(s Scan, f *Fold) error
	// Count steps over all entities of the table without reading a property and
	// returns their number.
	Count() (int64, error)
}

// Scan selects entities in the order of their keys. The zero value selects all.
type Scan struct {
	Partition string  // only this partition, unless ""
	From      edm.Key // start at this key, unless Partition or its own is ""
	Limit     int     // at most this many entities, unless 0
	Match     *Match  // only these entities, unless nil
}
