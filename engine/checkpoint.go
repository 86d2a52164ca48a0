package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/tablerock-db/tablerock/engine/internal/checkpoint"
	"github.com/tablerock-db/tablerock/store"
)

// Checkpoint creates a database in dest with everything acknowledged so far. Reads
// and writes continue meanwhile. dest must not exist or be empty, and is a path
// with slashes. Checkpoint links sstables, or copies them if dest is on another
// file system, and copies the log. It writes the manifest last, so a checkpoint
// that did not finish is not a database; remove it before the next try.
func (db *DB) Checkpoint(ctx context.Context, dest string) error {
	if err := db.beginWrite(); err != nil {
		return err
	}
	defer db.endWrite()
	if err := db.makeCheckpoint(ctx, dest); err != nil {
		return fmt.Errorf("checkpoint to %s: %w", dest, err)
	}
	return nil
}

func (db *DB) makeCheckpoint(ctx context.Context, dest string) error {
	if err := checkpoint.Prepare(db.fs, dest); err != nil {
		return err
	}
	// Flushes and compactions must not change the set of files meanwhile.
	db.work.stepMu.Lock()
	defer db.work.stepMu.Unlock()
	if err := db.syncAll(); err != nil {
		return err
	}
	snap := db.newSnapshot()
	if snap == nil {
		return store.ErrClosed
	}
	defer snap.release()
	m := db.tree.Manifest()
	m.HighWater = uint64(db.log.HighWater())
	return checkpoint.Write(ctx, db.fs, db.dir, dest, snap.state.Mems, &m)
}

// syncAll makes everything in the log durable.
func (db *DB) syncAll() error {
	if !db.opts.NoSync {
		return db.log.Barrier()
	}
	mems := slices.Clone(db.state.Load().Mems)
	slices.Reverse(mems)
	return db.log.SyncSegments(mems)
}
