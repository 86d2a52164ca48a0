package complete

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/vfs"
)

// Accounts returns the accounts that have a database in the directory, none if it does not exist.
// One whose database has lost its manifest, or cannot be read, is among them: whoever opens it gets
// the error, and works on no part of the accounts as if these were all.
func Accounts(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, d := range list {
		if sharedkey.IsAccountName(d.Name()) && isDatabase(filepath.Join(dir, d.Name())) {
			names = append(names, d.Name())
		}
	}
	return names, nil
}

// isDatabase reports whether there is a database, or can be one.
func isDatabase(name string) bool {
	info, err := os.Stat(name)
	if err != nil {
		return true // also for a link to a directory of a disk that is not mounted
	}
	if !info.IsDir() {
		return false
	}
	if _, err := os.Stat(filepath.Join(name, filename.Manifest)); !errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return manifest.Lost(vfs.OS(), filepath.ToSlash(name)) != nil
}
