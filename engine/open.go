package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

const (
	lockName     = "LOCK"
	manifestName = "MANIFEST"
)

// ErrNotDatabase says that a directory holds files and no manifest of ours, so
// that making a database there could harm something else.
var ErrNotDatabase = errors.New("directory is not a database and not empty")

// Open opens the database in dir, making it if there is none. It fails with
// store.ErrLocked, ErrNotDatabase, store.ErrNewerFormat or store.ErrCorrupt, or
// an error of the file system, and has then changed nothing.
func Open(dir string, o Options) (*DB, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if o.ReadOnly {
		return openReadOnly(dir, o)
	}
	if err := checkDir(o.FS, dir); err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	if err := o.FS.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("open %s: make directory: %w", dir, err)
	}
	lock, err := o.FS.Lock(path.Join(dir, lockName))
	if err != nil {
		var locked *vfs.LockedError
		if errors.As(err, &locked) {
			err = fmt.Errorf("%w: %w", store.ErrLocked, err)
		}
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	db, err := openLocked(dir, o, lock)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, errors.Join(err, lock.Close()))
	}
	db.startWorker()
	if len(db.state.Load().mems) > 1 {
		db.kick()
	}
	return db, nil
}

// checkDir refuses a directory that is not ours: one that holds files and no
// manifest. What the creation of a database leaves when it is cut short is
// ours.
func checkDir(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	stranger := ""
	for _, name := range names {
		switch _, isWAL := fileNumber(name, ".wal"); {
		case name == manifestName:
			return nil
		case name == lockName || name == manifestName+".tmp":
		case isWAL:
			blank, err := wal.Blank(fsys, path.Join(dir, name))
			if err != nil {
				return err
			}
			if !blank {
				stranger = name
			}
		default:
			stranger = name
		}
	}
	if stranger != "" {
		return fmt.Errorf("%w: it holds %q and no %s", ErrNotDatabase, stranger, manifestName)
	}
	return nil
}

// fileNumber returns the number in a name such as 000012.wal.
func fileNumber(name, ext string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, ext)
	if !ok || len(digits) < 6 || len(digits) > 19 || strings.Trim(digits, "0123456789") != "" || len(digits) > 6 && digits[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0
}

func openLocked(dir string, o Options, lock io.Closer) (*DB, error) {
	m, err := readManifest(o.FS, dir)
	if errors.Is(err, fs.ErrNotExist) {
		m, err = create(o, dir)
	}
	if err != nil {
		return nil, err
	}
	db := newDB(dir, o, m)
	db.lock = lock
	if db.tree, err = lsm.Open(db.treeOptions(), m); err != nil {
		return nil, err
	}
	if err := db.recover(m); err != nil {
		return nil, errors.Join(err, db.tree.Close())
	}
	return db, nil
}

func readManifest(fsys vfs.FS, dir string) (*manifest.Manifest, error) {
	m, err := manifest.Read(fsys, dir)
	if errors.Is(err, manifest.ErrNewerFormat) {
		return nil, fmt.Errorf("%w: %w", store.ErrNewerFormat, err)
	}
	return m, err
}

// create makes the first manifest. No segment exists before it is durable, so
// no write can be acknowledged without it.
func create(o Options, dir string) (*manifest.Manifest, error) {
	m := &manifest.Manifest{NextFile: 2, Logs: []manifest.Log{{Number: 1}}}
	if _, err := io.ReadFull(o.Random, m.DBID[:]); err != nil {
		return nil, fmt.Errorf("name the database: %w", err)
	}
	if parent := path.Dir(path.Clean(dir)); parent != dir {
		if err := o.FS.SyncDir(parent); err != nil {
			return nil, fmt.Errorf("sync parent directory: %w", err)
		}
	}
	if err := manifest.Write(o.FS, dir, m); err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	return m, nil
}

func newDB(dir string, o Options, m *manifest.Manifest) *DB {
	db := &DB{opts: o, dir: dir, fs: o.FS, id: m.DBID}
	db.apply.cond = sync.NewCond(&db.apply.mu)
	db.work.cond = sync.NewCond(&db.work.mu)
	db.catalog.Store(newCatalog())
	return db
}

func (db *DB) treeOptions() lsm.Options {
	compression := sstable.CompressionFast
	if db.opts.Compact {
		compression = sstable.CompressionBetter
	}
	return lsm.Options{
		FS:          db.fs,
		Dir:         db.dir,
		Cache:       db.opts.Cache,
		FileBytes:   db.opts.FileBytes,
		TierRuns:    db.opts.TierRuns,
		Compression: compression,
		Snapshots:   db.snapshots.list,
		Dropped:     func(table uint32) (uint64, bool) { return 0, db.isDropped(table) },
		Logger:      db.opts.Logger,
	}
}

// loadCatalog reads table 0 as of everything recovered.
func (db *DB) loadCatalog() error {
	m := db.takeMoment()
	defer m.release()
	var it merge.Iterator[codec.ShapedRow]
	it.Init(m.sources(codec.AppendTable(nil, catalogTable), codec.AppendTable(nil, catalogTable+1)), merge.Options{})
	cat := newCatalog()
	var err error
	for ok := it.SeekGE(nil); ok && err == nil; ok = it.Next() {
		if live(it.Key()) {
			cat, err = cat.applyRow(it.Row())
		}
	}
	if err = errors.Join(err, it.Err(), it.Close()); err != nil {
		return fmt.Errorf("load catalog: %w", err)
	}
	db.catalog.Store(cat)
	db.tables.Store(&catalogView{catalog: cat})
	return nil
}

// start makes what was recovered the database's state and opens the log behind
// it.
func (db *DB) start(recovered []*memSegment, lastSeq uint64, highWater edm.Ticks) error {
	db.log.mu.Lock()
	defer db.log.mu.Unlock()
	db.log.lastSeq, db.log.highWater = lastSeq, highWater
	db.apply.mu.Lock()
	db.apply.applied = lastSeq
	db.apply.mu.Unlock()
	db.published.Store(lastSeq)
	db.listed = lastSeq

	prevEnd := int64(0)
	if n := len(recovered); n > 0 {
		prevEnd = recovered[n-1].tail()
	}
	active, err := db.newSegment(db.tree.NewNumber(), lastSeq+1, highWater, prevEnd, 0)
	if err != nil {
		return err
	}
	db.log.active = active
	mems := []*memSegment{active}
	for i := len(recovered) - 1; i >= 0; i-- {
		mems = append(mems, recovered[i])
	}
	version := db.tree.Version()
	db.runs.Store(int64(version.RunsMax()))
	db.state.Store(newReadState(mems, version))
	return nil
}
