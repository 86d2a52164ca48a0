package manifest

import (
	"errors"
	iofs "io/fs"
	"path"
	"slices"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

// Unlisted reports whether the manifest in dir is whole and does not list the sstable with
// that number.
func Unlisted(fsys vfs.FS, dir string, number uint64) bool {
	m, err := Read(fsys, dir)
	return err == nil && !slices.ContainsFunc(m.Files, func(f File) bool { return f.Number == number })
}

// Lost returns a *corrupt.Error if dir has no manifest and an sstable or a segment with
// records, which are written only after the manifest. It returns nil if dir is missing, has
// a manifest, or has other files only.
func Lost(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil || slices.Contains(names, filename.Manifest) {
		return err
	}
	for _, name := range names {
		kind, _ := filename.Parse(name)
		lost := kind == filename.SSTable
		if kind == filename.WAL {
			blank, err := wal.Blank(fs, path.Join(dir, name))
			if err != nil && !errors.Is(err, vfs.ErrNotRegular) {
				return err
			}
			lost = err == nil && !blank
		}
		if lost {
			return corrupt.Newf(filename.Manifest, 0, "there is no such file, but %s of its database", name)
		}
	}
	return nil
}
