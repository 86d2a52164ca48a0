package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

// makeDirectory creates dir and its parents, durably: a crash that loses a parent
// would lose the database.
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

// checkDirectory returns an error unless dir is missing, empty, a database, or what
// a crash during the creation of a database left.
func checkDirectory(fsys vfs.FS, dir string) error {
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
