package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/tablerock-db/tablerock/engine/internal/space"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

// MakeDirectory creates dir and its parents, durably: a crash that loses a parent
// would lose the database. If dir has a manifest, they are durable.
func MakeDirectory(fsys vfs.FS, dir string) error {
	_, err := fsys.Stat(path.Join(dir, filename.Manifest))
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	return vfs.SyncParents(fsys, dir)
}

// lostError is the error for a directory with files of a database that has lost its
// manifest. It is store.ErrCorrupt, and store.ErrNotDatabase for callers that only ask
// whether there is a database.
type lostError struct{ error }

func (e *lostError) Unwrap() error { return e.error }

func (e *lostError) Is(target error) bool { return target == store.ErrNotDatabase }

// CheckDirectory returns an error unless dir is missing, empty, a database, or what
// a crash during the creation of a database left.
func CheckDirectory(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// The manifest is written under this name first. A directory cannot be
	// replaced, and nothing could ever be flushed.
	if info, err := fsys.Stat(path.Join(dir, filename.ManifestTemp)); err == nil && info.Dir {
		return fmt.Errorf("%s is a directory: move it away, the database needs the name", filename.ManifestTemp)
	}
	if slices.Contains(names, filename.Manifest) {
		return nil
	}
	if err := manifest.Lost(fsys, dir); err != nil {
		return &lostError{err}
	}
	foreign := ""
	for _, name := range names {
		kind, _ := filename.Parse(name)
		switch {
		case name == filename.Lock || name == filename.ManifestTemp:
		case kind == filename.WAL:
			blank, err := wal.Blank(fsys, path.Join(dir, name))
			if err != nil && !errors.Is(err, vfs.ErrNotRegular) {
				return err
			}
			if !blank {
				foreign = name
			}
		default:
			foreign = name
		}
	}
	if foreign != "" {
		return fmt.Errorf("%w: it holds %q and no %s", store.ErrNotDatabase, foreign, filename.Manifest)
	}
	return nil
}

// checkWritable returns an error if no file can be created in dir, the directory of a database.
// Otherwise the first sync of the log would be what fails: the lock file exists, and to open it
// the directory need not be writable. A full disk is no error. The caller has the lock.
func checkWritable(fsys vfs.FS, dir string) error {
	name := path.Join(dir, filename.ManifestTemp)
	err := fsys.Remove(name) // a crash may have left it
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		var f vfs.File
		if f, err = fsys.Create(name); err == nil {
			err = errors.Join(f.Close(), fsys.Remove(name))
		}
	}
	if err != nil && !space.NoSpace(err) {
		return fmt.Errorf("no file can be created in the directory: %w", err)
	}
	return nil
}

// Unknown returns the names in dir that do not belong to the database of the manifest m.
func Unknown(fsys vfs.FS, dir string, m *manifest.Manifest) (unknown []string, err error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{filename.Lock: true, filename.Manifest: true, filename.ManifestTemp: true}
	for _, f := range m.Files {
		known[filename.Make(filename.SSTable, f.Number)] = true
	}
	for _, name := range names {
		if known[name] {
			continue
		}
		ours, err := owns(fsys, dir, name, m)
		if err != nil {
			return nil, err
		}
		if !ours {
			unknown = append(unknown, name)
		}
	}
	return unknown, nil
}

// owns reports whether a file that the manifest m does not list belongs to its
// database: a segment, a file of the reserve, a load that waits for the archive, or an sstable that is being written or removed, or that a
// crash left. The error is that of a file that cannot be read and may be one of these.
func owns(fsys vfs.FS, dir, name string, m *manifest.Manifest) (bool, error) {
	kind, number := filename.Parse(name)
	if kind == filename.WAL {
		if len(m.Logs) == 0 || number >= m.Logs[0].Number {
			return true, nil
		}
		_, err := wal.Inspect(fsys, path.Join(dir, name), m.DBID, number)
		ours, zerr := stale(fsys, path.Join(dir, name), err)
		return ours || errors.Is(errors.Join(err, zerr), fs.ErrNotExist), errors.Join(unread(err), unread(zerr))
	}
	if kind != filename.SSTable {
		return kind == filename.Reserve || kind == filename.Load, nil
	}
	f, err := fsys.Open(path.Join(dir, name))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist), unread(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err == nil && size == 0 {
		return true, nil // it may be
	}
	if err == nil {
		_, err = sstable.Open(f, sstable.ReaderOptions{DBID: m.DBID, Number: number, Name: name})
	}
	var damage *corrupt.Error
	return err == nil || errors.As(err, &damage) && damage.Offset > 0, unread(err)
}

// unread returns err unless it says what the file is. That of another user is not ours.
func unread(err error) error {
	for _, known := range []error{
		fs.ErrNotExist, fs.ErrPermission, vfs.ErrNotRegular, corrupt.ErrCorrupt, store.ErrNewerFormat,
		wal.ErrUnfinished, wal.ErrChanged, wal.ErrHeadless,
	} {
		if errors.Is(err, known) {
			return nil
		}
	}
	return err
}
