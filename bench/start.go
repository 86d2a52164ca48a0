package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/tablerock-db/tablerock/internal/filename"
)

// Start is the state of the database before a workload.
type Start uint8

const (
	Empty     Start = iota // no database
	Loaded                 // all entities, loaded in random order and compacted
	Logged                 // all entities, in random order in the log of a process that ended without Close
	Closed                 // Logged, then opened and closed
	Written                // all entities, written in random order to an empty database and closed
	Fresh                  // the first 100,000 entities, written to an empty database and closed
	TwoRuns                // all entities, in two sorted runs that do not overlap
	EightRuns              // all entities, in eight sorted runs that overlap
)

// freshLen is the number of entities of Fresh.
const freshLen = 100_000

var startNames = [...]string{"empty", "loaded", "logged", "closed", "written", "fresh", "two-runs", "eight-runs"}

// String returns the name.
func (s Start) String() string { return startNames[s] }

// ParseStart returns the Start of a name.
func ParseStart(name string) (Start, error) {
	if i := slices.Index(startNames[:], name); i >= 0 {
		return Start(i), nil
	}
	return 0, fmt.Errorf("start %q: not one of %v", name, startNames)
}

// Prepare makes a database in dir, which must not exist, and writes it to stable storage.
func (r *Run) Prepare(ctx context.Context, s Start, dir string) error {
	r.ctx = ctx
	if err := r.Init(ctx); err != nil {
		return err
	}
	var err error
	switch s {
	case Logged:
		err = r.prepareLogged(dir)
	case Closed:
		if err = r.prepareLogged(dir); err == nil {
			err = r.prepare(s, dir, func(DB) error { return nil })
		}
	case TwoRuns:
		err = r.prepareRuns(s, dir, 2, func(i int) int { return i })
	case EightRuns:
		err = r.prepareRuns(s, dir, 8, r.random)
	case Written, Fresh:
		n := r.Data.Len()
		if s == Fresh {
			n = min(n, freshLen)
		}
		err = r.prepare(s, dir, func(db DB) error { return r.putAll(db.Session(), 0, n, r.random) })
	default:
		err = r.prepare(s, dir, func(db DB) error {
			if err := r.putAll(db.Session(), 0, r.Data.Len(), r.random); err != nil {
				return err
			}
			return db.Compact()
		})
	}
	if err == nil {
		err = syncFiles(dir)
	}
	if err != nil {
		return fmt.Errorf("prepare %v: %w", s, err)
	}
	return nil
}

func (r *Run) prepare(s Start, dir string, fill func(db DB) error) error {
	db, err := r.Store.Open(r.ctx, dir, r.options(Workload{Start: s}))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return errors.Join(fill(db), db.Close())
}

// prepareRuns flushes each of n parts of the entities, in the given order, to a run.
func (r *Run) prepareRuns(s Start, dir string, n int, order func(int) int) error {
	return r.prepare(s, dir, func(db DB) error {
		for i := range n {
			from, to := r.Data.Len()*i/n, r.Data.Len()*(i+1)/n
			if err := r.putAll(db.Session(), from, to, order); err != nil {
				return err
			}
			if err := db.Flush(); err != nil {
				return err
			}
		}
		return nil
	})
}

// loggers is the number of concurrent writers of prepareLogged.
const loggers = 64

// prepareLogged makes a database in dir with all entities in its log, as if the process
// had been killed: it copies the files of an open database after durable writes. It
// fails if any entity is in an sstable, so that all stores replay the same.
func (r *Run) prepareLogged(dir string) error {
	live := dir + ".live"
	o := r.options(Workload{Start: Logged})
	o.Durable = true
	db, err := r.Store.Open(r.ctx, live, o)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	errs := make([]error, loggers)
	var wg sync.WaitGroup
	for i := range loggers {
		wg.Go(func() {
			s := db.Session()
			from, to := r.Data.Len()*i/loggers, r.Data.Len()*(i+1)/loggers
			errs[i] = r.putAll(s, from, to, r.random)
		})
	}
	wg.Wait()
	err = errors.Join(errs...)
	if err == nil {
		err = copyIdle(r.ctx, live, dir, copyDir)
	}
	if err = errors.Join(err, db.Close(), os.RemoveAll(live)); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && slices.Contains(sstableExts, filepath.Ext(name)) {
			err = fmt.Errorf("%s exists, want all entities in the log", name)
		}
		return err
	})
}

// sstableExts are the extensions of the sstables of all stores.
var sstableExts = []string{string(filename.SSTable), ".ldb"}

// putAll writes the entities with indexes from to to of an order, in batches of 100,
// each with the properties of its index.
func (r *Run) putAll(s Session, from, to int, order func(int) int) error {
	batch := Batch(batchLen)
	for at := from; at < to; at += batchLen {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		entities := batch[:min(batchLen, to-at)]
		for i := range entities {
			r.Data.Fill(order(at+i), at+i, &entities[i])
		}
		if err := s.Put(entities); err != nil {
			return err
		}
		r.count(len(entities))
	}
	return nil
}
