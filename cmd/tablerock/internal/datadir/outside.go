package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
)

// Outside returns an error, which wraps fs.ErrInvalid, if dir is inside a database: there it is
// lost when the database is removed or replaced. It follows links, and a relative dir also
// upward from the working directory, which the slashes of its path do not show.
func Outside(dir string) error {
	absolute, err := Resolve(dir)
	if err != nil {
		return nil // whoever makes dir gets the error
	}
	if db := manifest.Around(vfs.OS(), filepath.ToSlash(absolute)); db != "" {
		return fmt.Errorf("%w: it is inside %s, which is a database", fs.ErrInvalid, filepath.FromSlash(db))
	}
	return nil
}

// Resolve returns the absolute path without links of a directory that need not exist.
func Resolve(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	there, err := filepath.EvalSymlinks(absolute)
	if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(absolute) == absolute {
		return there, err
	}
	parent, err := Resolve(filepath.Dir(absolute))
	return filepath.Join(parent, filepath.Base(absolute)), err
}
