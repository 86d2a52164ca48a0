package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/tablerock-db/tablerock/engine/internal/recovery"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

// makeDirectory makes dir and its parents and the names of all that were missing
// durable: a database is lost with any directory above it.
func makeDirectory(fsys vfs.FS, dir string) error {
	var parents []string
	for d := path.Clean(dir); d != "." && d != "/"; d = path.Dir(d) {
		_, err := fsys.Stat(d)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		parents = append(parents, path.Dir(d))
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	for _, d := range parents {
		if err := fsys.SyncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// checkDirectory refuses a directory that is not ours: one that holds files and no
// manifest. What the creation of a database leaves when it is cut short is
// ours.
func checkDirectory(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// What is left of a manifest is removed before the next one is written. A
	// directory cannot be, and then nothing could ever be flushed.
	if info, err := fsys.Stat(path.Join(dir, filename.ManifestTemp)); err == nil && info.Dir {
		return fmt.Errorf("%s is a directory: move it away, the database needs the name", filename.ManifestTemp)
	}
	if slices.Contains(names, filename.Manifest) {
		return nil
	}
	stranger := ""
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
				stranger = name
			}
		default:
			stranger = name
		}
	}
	if stranger != "" {
		return fmt.Errorf("%w: it holds %q and no %s", store.ErrNotDatabase, stranger, filename.Manifest)
	}
	return nil
}

// firstNumber returns a number above those of the segments without records
// that the directory of a new database may hold. Below the first log of the
// manifest they mean nothing.
func firstNumber(fsys vfs.FS, dir string) (uint64, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return 0, err
	}
	first := uint64(1)
	for _, name := range names {
		if kind, number := filename.Parse(name); kind == filename.WAL {
			if number > recovery.Reach {
				return 0, fmt.Errorf("%w: it holds %q and no %s", store.ErrNotDatabase, name, filename.Manifest)
			}
			first = max(first, number+1)
		}
	}
	return first, nil
}
