package engine_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

// TestNoSyncAfterOneFault writes, flushes and loads without syncs.
func TestNoSyncAfterOneFault(t *testing.T) {
	set := func(o *engine.Options) { o.NoSync, o.Testing.LoadBytes = true, 4<<10 }
	closed := func(s *sweep) { s.runs(1, 5, 100); check(s.T, "Close", s.db.Close()) }
	for _, c := range []sweepCase{
		{
			name: "writes", set: set, before: closed, every: 3,
			do: func(s *sweep) error { return errors.Join(s.write("p", 0, 14, 20<<10), s.db.Flush(s.Context())) },
		},
		{
			name: "load", set: set, before: closed, every: 3,
			do: func(s *sweep) error {
				var list []edm.Entity
				for i := range 30 {
					list = append(list, s.entity("p", fmt.Sprintf("%06d", i), 300))
				}
				return errors.Join(s.write("p", 0, 2, 100), s.load(list))
			},
		},
	} {
		t.Run(c.name, c.run)
	}
}

// TestArchiveAfterOneFault writes, flushes and loads beside an archive.
func TestArchiveAfterOneFault(t *testing.T) {
	sweepCase{
		every:  3,
		set:    func(o *engine.Options) { o.Archive, o.Testing.LoadBytes = &memArchive{}, 4<<10 },
		before: func(s *sweep) { s.runs(1, 5, 100) },
		do: func(s *sweep) error {
			err := errors.Join(s.write("p", 0, 4, 20<<10), s.db.Flush(s.Context()))
			var list []edm.Entity
			for i := range 20 {
				list = append(list, s.entity("p", fmt.Sprintf("%06d", i), 300))
			}
			return errors.Join(err, s.load(list), steps(s))
		},
	}.run(t)
}

// TestFullDiskAfterOneFault has a disk of limited size, whose database keeps a reserve.
func TestFullDiskAfterOneFault(t *testing.T) {
	before := func(s *sweep) {
		check(s.T, "Close", s.db.Close())
		s.disk.SetCapacity(8 << 20)
		s.db = mustOpen(s.T, "db", s.options(s.disk))
		s.runs(2, 10, 1000)
	}
	after := func(s *sweep) {
		stats, err := s.db.Stats()
		if check(s.T, "Stats", err); stats.ReserveBytes != 512<<10 {
			s.Fatalf("%d bytes are reserved, want %d", stats.ReserveBytes, 512<<10)
		}
	}
	for _, c := range []sweepCase{
		{
			name: "writes", before: before, after: after, every: 9,
			do: func(s *sweep) error {
				return errors.Join(s.write("p", 0, 14, 20<<10), s.db.Flush(s.Context()), steps(s))
			},
		},
		{
			name: "Load", before: before, after: after, every: 3,
			set: func(o *engine.Options) { o.Testing.LoadBytes = 4 << 10 },
			do: func(s *sweep) error {
				var list []edm.Entity
				for i := range 20 {
					list = append(list, s.entity("p", fmt.Sprintf("%06d", i), 300))
				}
				return s.load(list)
			},
		},
		{
			name: "Compact", before: before, after: after,
			do: func(s *sweep) error { return s.db.Compact(s.Context()) },
		},
		{
			name: "Open", before: before, after: after, closed: true, every: 2,
			do: func(s *sweep) error {
				db, err := engine.Open("db", s.o)
				if err == nil {
					s.db = db
				}
				return err
			},
		},
	} {
		t.Run(c.name, c.run)
	}
}

// TestBackgroundAfterOneFault does the background work in a goroutine beside writers.
func TestBackgroundAfterOneFault(t *testing.T) {
	writers := func(s *sweep, size int, beside func() error) error {
		errs := make([]error, 4)
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() { errs[i] = s.write(fmt.Sprint(i), 0, 10, size) })
		}
		wg.Go(func() { errs[3] = beside() })
		wg.Wait()
		return errors.Join(errs...)
	}
	after := func(s *sweep) {
		if worked, err := s.db.Step(s.Context()); worked || err != nil {
			s.Fatalf("Step: %t, %v, want nothing to do", worked, err)
		}
		stats, err := s.db.Stats()
		if check(s.T, "Stats", err); stats.ReserveBytes != 0 && stats.ReserveBytes != 512<<10 {
			s.Fatalf("%d bytes are reserved, want %d", stats.ReserveBytes, 512<<10)
		}
	}
	for _, c := range []sweepCase{
		{
			name: "stalls", background: true, every: 37, after: after,
			do: func(s *sweep) error { return writers(s, 20<<10, func() error { return nil }) },
		},
		{
			name: "Load", background: true, every: 17, after: after,
			set: func(o *engine.Options) { o.Testing.LoadBytes = 200 << 10 },
			do: func(s *sweep) error {
				return writers(s, 1000, func() error {
					var list []edm.Entity
					for i := range 30 {
						list = append(list, s.entity("p", fmt.Sprintf("%06d", i), 10<<10))
					}
					return s.load(list)
				})
			},
		},
		{
			name: "Compact", background: true, every: 17, after: after,
			before: func(s *sweep) { s.runs(2, 10, 1000) },
			do: func(s *sweep) error {
				return writers(s, 9000, func() error { return s.db.Compact(s.Context()) })
			},
		},
		{
			name: "limited disk", background: true, every: 37, after: after,
			before: func(s *sweep) {
				check(s.T, "Close", s.db.Close())
				s.disk.SetCapacity(8 << 20)
			},
			do: func(s *sweep) error { return writers(s, 9000, func() error { return nil }) },
		},
	} {
		t.Run(c.name, c.run)
	}
}

// TestFreeSpaceAfterOneFault deletes entities on a full disk, and inserts others.
func TestFreeSpaceAfterOneFault(t *testing.T) {
	sweepCase{
		every: 41,
		before: func(s *sweep) {
			check(s.T, "Close", s.db.Close())
			s.disk.SetCapacity(2 << 20)
			s.db = mustOpen(s.T, "db", s.options(s.disk))
			err := s.write("p", 0, 10_000, 4000)
			if !errors.Is(err, store.ErrNoSpace) {
				s.Fatalf("write: %v, want %v", err, store.ErrNoSpace)
			}
		},
		do: func(s *sweep) error {
			for i := range 100 {
				key := edm.Key{Partition: "p", Row: fmt.Sprintf("%06d", i)}
				_, err := s.db.Apply(s.Context(), table, store.Delete(key, store.Any))
				switch {
				case err == nil || errors.Is(err, store.ErrEntityNotFound):
					delete(s.rows, sweepKey(key))
				case errors.Is(err, store.ErrOutcomeUnknown):
					s.rows[sweepKey(key)] = append(s.rows[sweepKey(key)], 0)
					return err
				default:
					return err
				}
			}
			return errors.Join(steps(s), s.write("q", 0, 20, 4000))
		},
	}.run(t)
}
