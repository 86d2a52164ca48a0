package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
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
	names, err := db.fs.List(dest)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("%w: the directory is not empty, it holds %q", fs.ErrExist, names[0])
	}
	if err := makeDirectory(db.fs, dest); err != nil {
		return fmt.Errorf("make directory: %w", err)
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
	m.Logs = nil
	// Copy the newest segment first. If it has durable records, the segments before
	// it are durable as a whole by the time they are copied.
	for _, seg := range snap.state.mems {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := seg.Durable()
		if end <= 0 {
			continue
		}
		if err := writeFile(db.fs, path.Join(dest, filename.Make(filename.WAL, seg.Number)), seg.Image()[:end]); err != nil {
			return fmt.Errorf("copy segment %d: %w", seg.Number, err)
		}
		m.Logs = append(m.Logs, manifest.Log{Number: seg.Number, Sealed: end})
	}
	copied := make(map[uint64]bool) // a file is listed once for each virtual sstable
	for i := range m.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if copied[m.Files[i].Number] {
			continue
		}
		copied[m.Files[i].Number] = true
		name := filename.Make(filename.SSTable, m.Files[i].Number)
		if err := db.linkOrCopy(ctx, path.Join(db.dir, name), path.Join(dest, name), m.Files[i].Size); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	if err := db.fs.SyncDir(dest); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := db.fs.SyncDir(path.Dir(path.Clean(dest))); err != nil {
		return fmt.Errorf("sync parent directory: %w", err)
	}
	return manifest.Write(db.fs, dest, &m)
}

// syncAll makes everything in the log durable.
func (db *DB) syncAll() error {
	if !db.opts.NoSync {
		return db.log.Barrier()
	}
	mems := slices.Clone(db.state.load().mems)
	slices.Reverse(mems)
	return db.log.SyncSegments(mems)
}

func writeFile(fsys vfs.FS, name string, b []byte) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// linkOrCopy links a file, or copies it if it cannot be linked.
func (db *DB) linkOrCopy(ctx context.Context, from, to string, size int64) error {
	if err := db.fs.Link(from, to); err == nil {
		return nil
	}
	src, err := db.fs.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := db.fs.Create(to)
	if err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for off := int64(0); off < size && err == nil; off += int64(len(buf)) {
		chunk := buf[:min(int64(len(buf)), size-off)]
		if err = ctx.Err(); err == nil {
			_, err = src.ReadAt(chunk, off)
		}
		if err == nil {
			_, err = dst.WriteAt(chunk, off)
		}
	}
	if err == nil {
		err = dst.Sync()
	}
	return errors.Join(err, dst.Close())
}
