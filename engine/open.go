package engine

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/archiver"
	"github.com/tablerock-db/tablerock/engine/internal/batch"
	"github.com/tablerock-db/tablerock/engine/internal/budget"
	"github.com/tablerock-db/tablerock/engine/internal/catalog"
	"github.com/tablerock-db/tablerock/engine/internal/closing"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/engine/internal/idleseal"
	"github.com/tablerock-db/tablerock/engine/internal/recovery"
	"github.com/tablerock-db/tablerock/engine/internal/scan"
	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/engine/internal/worker"
	"github.com/tablerock-db/tablerock/internal/archive"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// Open opens the database in dir, and creates it if dir does not exist or is empty.
// dir is a path with slashes. The errors are store.ErrLocked if another process, or
// another DB, has the database open for writing, store.ErrNotDatabase if dir has
// other files and no manifest, store.ErrNewerFormat, store.ErrCorrupt, an error of
// the file system, and an error that names an invalid option or says that dir is "".
// An Open that fails changes nothing that a later Open reads. With Options.ReadOnly it
// creates nothing: if there is no database, the error is fs.ErrNotExist.
//
// Open finds missing sstables; most damage of an sstable is found by its first use.
//
// Open replays the log, which takes time in proportion to the data that is not
// flushed: none after Close, at most four segments of Options.SegmentBytes after a
// crash. It flushes them in the background.
func Open(dir string, o Options) (db *DB, err error) {
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, errors.New("open: the path of the directory is empty; the working directory is \".\"")
	}
	if o.ReadOnly {
		return openReadOnly(dir, o)
	}
	if err := recovery.CheckDirectory(o.FS, dir); err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	if err := recovery.MakeDirectory(o.FS, dir); err != nil {
		return nil, fmt.Errorf("open %s: make directory: %w", dir, err)
	}
	lock, err := o.FS.Lock(path.Join(dir, filename.Lock))
	if err != nil {
		var locked *vfs.LockedError
		if errors.As(err, &locked) {
			err = fmt.Errorf("%w: %w", store.ErrLocked, err)
		}
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	opened := false
	defer func() {
		if !opened { // also if the FS, the Logger or the Clock panics, so that a caller that recovers can open again
			err = errors.Join(err, lock.Close())
		}
	}()
	if db, err = openLocked(dir, o, lock); err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	db.logOpened(0)
	opened = true
	db.startWorker()
	if len(db.state.Load().Mems) > 1 {
		db.worker.Wake()
	}
	return db, nil
}

// logOpened logs that the database is open. retries counts failed attempts.
func (db *DB) logOpened(retries int) {
	now := db.opts.Testing.Clock.Now()
	db.opts.Logger.Info("database opened", "dir", db.dir, "read_only", db.opts.ReadOnly, "retries", retries,
		"segments", len(db.state.Load().Mems)-1, "entries", db.log.Published()-db.tree.Manifest().LastSeq,
		"seconds", now.Sub(db.begun).Seconds())
}

func openLocked(dir string, o Options, lock io.Closer) (*DB, error) {
	m, err := recovery.ReadOrCreate(o.FS, dir, o.Testing.Random)
	if err != nil {
		return nil, err
	}
	reserve, volume, err := space.Open(o.FS, dir, o.ReserveBytes)
	if err != nil {
		return nil, err
	}
	o.SegmentBytes = max(budget.MinSegment, space.SegmentBytes(o.SegmentBytes, volume))
	o.FileBytes = max(minFileBytes, space.FileBytes(o.FileBytes, volume))
	db := newDB(dir, o, m)
	db.lock, db.fs, db.gate.Reserve = lock, reserve.FS(), reserve
	if db.tree, err = lsm.Open(db.treeOptions(), m); err != nil {
		return nil, err
	}
	if err := db.recover(m); err != nil {
		return nil, errors.Join(err, db.discard())
	}
	return db, nil
}

// discard frees the memory and closes the files of an Open that failed.
func (db *DB) discard() error {
	if db.log != nil {
		db.log.FreeSpareMemory()
	}
	db.state.End()
	db.state.Retire()
	return db.tree.Close()
}

func newDB(dir string, o Options, m *manifest.Manifest) *DB {
	db := &DB{opts: o, dir: dir, fs: o.FS, id: m.DBID, cacheID: lastCacheID.Add(1), begun: o.Testing.Clock.Now(), closing: closing.New()}
	if o.Cache != nil {
		db.cache = o.Cache.blocks
	} else {
		db.cache = cache.New(o.CacheBytes)
	}
	clock := o.Testing.Clock
	db.worker = worker.New(worker.Options{Step: db.pacedStep, StepInPause: db.flushInPause, Now: clock.Now, AfterFunc: clock.AfterFunc, Logger: o.Logger})
	db.gate.Reserve, db.gate.SegmentBytes, db.gate.Logger = space.New(o.FS, dir, 0, 0), o.SegmentBytes, o.Logger
	db.gate.Needs, db.gate.Wake = db.needs, db.worker.Wake
	db.steps.compactSem = make(chan struct{}, 1)
	db.batchDB = batch.DB{State: &db.state, Logged: &db.logged, Shapes: &db.shapes, Locks: &db.partitionLocks, NoSync: o.NoSync}
	db.batches.New = func() any { return batch.New(&db.batchDB) }
	db.catalog.Store(catalog.New())
	return db
}

func (db *DB) treeOptions() lsm.Options {
	compacted := sstable.CompressionFast
	if db.opts.Compression == CompressSmall {
		compacted = sstable.CompressionSmall
	}
	return lsm.Options{
		FS:          db.fs,
		Dir:         db.dir,
		Cache:       db.cache,
		CacheDB:     db.cacheID,
		FileBytes:   db.opts.FileBytes,
		TierRuns:    db.opts.TierRuns,
		Compression: sstable.CompressionFast,
		// Only files that stay for long are worth the CPU time.
		CompactedCompression: compacted,
		Snapshots:            func() []uint64 { return db.log.Registered() },
		Dropped:              db.isDropped,
		ProvenLogs:           db.provenLogs,
		OutputLimit:          db.gate.Reserve.ForOutputs,
		Behind:               db.behind,
		Logger:               db.opts.Logger,
	}
}

// recover replays the log. Records that a sync is known to have covered are on
// disk. The rest of the newest segment may be in the page cache only: recover
// writes and syncs it again before a reader can see it, and lists its end in the
// manifest, so that the next Open does not have to decide where it ends.
func (db *DB) recover(m *manifest.Manifest) error {
	log, err := recovery.Read(db.fs, db.dir, m, recovery.Own)
	if err != nil {
		return err
	}
	if err := db.tree.CheckLeftovers(log.LastSeq, log.HighWater); err != nil {
		log.Free()
		return err
	}
	if err := log.Repair(); err != nil {
		log.Free()
		return err
	}
	if err := db.start(log); err != nil {
		log.Free()
		return err
	}
	if err := db.loadCatalog(); err != nil {
		return err
	}
	// The database is valid. Files are changed only from here on.
	if _, err = db.tree.RemoveLeftovers(); err != nil {
		return err
	}
	if err := log.RemoveLost(db.opts.Logger, db.tree.RecordLogs); err != nil {
		return err
	}
	if log.Unlisted {
		// On a full disk reads go on. The records are durable, and the next segment
		// states where they end.
		if err := db.listLogs(db.state.Load().Mems); space.NoSpace(err) {
			db.listed = math.MaxUint64 // so that Close tries again
		} else if err != nil {
			return err
		}
	}
	db.archive = archiver.New(archiver.Options{
		Source:  archive.Source{FS: db.fs, Dir: db.dir, DBID: db.id, Epoch: m.Epoch},
		Archive: db.opts.Archive, Log: db.log, After: db.opts.Testing.Clock.AfterFunc, Logger: db.opts.Logger,
	})
	if err := db.archive.Recover(m); err != nil {
		return err
	}
	if err = db.gate.Reserve.Refill(); space.NoSpace(err) {
		db.gate.NoteFull()
		err = nil
	}
	return err
}

// loadCatalog reads the catalog from its table, after recovery.
func (db *DB) loadCatalog() error {
	data := ownedData{db.newSnapshot()}
	defer data.Close()
	cat, err := catalog.Load(scan.Rows(data, catalog.TableID))
	if err != nil {
		return fmt.Errorf("load catalog: %w", err)
	}
	// No table has had the next id, and the table that gets it would have its entities.
	if found, err := scan.HasFrom(data, cat.Next()); err != nil {
		return err
	} else if found {
		return corrupt.Newf(filename.Manifest, 0, "entities of a table id that the catalog has not assigned; the next is %d", cat.Next())
	}
	db.catalog.Store(cat)
	db.logged.Store(&catalog.Logged{Catalog: cat})
	return nil
}

// start installs the recovered segments as the read state and starts the log after
// them.
func (db *DB) start(log *recovery.Log) error {
	prevEnd := int64(0)
	if n := len(log.Segments); n > 0 {
		prevEnd = log.Segments[n-1].Tail()
	}
	db.tree.SkipNumbers(log.Next)
	var err error
	db.log, err = commitlog.New(commitlog.Options{
		FS:            db.fs,
		Dir:           db.dir,
		DBID:          db.id,
		SegmentBytes:  db.opts.SegmentBytes,
		NoSync:        db.opts.NoSync,
		NoPreallocate: db.opts.inMemory(),
		Now:           func() edm.Ticks { return edm.TicksOf(db.opts.Testing.Clock.Now()) },
		Reserve:       db.reserveStamps,
		Admit:         db.gate.Admit,
		NextNumber:    db.tree.NewNumber,
		Rotated:       db.rotated,
		Ready:         db.worker.Wake,
		Logger:        db.opts.Logger,
	}, log.LastSeq, log.HighWater, prevEnd)
	if err != nil {
		return err
	}
	db.batchDB.Log = db.log
	db.seal = idleseal.Sealer{
		Log: db.log, List: db.tree.RecordLogs, Logger: db.opts.Logger, Begin: db.beginWrite, End: db.endWrite, After: db.opts.Testing.Clock.AfterFunc,
	}
	db.listed = log.LastSeq
	mems := []*commitlog.Segment{db.log.Active()}
	for _, seg := range slices.Backward(log.Segments) {
		mems = append(mems, seg)
	}
	db.state.Start(db.newState(mems))
	return nil
}

// rotated adds the new active segment to the read state.
func (db *DB) rotated(seg *commitlog.Segment) {
	db.state.Add(seg)
	db.worker.Wake()
}
