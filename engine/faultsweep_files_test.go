package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

// TestFlushAfterOneFault flushes one segment and several.
func TestFlushAfterOneFault(t *testing.T) {
	for _, c := range []sweepCase{
		{
			name:   "one segment",
			before: func(s *sweep) { s.mustWrite("p", 0, 10, 100); check(s.T, "Flush", s.db.Flush(s.Context())) },
			opened: func(s *sweep) { s.mustWrite("p", 5, 15, 100) },
			do:     func(s *sweep) error { return s.db.Flush(s.Context()) },
		},
		{
			name:   "several segments",
			opened: func(s *sweep) { s.mustWrite("p", 0, 100, 1500) },
			do: func(s *sweep) error {
				return errors.Join(s.write("q", 0, 1, 100), s.db.Flush(s.Context()))
			},
		},
		{
			name:  "writes that fill segments",
			every: 3,
			do:    func(s *sweep) error { return s.write("p", 0, 14, 20<<10) },
		},
	} {
		t.Run(c.name, c.run)
	}
}

// runs writes n runs of overlapping entities.
func (s *sweep) runs(n, rows, size int) {
	s.Helper()
	for range n {
		s.mustWrite("p", 0, rows, size)
		check(s.T, "Flush", s.db.Flush(s.Context()))
	}
}

// steps does the background work until there is none.
func steps(s *sweep) error {
	for {
		if worked, err := s.db.Step(s.Context()); err != nil || !worked {
			return err
		}
	}
}

// TestCompactAfterOneFault compacts runs, with and without a snapshot of the first.
func TestCompactAfterOneFault(t *testing.T) {
	compact := func(s *sweep) error { return s.db.Compact(s.Context()) }
	for _, c := range []sweepCase{
		{
			name:   "Compact",
			before: func(s *sweep) { s.runs(3, 20, 100) },
			opened: func(s *sweep) { s.mustWrite("p", 0, 3, 100) },
			do:     compact,
			after:  func(s *sweep) { s.oneRun() },
		},
		{
			name:   "Compact of several files",
			every:  3,
			before: func(s *sweep) { s.runs(2, 10, 20<<10) },
			do:     compact,
			after:  func(s *sweep) { s.oneRun() },
		},
		{
			name:   "steps",
			before: func(s *sweep) { s.runs(4, 20, 100) },
			do:     steps,
		},
		{
			name: "a dropped table",
			before: func(s *sweep) {
				check(s.T, "CreateTable", s.db.CreateTable(s.Context(), "Dropped"))
				for i := range 5 {
					_, err := s.db.Apply(s.Context(), "Dropped", store.Insert(entity("p", fmt.Sprint(i), 1, 100)))
					check(s.T, "Apply", err)
				}
				s.runs(1, 5, 100)
				check(s.T, "DeleteTable", s.db.DeleteTable(s.Context(), "Dropped"))
			},
			do: compact,
		},
		{
			name:   "deletes",
			before: func(s *sweep) { s.runs(2, 10, 100) },
			opened: func(s *sweep) {
				for i := range 5 {
					key := edm.Key{Partition: "p", Row: fmt.Sprintf("%06d", i)}
					apply(s.T, s.db, store.Delete(key, store.Any))
					delete(s.rows, sweepKey(key))
				}
			},
			do:    compact,
			after: func(s *sweep) { s.oneRun() },
		},
	} {
		t.Run(c.name, c.run)
	}
}

// oneRun compares the figures of a database that is compacted, but for one run of one entity.
func (s *sweep) oneRun() {
	s.Helper()
	check(s.T, "Compact", s.db.Compact(s.Context()))
	stats, err := s.db.Stats()
	check(s.T, "Stats", err)
	if stats.RunsMax != 1 || stats.SpaceAmp != 1 || stats.Entities != int64(len(s.rows)) {
		s.Fatalf("%d runs, space amplification %v, %d entities, want 1, 1 and %d", stats.RunsMax, stats.SpaceAmp, stats.Entities, len(s.rows))
	}
}

// TestSnapshotAfterOneFault compacts beside a snapshot and a cursor, which keep what they see
// and let go of it when they are closed.
func TestSnapshotAfterOneFault(t *testing.T) {
	sweepCase{
		before: func(s *sweep) { s.runs(2, 20, 100) },
		do: func(s *sweep) error {
			snap, err := s.db.Snapshot()
			check(s.T, "Snapshot", err)
			before := len(s.rows)
			err = s.write("p", 0, 10, 100)
			err = errors.Join(err, s.db.Compact(s.Context()))
			n := 0
			for _, qerr := range store.Entities(snap.Query(s.Context(), table, store.Query{})) {
				if err = errors.Join(err, qerr); qerr == nil {
					n++
				}
			}
			if err == nil && n != before {
				s.Fatalf("the snapshot has %d entities, want %d", n, before)
			}
			check(s.T, "Close", snap.Close())
			return err
		},
		after: func(s *sweep) { s.oneRun() },
	}.run(t)
}

// TestLoadAfterOneFault loads entities in several installs, in the order of their keys and not.
func TestLoadAfterOneFault(t *testing.T) {
	for _, sorted := range []bool{true, false} {
		t.Run(fmt.Sprintf("sorted=%t", sorted), sweepCase{
			every:  4,
			set:    func(o *engine.Options) { o.Testing.LoadBytes = 4 << 10 },
			before: func(s *sweep) { s.runs(1, 20, 100) },
			opened: func(s *sweep) { s.mustWrite("p", 0, 2, 100) },
			do: func(s *sweep) error {
				var list []edm.Entity
				for i := range 30 {
					if !sorted {
						i = i * 7 % 30
					}
					list = append(list, s.entity("p", fmt.Sprintf("%06d", i), 300))
				}
				return s.load(list)
			},
		}.run)
	}
}
