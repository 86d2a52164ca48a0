// Package idleseal seals the log when writes stop coming.
package idleseal

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/engine/internal/space"
)

const (
	// sealAfter is how long the log is idle before it is sealed.
	sealAfter = 100 * time.Millisecond
	// listAfter is how long a sealed log is idle before the manifest lists its
	// end. A manifest costs more than a seal, so occasional writes do not cause
	// one each.
	listAfter = time.Second
)

// Sealer seals a log. Set the exported fields before the first call of AfterWrite, which
// may be called concurrently.
type Sealer struct {
	Log    *commitlog.Log
	List   func() error // lists the end of the log in the manifest
	Logger *slog.Logger
	// Begin admits work on the database, or returns an error. End ends it.
	Begin func() error
	End   func()
	After func(d time.Duration, f func()) (stop func() bool)

	armed atomic.Bool
}

// AfterWrite arranges for the log to be sealed when writes stop coming.
func (s *Sealer) AfterWrite() {
	if s.armed.Load() || !s.armed.CompareAndSwap(false, true) {
		return
	}
	s.seal(s.Log.Writes())
}

// seal seals the log after sealAfter, or tries again if there were writes since the count
// writes.
func (s *Sealer) seal(writes uint64) {
	s.After(sealAfter, func() {
		if s.Begin() != nil {
			return
		}
		defer s.End()
		if now := s.Log.Writes(); now != writes {
			s.seal(now)
			return
		}
		s.armed.Store(false)
		writes = s.Log.Writes() // a write that came before armed was false has not armed it
		if err := s.Log.Seal(); err != nil {
			s.Logger.Error("seal of the idle log failed", "cause", err)
			return
		}
		s.list(writes)
	})
}

// list lists the end of the sealed log after listAfter, unless there were writes since the
// count writes.
func (s *Sealer) list(writes uint64) {
	s.After(listAfter, func() {
		if s.Begin() != nil {
			return
		}
		defer s.End()
		if s.Log.Writes() != writes {
			return
		}
		if err := s.List(); err != nil {
			level := slog.LevelError
			if space.NoSpace(err) {
				level = slog.LevelWarn // the next manifest lists it
			}
			s.Logger.Log(context.Background(), level, "listing the end of the idle log in the manifest failed", "cause", err)
		}
	})
}
