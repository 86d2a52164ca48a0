package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/batch"
	"github.com/tablerock-db/tablerock/engine/internal/bulkload"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/engine/internal/readstate"
	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
)

// loadInstallBytes is the size of a piece of Load.
const loadInstallBytes = 64 << 20

// LoadOptions configure a Load. The zero value has the defaults.
type LoadOptions struct {
	// Installed is called after each install, with the result so far, in a goroutine of Load
	// beside the sequence. It must not call methods of the DB that write. The default is to
	// call nothing.
	Installed func(LoadResult)
}

// LoadResult says how far a Load got.
type LoadResult struct {
	// Entities is how many entities are durable: the first ones of the sequence. If
	// several have one key, each counts, and the last of them is in the table.
	Entities int64
	// Installs is how many installs made them durable.
	Installs int
	// Timestamp is that of all entities of the last install.
	Timestamp edm.Ticks
}

// Load writes entities to a table, each as by an InsertOrReplace, with 35 to 70 % of the CPU time that Apply and the
// flushes after it need. Use it where no transaction is needed: nothing passes the log.
//
// Load collects the entities in pieces that take about 64 MiB, writes each piece to sstables, and installs it. An install is
// one moment: readers and writers see all of its entities or none, and they are durable. All entities of an install have one
// Timestamp, and so one ETag. Snapshots and cursors that began before do not see them. Entities in the order of their keys
// need less CPU time and memory than others.
//
// A crash or an error leaves whole installs, which are the first entities of the sequence; the result counts them, also
// with an error. Repeat the Load, or continue it from there. An error of the sequence ends the Load and is returned. An
// entity that Apply would refuse ends it with the same *store.OpError, whose Index is that of the entity in the sequence.
// The other errors are those of Apply: store.ErrTableNotFound also if the table is dropped meanwhile, and store.ErrNoSpace.
// Load waits while compactions are behind.
//
// Load calls the sequence in the caller's goroutine. When it asks for the next entity, it keeps of those before only the
// strings of names and a PartitionKey. It takes up to 140 MiB of memory beside Options.MemoryBytes and the garbage of the Go
// heap, each Load of several at a time. Close waits until Load has ended, which it does at the next entity.
func (db *DB) Load(ctx context.Context, table string, entities iter.Seq2[edm.Entity, error], o LoadOptions) (LoadResult, error) {
	if err := ctx.Err(); err != nil {
		return LoadResult{}, err
	}
	if err := db.beginWrite(); err != nil {
		return LoadResult{}, err
	}
	defer db.endWrite()
	if err := edm.CheckTableName(table); err != nil {
		return LoadResult{}, &store.OpError{Err: err}
	}
	l := &load{db: db}
	logged := db.logged.Load()
	info := logged.Lookup(table)
	if info == nil {
		return LoadResult{}, l.failure(batch.ErrTableGone)
	}
	l.table = info.ID
	if o.Installed == nil {
		o.Installed = func(LoadResult) {}
	}
	volume, _ := space.Volume(db.fs, db.dir)
	ctx, stop := db.closing.Until(ctx)
	defer stop(nil) // if the sequence panics
	result, err := bulkload.Load(ctx, bulkload.Options{
		Table: table, ID: info.ID, Shapes: &db.shapes,
		InstallBytes: space.SegmentBytes(db.opts.Testing.LoadBytes, volume.Total),
		Begin:        l.begin,
		Check:        l.check,
		Install:      l.install,
		Installed:    func(r bulkload.Result) { o.Installed(LoadResult(r)) },
	}, entities)
	// Each result says that the table exists.
	return LoadResult(result), db.refuse(logged.Pending(db.log.Published()), l.failure(stop(err)))
}

// load is one Load.
type load struct {
	db    *DB
	table uint32
}

// failure returns the error of Load for the cause err.
func (l *load) failure(err error) error {
	var refused *store.OpError
	var sequence *bulkload.SequenceError
	switch db := l.db; {
	case errors.As(err, &sequence):
		return sequence.Err
	case errors.Is(err, batch.ErrTableGone):
		err = &store.OpError{Err: store.ErrTableNotFound}
		fallthrough
	case errors.As(err, &refused): // it says that the table exists
		return db.refuse(db.logged.Load().Pending(db.log.Published()), err)
	case space.NoSpace(err) && !errors.Is(err, store.ErrNoSpace):
		db.gate.NoteFull()
	}
	return space.JobError(err)
}

// check returns the error for which the load cannot go on.
func (l *load) check() error {
	switch db := l.db; {
	case db.closing.Begun():
		return store.ErrClosed
	case db.log.Failure() != nil:
		return fmt.Errorf("%w: %w", store.ErrReadOnly, db.log.Failure())
	case !db.logged.Load().Live(l.table):
		return batch.ErrTableGone
	}
	return nil
}

// begin returns the files of a piece. The Timestamp in them is durable in the manifest before
// a file exists, so that Open can tell the files of an interrupted load from those of a newer
// manifest (lsm.Tree.CheckLeftovers).
func (l *load) begin(ctx context.Context, rows int, bytes int64) (*lsm.Load, edm.Ticks, error) {
	db := l.db
	if err := db.throttle(ctx, space.Write); err != nil {
		return nil, 0, err
	}
	if err := db.gate.AdmitWrite(bytes, 0); err != nil {
		return nil, 0, err
	}
	stamp, err := db.log.FileStamp(edm.Ticks(db.tree.Manifest().HighWater) + 1)
	if err != nil {
		return nil, 0, err
	}
	return db.tree.NewLoad(rows, db.opts.Testing.Manual), stamp, nil
}

// install makes the files visible as a write of the present. Everything written before must
// be in files by then, and nothing may be written meanwhile: no other write is resolved,
// logged or flushed from the last flush to the end of the install.
func (l *load) install(ctx context.Context, files *lsm.Load) (at edm.Ticks, err error) {
	db := l.db
	// Most of it while others write.
	if err := db.flush(ctx); err != nil {
		return 0, err
	}
	defer db.worker.Wake() // and writers: after an error too, they may wait for what was flushed
	db.steps.mu.Lock()
	defer db.steps.mu.Unlock()
	db.catalogMu.Lock()
	defer db.catalogMu.Unlock()
	db.partitionLocks.LockAll()
	defer db.partitionLocks.UnlockAll()
	for {
		if err := db.flushAll(ctx); err != nil {
			return 0, err
		}
		if err := l.check(); err != nil {
			return 0, err
		}
		var installed uint64
		old, err := db.log.Install(func(seq uint64, stamp edm.Ticks, next uint64) error {
			at, installed = stamp, seq
			return files.Install(seq, stamp, manifest.Edit{LastSeq: seq, MinHighWater: uint64(stamp), FirstLog: next}, db.archive.Link)
		}, func(next *commitlog.Segment) {
			db.state.Replace(func([]*commitlog.Segment) *readstate.State { return db.newState([]*commitlog.Segment{next}) })
		})
		switch {
		case errors.Is(err, commitlog.ErrNotEmpty):
			continue // it got a seal
		case errors.Is(err, lsm.ErrInDoubt):
			// Records that follow would contradict one of the two manifests.
			db.log.Fail(err)
			return 0, fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
		case err != nil:
			if cancel := db.archive.Cancel(installed); cancel != nil {
				db.log.Fail(cancel) // the next write would get the sequence number
			}
			return 0, err
		}
		db.archive.Installed(installed)
		if err := db.log.Drop(old); err != nil {
			db.opts.Logger.Warn("an empty segment is left", "cause", err) // the next Open removes it
		}
		return at, nil
	}
}

// flushAll flushes everything while no one writes.
// +checklocks:db.steps.mu
func (db *DB) flushAll(ctx context.Context) error {
	if err := db.log.Freeze(); err != nil {
		return err
	}
	for len(db.state.Load().Mems) > 1 {
		worked, err := db.flushStep(ctx)
		switch {
		case err != nil:
			return err
		case db.log.Failure() != nil:
			return fmt.Errorf("%w: %w", store.ErrReadOnly, db.log.Failure())
		case !worked:
			return fmt.Errorf("%w: no space to flush the log", store.ErrNoSpace)
		}
	}
	return nil
}
