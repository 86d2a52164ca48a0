package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/local"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// smallLog is the size of log segments for commands that write little or nothing.
// Allocating a large one would take longer than their work.
const smallLog = 1 << 20

// dir returns the directory of the account's database.
func (a *app) dir() string { return filepath.Join(a.data, a.account) }

// missing returns the error for a database that does not exist.
func (a *app) missing() error { return hint.NoDatabase(a.dir(), a.dirFlags) }

// read opens the database read-only, without its lock.
func (a *app) read(work func(db *engine.DB) error) error {
	if err := hint.Data(a.dirFlag, a.data); err != nil {
		return err
	}
	db, err := engine.Open(filepath.ToSlash(a.dir()), engine.Options{ReadOnly: true, SegmentBytes: smallLog, Logger: slog.New(warnings{a.stderr})})
	if errors.Is(err, fs.ErrNotExist) && !a.exists() {
		return a.missing()
	}
	if err != nil {
		return hint.Open(err)
	}
	return use(a, db, work)
}

// warnings is a slog.Handler that prints the warnings of a database that is open for reading, also
// with --quiet: data that was acknowledged can be missing in the output.
type warnings struct{ stderr io.Writer }

func (warnings) Enabled(_ context.Context, l slog.Level) bool { return l == slog.LevelWarn }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "dir" {
			r.Message = fmt.Sprintf("%s: %s", a.Value, r.Message)
		}
		return true
	})
	_, err := fmt.Fprintf(w.stderr, "tablerock: %s\n", r.Message)
	return err
}

func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

func (w warnings) WithGroup(string) slog.Handler { return w }

// use does the work and closes s. If a table was not found, it sets a.tables for
// suggestions.
func use[S store.Store](a *app, s S, work func(s S) error) error {
	err := work(s)
	if errors.Is(err, store.ErrTableNotFound) {
		there, _ := s.Tables(a.ctx, "", 0) // without names there is no suggestion
		for _, t := range there {
			a.tables = append(a.tables, t.Name)
		}
	}
	return errors.Join(err, s.Close())
}

// dataName returns where the data is, for messages.
func (a *app) dataName() string {
	if a.server != nil {
		return a.server.String()
	}
	return a.dir()
}

// useServer does the work on the server.
func (a *app) useServer(work func(s store.Store) error) error {
	s, err := a.server.Open(a.ctx, true, a.note)
	if err != nil {
		return err
	}
	return use(a, s, work)
}

// readStore opens the store read-only: the database, without its lock, or the server.
func (a *app) readStore(work func(s store.Store) error) error {
	if a.server != nil {
		return a.useServer(work)
	}
	return a.read(func(db *engine.DB) error { return work(db) })
}

// writeStore opens the store for writing. A database must exist.
func (a *app) writeStore(work func(s store.Store) error) error {
	if a.server == nil && !a.exists() {
		return a.missing()
	}
	return a.createStore(engine.Options{SegmentBytes: smallLog}, work)
}

// createStore opens the store for writing and creates the database if there is none. An
// *engine.DB is one of this process. If "tablerock serve" has the database, the work is done
// through that server.
func (a *app) createStore(o engine.Options, work func(s store.Store) error) error {
	if a.server != nil {
		return a.useServer(work)
	}
	begun := false
	err := a.create(o, func(db *engine.DB) error {
		begun = true
		return work(db)
	})
	if begun || !errors.Is(err, store.ErrLocked) {
		return err
	}
	s, localErr := local.Open(a.ctx, a.data, a.account, a.note)
	if localErr != nil {
		return cmp.Or(a.ctx.Err(), err) // err names the holder
	}
	a.note("working through the server that has %s", a.dir())
	return hint.Local(use[store.Store](a, s, work))
}

// reader reads entities. It is a snapshot of a database, or the store of a server.
type reader interface {
	Get(ctx context.Context, table string, key edm.Key) (edm.Entity, error)
	transfer.Querier
}

// exists reports whether the account's directory contains a database.
func (a *app) exists() bool {
	_, err := os.Stat(filepath.Join(a.dir(), filename.Manifest))
	return !errors.Is(err, fs.ErrNotExist)
}

// write opens an existing database for writing.
func (a *app) write(o engine.Options, work func(db *engine.DB) error) error {
	if !a.exists() {
		return a.missing()
	}
	return a.create(o, work)
}

// create opens the database for writing and creates it if there is none.
func (a *app) create(o engine.Options, work func(db *engine.DB) error) error {
	if err := hint.Data(a.dirFlag, a.data); err != nil {
		return err
	}
	if warning := hint.UnrelatedFiles(a.dirFlag, a.data, a.account); warning != "" {
		a.note("%s", warning)
	}
	db, err := engine.Open(filepath.ToSlash(a.dir()), o)
	if err != nil {
		return hint.Open(err)
	}
	return use(a, db, work)
}

// snapshot opens the database read-only and takes a snapshot. A server has none.
func (a *app) snapshot(work func(s reader) error) error {
	if a.server != nil {
		return a.useServer(func(s store.Store) error { return work(s) })
	}
	return a.read(func(db *engine.DB) error {
		s, err := db.Snapshot()
		if err != nil {
			return err
		}
		return errors.Join(work(s), s.Close())
	})
}
