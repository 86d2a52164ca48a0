package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestOpenAfterOneFault opens databases, some after they are closed.
func TestOpenAfterOneFault(t *testing.T) {
	open := func(s *sweep) error {
		db, err := engine.Open("db", s.o)
		if err == nil {
			s.db = db
		}
		return err
	}
	closeAndOpen := func(s *sweep) error {
		if db := s.db; db != nil {
			s.db = nil
			if err := db.Close(); err != nil {
				return err
			}
		}
		return open(s)
	}
	for _, c := range []sweepCase{
		{
			name:   "Open of several segments",
			every:  2,
			before: func(s *sweep) { s.runs(1, 5, 100); s.mustWrite("p", 0, 9, 20<<10) },
			closed: true,
			do:     open,
		},
		{
			name: "Open of a closed database",
			before: func(s *sweep) {
				s.runs(1, 5, 100)
				s.mustWrite("p", 0, 5, 100)
				check(s.T, "Close", s.db.Close())
				s.disk = s.disk.Clone()
			},
			closed: true,
			do:     open,
		},
		{
			name: "Open of a database whose log was not flushed",
			before: func(s *sweep) {
				s.runs(1, 5, 100)
				s.mustWrite("p", 0, 5, 20<<10)
				check(s.T, "Close", closeAtOnce(s.db))
			},
			closed: true,
			do:     open,
		},
		{
			name:   "Close",
			every:  2,
			before: func(s *sweep) { s.runs(1, 5, 100) },
			opened: func(s *sweep) { s.mustWrite("p", 2, 7, 20<<10) },
			closed: true,
			do:     closeAndOpen,
		},
		{
			name:   "Close without a flush",
			every:  2,
			before: func(s *sweep) { s.runs(1, 5, 100) },
			opened: func(s *sweep) { s.mustWrite("p", 2, 7, 20<<10) },
			closed: true,
			do: func(s *sweep) error {
				if db := s.db; db != nil {
					s.db = nil
					if err := closeAtOnce(db); err != nil {
						return err
					}
				}
				return open(s)
			},
		},
		{
			name:   "Close of an idle database",
			before: func(s *sweep) { s.runs(1, 5, 100) },
			opened: func(s *sweep) {},
			closed: true,
			do:     closeAndOpen,
		},
	} {
		t.Run(c.name, c.run)
	}
}

// TestTablesAfterOneFault creates and drops tables and sets metadata.
func TestTablesAfterOneFault(t *testing.T) {
	create := func(s *sweep) error {
		err := s.db.CreateTable(s.Context(), "Other")
		if errors.Is(err, store.ErrTableExists) {
			err = nil
		}
		return err
	}
	tables := func(want int) func(s *sweep) {
		return func(s *sweep) {
			list, err := s.db.Tables(s.Context(), "", 0)
			check(s.T, "Tables", err)
			stats, err := s.db.Stats()
			if check(s.T, "Stats", err); len(list) != want || stats.Tables != want {
				s.Fatalf("tables %v, %d counted, want %d", list, stats.Tables, want)
			}
		}
	}
	for _, c := range []sweepCase{
		{name: "create", before: func(s *sweep) { s.runs(1, 5, 100) }, do: create, after: tables(2)},
		{
			name: "drop",
			before: func(s *sweep) {
				s.runs(1, 5, 100)
				check(s.T, "CreateTable", create(s))
				_, err := s.db.Apply(s.Context(), "Other", store.Insert(entity("p", "r", 1, 100)))
				check(s.T, "Apply", err)
			},
			do: func(s *sweep) error {
				err := s.db.DeleteTable(s.Context(), "Other")
				if errors.Is(err, store.ErrTableNotFound) {
					err = nil
				}
				return err
			},
			after: tables(1),
		},
		{
			name: "metadata",
			do: func(s *sweep) error {
				return errors.Join(s.db.SetTableMeta(s.Context(), table, []byte("meta")), s.db.SetAccountMeta(s.Context(), []byte("account")))
			},
			after: func(s *sweep) {
				meta, err := s.db.TableMeta(s.Context(), table)
				account, aerr := s.db.AccountMeta(s.Context())
				if errors.Join(err, aerr) != nil || string(meta) != "meta" || string(account) != "account" {
					s.Fatalf("metadata %q, %v and %q, %v", meta, err, account, aerr)
				}
			},
		},
	} {
		t.Run(c.name, c.run)
	}
}

// TestCheckpointAfterOneFault makes checkpoints in new directories until one succeeds.
func TestCheckpointAfterOneFault(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		dirs := 0
		t.Run(fmt.Sprintf("no sync=%t", noSync), sweepCase{
			set:    func(o *engine.Options) { o.NoSync = noSync },
			before: func(s *sweep) { s.runs(2, 10, 100); check(s.T, "Close", s.db.Close()) },
			opened: func(s *sweep) { s.mustWrite("p", 5, 15, 10<<10) },
			do: func(s *sweep) error {
				dirs++
				dest := fmt.Sprintf("copy%d", dirs)
				err := s.db.Checkpoint(s.Context(), dest)
				if err != nil {
					return err
				}
				copied := mustOpen(s.T, dest, s.options(s.disk))
				s.check("checkpoint", copied)
				return copied.Close()
			},
		}.run)
	}
}

// TestBatchesAfterOneFault applies batches that share syncs.
func TestBatchesAfterOneFault(t *testing.T) {
	sweepCase{
		do: func(s *sweep) error {
			var list []edm.Entity
			var batches [][]store.Op
			for i := range 12 {
				e := s.entity(fmt.Sprint(i%5), fmt.Sprint(i), 12<<10)
				list, batches = append(list, e), append(batches, []store.Op{store.InsertOrReplace(e)})
			}
			_, err := s.db.ApplyBatches(s.Context(), table, batches)
			var each engine.BatchErrors
			for i := range list {
				switch errors.As(err, &each); {
				case each != nil:
					s.note(&list[i], each[i])
				case err == nil:
					s.note(&list[i], nil)
				}
			}
			return err
		},
	}.run(t)
}

// TestCreateAfterOneFault creates a database.
func TestCreateAfterOneFault(t *testing.T) {
	sweepCase{
		before: func(s *sweep) { check(s.T, "Close", s.db.Close()); s.disk = vfs.NewCrashMem() },
		closed: true,
		do: func(s *sweep) (err error) {
			if s.db == nil {
				if s.db, err = engine.Open("db", s.o); err != nil {
					s.db = nil
					return err
				}
			}
			if err := s.db.CreateTable(s.Context(), table); err != nil && !errors.Is(err, store.ErrTableExists) {
				return err
			}
			return s.write("p", 0, 2, 100)
		},
	}.run(t)
}
