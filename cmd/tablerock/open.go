package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/store"
)

// smallLog is the size of log segments for verbs that write little or nothing:
// a large one takes longer to set up than they do.
const smallLog = 1 << 20

// dir returns the directory of the account's database.
func (a *app) dir() string { return filepath.Join(a.data, a.account) }

// missing says that there is no database.
func (a *app) missing() error {
	return fmt.Errorf("no database in %s: %w; give its place with --data and --account, or make one with \"tablerock table create\" or \"tablerock import\"",
		a.dir(), fs.ErrNotExist)
}

// read opens the database as it is, without the lock and without a write.
func (a *app) read(work func(db *engine.DB) error) error {
	if err := hint.Data(a.data); err != nil {
		return err
	}
	db, err := engine.Open(filepath.ToSlash(a.dir()), engine.Options{ReadOnly: true, SegmentBytes: smallLog})
	if errors.Is(err, fs.ErrNotExist) && !a.exists() {
		return a.missing()
	}
	if err != nil {
		return err
	}
	return a.use(db, work)
}

// use does the work and closes db. If that misses a table, a learns which there
// are, for the one that was meant.
func (a *app) use(db *engine.DB, work func(db *engine.DB) error) error {
	err := work(db)
	if errors.Is(err, store.ErrTableNotFound) {
		there, _ := db.Tables(context.Background(), "", 0) // a hint is not worth a second error
		for _, t := range there {
			a.tables = append(a.tables, t.Name)
		}
	}
	return errors.Join(err, db.Close())
}

// exists reports whether the account's directory holds a database.
func (a *app) exists() bool {
	_, err := os.Stat(filepath.Join(a.dir(), filename.Manifest))
	return !errors.Is(err, fs.ErrNotExist)
}

// write opens a database that exists, for writing.
func (a *app) write(work func(db *engine.DB) error) error {
	if !a.exists() {
		return a.missing()
	}
	return a.create(engine.Options{SegmentBytes: smallLog}, work)
}

// create opens the database for writing, and makes it if there is none.
func (a *app) create(o engine.Options, work func(db *engine.DB) error) error {
	if err := hint.Data(a.data); err != nil {
		return err
	}
	if strange := hint.Strange(a.data, a.account); strange != "" {
		a.note("%s", strange)
	}
	db, err := engine.Open(filepath.ToSlash(a.dir()), o)
	if err != nil {
		return err
	}
	return a.use(db, work)
}

// snapshot reads one moment of the database.
func (a *app) snapshot(work func(s *engine.Snapshot) error) error {
	return a.read(func(db *engine.DB) error {
		s, err := db.Snapshot()
		if err != nil {
			return err
		}
		return errors.Join(work(s), s.Close())
	})
}
