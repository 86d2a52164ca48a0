package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/archiver"
	"github.com/tablerock-db/tablerock/engine/internal/batch"
	"github.com/tablerock-db/tablerock/engine/internal/catalog"
	"github.com/tablerock-db/tablerock/engine/internal/closing"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/engine/internal/idleseal"
	"github.com/tablerock-db/tablerock/engine/internal/partlock"
	"github.com/tablerock-db/tablerock/engine/internal/readstate"
	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/engine/internal/stall"
	"github.com/tablerock-db/tablerock/engine/internal/worker"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// DB is an open database: the tables of one storage account, in one directory. It
// implements store.Store. All methods may be called concurrently. Except for
// Close and Failure, they return store.ErrClosed after Close; those that write return
// store.ErrReadOnly if the database was opened with Options.ReadOnly. These errors come
// before those of other arguments than ctx.
type DB struct {
	opts Options
	dir  string
	fs   vfs.FS
	id   [16]byte
	lock io.Closer // nil when read-only
	// cacheID distinguishes the database's blocks from those of other databases
	// in the same cache.
	cacheID uint64
	cache   *cache.Cache // Options.Cache, or the database's own
	begun   time.Time    // when Open began
	tree    *lsm.Tree

	state readstate.Current // empty after Close
	// runs is Version.Backlog of the current version.
	runs atomic.Int64

	// catalog is the catalog that readers see, with durable changes only. logged
	// is the one that writers see; it changes under the log's mutex.
	catalog   atomic.Pointer[catalog.Catalog]
	logged    atomic.Pointer[catalog.Logged]
	catalogMu sync.Mutex // held while a change of the catalog is logged
	drops     catalog.Drops

	shapes codec.ShapeCache
	// A partition lock is held while the ops of a write are resolved and their
	// record is appended.
	partitionLocks partlock.Locks
	batchDB        batch.DB
	// batches keeps the working memory of writes. It belongs to the database because
	// it has channels, which a synctest bubble must not share with others.
	batches sync.Pool
	log     *commitlog.Log

	worker *worker.Worker
	// cancelWork ends the context of the worker's steps, and with it the worker.
	cancelWork context.CancelFunc
	steps      steps
	gate       space.Gate // of a disk that may be full
	stalls     stall.Counter
	seal       idleseal.Sealer
	// archive is nil when read-only.
	archive *archiver.Archiver
	// listed is the sequence number up to which the manifest listed the ends of
	// the segments at Open.
	listed uint64

	// writers is held shared by every call that writes, and exclusively by Close,
	// so that started writes finish first.
	writers sync.RWMutex
	closed  atomic.Bool
	closing closing.Signal // begins before Close takes writers
}

var _ store.Store = (*DB)(nil)

// lastCacheID is the last DB.cacheID assigned. The database's id cannot be used
// instead, because copies of a database have the same id and file numbers.
var lastCacheID atomic.Uint64

// Failure returns the write or sync error because of which the database refuses
// writes until it is opened again, as a store.ErrReadOnly, or nil if there was none.
// If it is an error of the manifest, writes succeed until the memory for them is full.
// It does not wait for a write or sync under way.
func (db *DB) Failure() error {
	if err := cmp.Or(db.log.Failure(), db.tree.Failure()); err != nil {
		return fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	}
	return nil
}

// replaceState installs a read state with the memtables that change returns, given
// those of the current one, and the tree's current version.
func (db *DB) replaceState(change func(mems []*commitlog.Segment) []*commitlog.Segment) {
	db.state.Replace(func(mems []*commitlog.Segment) *readstate.State {
		return db.newState(change(mems))
	})
}

func (db *DB) newState(mems []*commitlog.Segment) *readstate.State {
	version := db.tree.Version()
	db.runs.Store(int64(version.Backlog()))
	return readstate.New(mems, version)
}

// maxCloseFlush is how long Close may flush: a flush of four segments takes less on
// most disks.
const maxCloseFlush = 10 * time.Second

// Close is CloseContext with a limit of ten seconds for the flush and the archive.
func (db *DB) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer db.opts.Testing.Clock.AfterFunc(maxCloseFlush, cancel)()
	return db.CloseContext(ctx)
}

// CloseContext ends each Load, Compact and Checkpoint, and each delete that waits for space on a
// full disk, with store.ErrClosed, waits for other started writes, makes everything in the log
// durable, flushes it, so that the next Open has nothing to replay, removes the files of dropped
// tables, gives Options.Archive the chunks that wait for it, and closes the database. If ctx ends
// or the flush fails, the rest stays in the log; if ctx ends or the archive fails, chunks wait for
// the next Open. Neither is an error. Cursors that are open keep their memory and files until they
// are closed, and the next Open removes the files that only they need. The error says what could
// not be made durable or closed; acknowledged writes are durable in any case, unless Options.NoSync
// was set. A second call returns nil, also while the first one is under way: it waits only for
// started writes.
func (db *DB) CloseContext(ctx context.Context) (err error) {
	db.closing.Begin()
	db.worker.Wake() // and with it the writers that wait for its work
	db.writers.Lock()
	again := db.closed.Swap(true)
	db.writers.Unlock()
	if again {
		return nil
	}
	// Each part is deferred, so that the lock is released also if the FS or the Logger panics: the caller may survive that.
	defer func() {
		if db.lock != nil {
			err = errors.Join(err, db.lock.Close())
		}
		if err != nil {
			db.opts.Logger.Error("close failed", "dir", db.dir, "cause", err)
		} else {
			db.opts.Logger.Info("database closed", "dir", db.dir)
		}
	}()
	defer func() { err = errors.Join(err, db.closeFiles()) }()
	if db.opts.ReadOnly {
		db.stopWorker()
		return nil
	}
	defer func() { err = db.closeLogs(db.state.Load().Mems) }()
	defer db.archive.Close(ctx)
	defer func() {
		if removeErr := db.tree.RemoveDropped(ctx); removeErr != nil && ctx.Err() == nil {
			db.opts.Logger.Warn("files of dropped tables are left to the next Open", "dir", db.dir, "cause", removeErr)
		}
	}()
	defer db.stopWorker()
	if db.log.Failure() == nil && ctx.Err() == nil {
		// A step under way may be that flush, so the worker stops after it, or when ctx ends.
		defer context.AfterFunc(ctx, db.cancelWork)()
		if err := db.flush(ctx); err != nil {
			db.opts.Logger.Warn("the log is not flushed", "dir", db.dir, "cause", err)
		}
	}
	return nil
}

// closeFiles ends the read state and closes the sstables and the cache.
func (db *DB) closeFiles() error {
	db.state.End()
	db.state.Retire() // removes files, which it can only before the tree is closed
	err := db.tree.Close()
	db.log.FreeSpareMemory()
	if db.opts.Cache == nil {
		if pinned := db.cache.Close(); pinned > 0 {
			db.opts.Logger.Info("open cursors keep blocks", "dir", db.dir, "blocks", pinned)
		}
	}
	return err
}

// closeLogs syncs, seals and closes the segments, and lists their ends in the
// manifest, unless the log has failed, or the manifest lists them already or says that
// all is flushed.
func (db *DB) closeLogs(mems []*commitlog.Segment) error {
	if err := db.log.CloseAll(mems); err != nil || db.log.Failure() != nil {
		return err
	}
	m := db.tree.Manifest()
	if db.listed == db.log.Published() || m.LastSeq == db.log.Published() && m.HighWater == uint64(db.log.FinalHighWater()) {
		return nil
	}
	return db.listLogs(mems)
}

// provenLogs returns how far each live segment is durable.
func (db *DB) provenLogs() []manifest.Log {
	if s := db.state.Load(); s != nil {
		return commitlog.Proven(s.Mems)
	}
	return nil
}

// reserveStamps records in the manifest that Timestamps up to upto may have been given
// out. An error refuses the write that needs them.
func (db *DB) reserveStamps(upto edm.Ticks) error {
	return space.Refusal(db.tree.Update(manifest.Edit{MinHighWater: uint64(upto)}))
}

// listLogs lists the segments with records and their ends in the manifest, or the
// active segment if none has records.
func (db *DB) listLogs(mems []*commitlog.Segment) error {
	return db.tree.Update(manifest.Edit{Logs: commitlog.Ends(mems), HighWater: uint64(db.log.FinalHighWater())})
}
