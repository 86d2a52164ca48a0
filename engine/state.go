package engine

import (
	"sync/atomic"

	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/internal/lsm"
)

// readState is what a read looks at: every memtable and the live files. It is
// immutable; the current one stands behind DB.state.
//
// A reader pins it before it looks at the first memtable, so that a flush that
// moves rows from a memtable to a file cannot hide them from it in between.
// Pins are counted in shards: readers on different processors write different
// cache lines.
type readState struct {
	mems    []*commitlog.Segment // newest first
	version *lsm.Version
	pins    [pinShards]pinShard
	retired atomic.Bool
	freed   atomic.Bool
}

const pinShards = 16

type pinShard struct {
	n atomic.Int64
	_ [56]byte
}

func newReadState(mems []*commitlog.Segment, version *lsm.Version) *readState {
	for _, m := range mems {
		m.Ref()
	}
	return &readState{mems: mems, version: version}
}

// pin returns the current state, held until unpin is called with the same
// shard, or nil if the database is closed.
func (db *DB) pin(shard uint64) *readState {
	for {
		s := db.state.Load()
		if s == nil {
			return nil
		}
		n := &s.pins[shard%pinShards].n
		n.Add(1)
		// Whoever retires s swaps DB.state first and reads the counters after:
		// if s is still current here, it will see this pin.
		if db.state.Load() == s {
			return s
		}
		s.unpin(shard)
	}
}

func (s *readState) unpin(shard uint64) {
	if s.pins[shard%pinShards].n.Add(-1) == 0 && s.retired.Load() {
		s.tryFree()
	}
}

// retire is called once, after s has been replaced.
func (s *readState) retire() {
	s.retired.Store(true)
	s.tryFree()
}

func (s *readState) tryFree() {
	for i := range s.pins {
		if s.pins[i].n.Load() != 0 {
			return
		}
	}
	if !s.freed.CompareAndSwap(false, true) {
		return
	}
	for _, m := range s.mems {
		m.Unref()
	}
	s.version.Unref()
}

// replaceState installs the state that change makes of the current one's
// memtables, with the tree's current version.
func (db *DB) replaceState(change func(mems []*commitlog.Segment) []*commitlog.Segment) {
	db.stateMu.Lock()
	old := db.state.Load()
	version := db.tree.Version()
	db.runs.Store(int64(version.RunsMax()))
	db.state.Store(newReadState(change(old.mems), version))
	db.stateMu.Unlock()
	old.retire()
}
