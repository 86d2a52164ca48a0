// Package datadir lists the accounts in the directory of --data.
package datadir

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
// the error, and works on no part of the accounts as if these were all. A database of a program can have
// a name that is no account's.
func Accounts(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, d := range list {
		name := filepath.Join(dir, d.Name())
		if sharedkey.IsAccountName(d.Name()) && isDatabase(name) || d.Name()[0] != '.' && hasManifest(name) {
			names = append(names, d.Name())
		}
	}
	return names, nil
}

// hasManifest reports whether there is a database. A name that begins with a dot is not one's: a
// killed backup leaves such directories.
func hasManifest(name string) bool {
	info, err := os.Stat(filepath.Join(name, filename.Manifest))
	return err == nil && info.Mode().IsRegular()
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
