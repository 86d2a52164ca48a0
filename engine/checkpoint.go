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

// Checkpoint makes dest, which must not exist or be empty, a database with
// everything acknowledged so far, while this one goes on. Sorted files are
// linked, so it takes little time and space; the log is copied. The manifest is
// written last: a checkpoint that was cut short is not a database.
func (db *DB) Checkpoint(ctx context.Context, dest string) error {
	if err := db.beginWrite(); err != nil {
		return err
	}
	defer db.writers.RUnlock()
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
	// No flush and no merge changes the set of files meanwhile.
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
	// The newest segment comes first: if anything of it is durable, all of those
	// before it is by the time that they are looked at.
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
	copied := make(map[uint64]bool) // a file is listed once for each part that is live
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

// syncAll returns when everything in the log is durable.
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

// linkOrCopy gives a file a second name, or copies it where that is not
// possible, as across file systems.
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
		part := buf[:min(int64(len(buf)), size-off)]
		if err = ctx.Err(); err == nil {
			_, err = src.ReadAt(part, off)
		}
		if err == nil {
			_, err = dst.WriteAt(part, off)
		}
	}
	if err == nil {
		err = dst.Sync()
	}
	return errors.Join(err, dst.Close())
}
