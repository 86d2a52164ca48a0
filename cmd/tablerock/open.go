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

// smallLog is the size of log segments for commands that write little or nothing.
// Allocating a large one would take longer than their work.
const smallLog = 1 << 20

// dir returns the directory of the account's database.
func (a *app) dir() string { return filepath.Join(a.data, a.account) }

// missing returns the error for a database that does not exist.
func (a *app) missing() error {
	return fmt.Errorf("no database in %s: %w; give its directory with --data and --account, or create one with \"tablerock table create\" or \"tablerock import\"",
		a.dir(), fs.ErrNotExist)
}

// read opens the database read-only, without its lock.
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

// use does the work and closes db. If a table was not found, it sets a.tables for
// suggestions.
func (a *app) use(db *engine.DB, work func(db *engine.DB) error) error {
	err := work(db)
	if errors.Is(err, store.ErrTableNotFound) {
		there, _ := db.Tables(context.Background(), "", 0) // without names there is no suggestion
		for _, t := range there {
			a.tables = append(a.tables, t.Name)
		}
	}
	return errors.Join(err, db.Close())
}

// exists reports whether the account's directory contains a database.
func (a *app) exists() bool {
	_, err := os.Stat(filepath.Join(a.dir(), filename.Manifest))
	return !errors.Is(err, fs.ErrNotExist)
}

// write opens an existing database for writing.
func (a *app) write(work func(db *engine.DB) error) error {
	if !a.exists() {
		return a.missing()
	}
	return a.create(engine.Options{SegmentBytes: smallLog}, work)
}

// create opens the database for writing and creates it if there is none.
func (a *app) create(o engine.Options, work func(db *engine.DB) error) error {
	if err := hint.Data(a.data); err != nil {
		return err
	}
	if warning := hint.UnrelatedFiles(a.data, a.account); warning != "" {
		a.note("%s", warning)
	}
	db, err := engine.Open(filepath.ToSlash(a.dir()), o)
	if err != nil {
		return err
	}
	return a.use(db, work)
}

// snapshot opens the database read-only and takes a snapshot.
func (a *app) snapshot(work func(s *engine.Snapshot) error) error {
	return a.read(func(db *engine.DB) error {
		s, err := db.Snapshot()
		if err != nil {
			return err
		}
		return errors.Join(work(s), s.Close())
	})
}
