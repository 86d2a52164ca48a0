package bench

import "github.com/tablerock-db/tablerock/edm"

// Options say how a store is opened for a workload.
type Options struct {
	// Durable acknowledges a write when it is on stable storage. The default is
	// to leave that to the system.
	Durable bool
	// CacheBytes is the size of the block cache. It has no default.
	CacheBytes int64
	// LogBytes is how much the log takes before it is flushed into sorted files.
	// It has no default.
	LogBytes int64
}

// Store opens databases of one kind.
type Store interface {
	// Name is the store's name in reports.
	Name() string
	// Describe names the version and the options that matter.
	Describe() string
	// Open opens the database in dir, making it if there is none.
	Open(dir string, o Options) (DB, error)
}

// DB is an open database of entities, all of one table.
type DB interface {
	// Session returns a session for one goroutine; sessions run concurrently.
	Session() Session
	// Settle returns when nothing is left for the background to do: everything
	// is in sorted files, as far as the store can be asked for that.
	Settle() error
	// Compact merges everything into the form that is best to read.
	Compact() error
	// Syncs returns how often files have been made durable since Open, -1 if
	// that is not counted.
	Syncs() int64
	// Close closes the database; what was written is there after the next Open.
	Close() error
}

// Session carries out operations, one after another.
type Session interface {
	// Put inserts or replaces entities. Those of one partition that stand next
	// to each other are one transaction; a store may take all as one.
	Put(entities []edm.Entity) error
	// Get folds all properties of the entity into f, and reports whether there
	// is one.
	Get(key edm.Key, f *Fold) (found bool, err error)
	// Scan folds all properties of the entities of a partition, or of all
	// partitions for "", into f. With hot it folds only those of which Filter
	// is true.
	Scan(partition string, hot bool, f *Fold) error
}
