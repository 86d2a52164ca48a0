// Package checkpoint copies the files of a database to another directory.
package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/engine/internal/recovery"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
)

// Prepare makes the directory of a checkpoint, which must not exist or be empty, and must not be
// inside a database: there it is lost when the database is removed or replaced.
func Prepare(fsys vfs.FS, dest string) error {
	if dest == "" {
		return errors.New("the path of the directory is empty")
	}
	if dir := manifest.Around(fsys, dest); dir != "" {
		return fmt.Errorf("%w: it is inside %s, which is a database", fs.ErrInvalid, dir)
	}
	return Make(fsys, dest)
}

// Make is Prepare for a directory that may be inside a database.
func Make(fsys vfs.FS, dest string) error {
	names, err := fsys.List(dest)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch {
	case len(names) > 0 && isUnfinished(names):
		return fmt.Errorf("%w: the directory has files of a database and no MANIFEST; if a checkpoint that did not finish left them, remove it", fs.ErrExist)
	case len(names) > 0:
		return fmt.Errorf("%w: the directory is not empty, it holds %q", fs.ErrExist, names[0])
	}
	if err := recovery.MakeDirectory(fsys, dest); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	return nil
}

// isUnfinished reports whether names are those that Write leaves if it ends early.
func isUnfinished(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		kind, _ := filename.Parse(name)
		return kind != filename.WAL && kind != filename.SSTable && name != filename.ManifestTemp
	})
}

// Ends returns the durable ends of the segments, given newest first, that have any.
func Ends(segs []*commitlog.Segment) (ends []manifest.Log) {
	// If the newest segment has durable records, the segments before it are durable as
	// a whole by the time their ends are read.
	for _, seg := range segs {
		if end := seg.Durable(); end > 0 {
			ends = append(ends, manifest.Log{Number: seg.Number, Sealed: end})
		}
	}
	return ends
}

// Write copies the records of the segments that m lists, and links the sstables of m from
// dir to dest, or copies them if dest is on another file system. It writes the manifest
// last. The caller keeps the segments and the files.
func Write(ctx context.Context, fsys vfs.FS, dir, dest string, segs []*commitlog.Segment, m *manifest.Manifest) error {
	for _, l := range m.Logs {
		if err := ctx.Err(); err != nil {
			return err
		}
		i := slices.IndexFunc(segs, func(seg *commitlog.Segment) bool { return seg.Number == l.Number })
		if err := writeFile(ctx, fsys, path.Join(dest, filename.Make(filename.WAL, l.Number)), segs[i].Image()[:l.Sealed]); err != nil {
			return fmt.Errorf("copy segment %d: %w", l.Number, err)
		}
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
		if err := linkOrCopy(ctx, fsys, path.Join(dir, name), path.Join(dest, name), &m.Files[i]); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	if err := fsys.SyncDir(dest); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := fsys.SyncDir(path.Dir(path.Clean(dest))); err != nil {
		return fmt.Errorf("sync parent directory: %w", err)
	}
	return manifest.Write(fsys, dest, m)
}

// Sizes of copies. A copy looks at its context after each copyBytes. It syncs after each syncBytes,
// because nothing ends a sync, and that of a log of 1 GiB can take 10 s.
const (
	copyBytes = 1 << 20
	syncBytes = 32 << 20
)

// writeFile writes b to a new file and syncs it.
func writeFile(ctx context.Context, fsys vfs.FS, name string, b []byte) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	err = fill(ctx, f, int64(len(b)), func(off, n int64) ([]byte, error) { return b[off : off+n], nil })
	return errors.Join(err, f.Close())
}

// fill writes the size bytes of read to f and syncs them.
func fill(ctx context.Context, f vfs.File, size int64, read func(off, n int64) ([]byte, error)) error {
	for off := int64(0); off < size; off += copyBytes {
		if err := ctx.Err(); err != nil {
			return err
		}
		chunk, err := read(off, min(copyBytes, size-off))
		if err != nil {
			return err
		}
		if off > 0 && off%syncBytes == 0 {
			err = f.Sync()
		}
		if err == nil {
			_, err = f.WriteAt(chunk, off)
		}
		if err != nil {
			return err
		}
	}
	return f.Sync()
}

// linkOrCopy links a file, or copies it if it cannot be linked. It compares a copy with the hash
// of the file, and does not read a file that it links.
func linkOrCopy(ctx context.Context, fsys vfs.FS, from, to string, file *manifest.File) error {
	if err := fsys.Link(from, to); err == nil {
		return nil
	}
	src, err := fsys.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := fsys.Create(to)
	if err != nil {
		return err
	}
	buf := make([]byte, copyBytes)
	var hash xxhash.Digest
	hash.Reset()
	err = fill(ctx, dst, file.Size, func(off, n int64) ([]byte, error) {
		_, err := src.ReadAt(buf[:n], off)
		_, _ = hash.Write(buf[:n])
		return buf[:n], err
	})
	if got := hash.Sum64(); err == nil && got != file.Hash {
		err = corrupt.Newf(path.Base(from), 0, "%d bytes with the hash %016x, want %016x", file.Size, got, file.Hash)
	}
	return errors.Join(err, dst.Close())
}
