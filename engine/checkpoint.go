package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/tablerock-db/tablerock/engine/internal/checkpoint"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
)

// Checkpoint creates a database in dest with everything acknowledged so far. Reads
// and writes continue meanwhile. dest must not exist or be empty, and is a path
// with slashes, not inside a database (fs.ErrInvalid). Checkpoint links sstables without reading them, so Verify finds their
// damage, or copies them if dest is on another file system, and then damage is a
// store.ErrCorrupt. It copies the log, and writes the manifest last, so a checkpoint
// that did not finish is not a database; remove it before the next try.
func (db *DB) Checkpoint(ctx context.Context, dest string) error {
	if err := db.beginWrite(); err != nil {
		return err
	}
	defer db.endWrite()
	ctx, stop := db.closing.Until(ctx)
	if err := stop(db.makeCheckpoint(ctx, dest)); err != nil {
		return fmt.Errorf("checkpoint to %s: %w", dest, err)
	}
	return nil
}

func (db *DB) makeCheckpoint(ctx context.Context, dest string) error {
	if err := checkpoint.Prepare(db.fs, dest); err != nil {
		return err
	}
	snap, m, err := db.pinFiles()
	if err != nil {
		return err
	}
	defer snap.release()
	if err := m.SkipNumbers(db.opts.Testing.Random); err != nil {
		return err
	}
	return checkpoint.Write(ctx, db.fs, db.dir, dest, snap.state.Mems, &m)
}

// pinFiles returns the list of the files with everything acknowledged so far, and a snapshot
// that keeps them. Copies of the files can take long, and then flushes must go on, or writers
// would wait for them.
func (db *DB) pinFiles() (*snapshot, manifest.Manifest, error) {
	// Flushes and compactions must not change the set of files meanwhile.
	db.steps.mu.Lock()
	defer db.steps.mu.Unlock()
	// Each write with a Timestamp up to this one is durable after syncAll, and so in the list.
	high := db.log.FinalHighWater()
	if err := db.syncAll(); err != nil {
		return nil, manifest.Manifest{}, err
	}
	snap := db.newSnapshot()
	if snap == nil {
		return nil, manifest.Manifest{}, store.ErrClosed
	}
	m := db.tree.Manifest()
	m.Logs = checkpoint.Ends(snap.state.Mems)
	m.HighWater = uint64(high) // recovery adds the Timestamps of the records
	return snap, m, nil
}

// syncAll makes everything in the log durable.
func (db *DB) syncAll() error {
	if !db.opts.NoSync {
		return db.log.Barrier()
	}
	mems := slices.Clone(db.state.Load().Mems)
	slices.Reverse(mems)
	if err := db.log.SyncSegments(mems); err != nil {
		return err
	}
	return db.tree.RecordLogs()
}
