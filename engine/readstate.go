package engine

import (
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/sstable"
)

// readState is the memtables and the version of the files at one instant. It is
// immutable.
//
// A reader pins it before it reads the first memtable. Otherwise a flush that moves
// rows from a memtable to an sstable could hide them. Pins are counted in shards, so
// that readers on different processors write different cache lines.
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

// newReadState returns a readState that references the memtables and takes over the
// caller's reference to the version.
func newReadState(mems []*commitlog.Segment, version *lsm.Version) *readState {
	for _, m := range mems {
		m.Ref()
	}
	return &readState{mems: mems, version: version}
}

// unpin undoes one currentState.pin of the same shard.
func (s *readState) unpin(shard uint64) {
	if s.pins[shard%pinShards].n.Add(-1) == 0 && s.retired.Load() {
		s.tryFree()
	}
}

// retire frees s when nothing pins it. Call it once, after s has been replaced.
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

// get returns the newest version of key with a sequence number of at most snap, or
// nil if there is none or it is a tombstone. The row is mem or disk. It is valid
// while s is pinned and disk is not released.
func (s *readState) get(key []byte, partHash, keyHash, snap uint64, mem *codec.Row, disk *sstable.Row) (edm.Row, error) {
	for _, m := range s.mems {
		if _, kind, ok := m.Table.Get(key, partHash, snap, mem); ok {
			if kind == codec.KindDelete {
				return nil, nil
			}
			return mem, nil
		}
	}
	_, kind, ok, err := s.version.Get(key, keyHash, snap, disk)
	if err != nil || !ok || kind == codec.KindDelete {
		return nil, err
	}
	if err := disk.Load(); err != nil {
		return nil, err
	}
	return &disk.Row, nil
}

// probeFilters sets Maybe for the keys that may have an entry. All keys are in the
// partition with the hash partHash. It reads nothing from disk.
func (s *readState) probeFilters(partHash uint64, list []lsm.Candidate) {
	var row codec.Row
	for _, m := range s.mems {
		for i := range list {
			if _, _, ok := m.Table.Get(list[i].Key, partHash, codec.MaxSeq, &row); ok {
				list[i].Maybe = true
			}
		}
	}
	s.version.ProbeFilters(list)
}

// currentState has the readState of new reads. The zero currentState has none. Its
// methods may be called concurrently.
type currentState struct {
	mu    sync.Mutex // held to replace state
	state atomic.Pointer[readState]
}

// load returns the current state without a pin, nil if there is none.
func (c *currentState) load() *readState { return c.state.Load() }

// pin returns the current state, pinned until unpin is called with the same shard,
// or nil if there is none.
func (c *currentState) pin(shard uint64) *readState {
	for {
		s := c.state.Load()
		if s == nil {
			return nil
		}
		s.pins[shard%pinShards].n.Add(1)
		// retire comes after s is replaced and reads the counters. If s is still
		// current here, it will see this pin.
		if c.state.Load() == s {
			return s
		}
		s.unpin(shard)
	}
}

// start makes s the first state.
func (c *currentState) start(s *readState) { c.state.Store(s) }

// replace replaces the current state by next(its memtables). It calls next under
// mu.
func (c *currentState) replace(next func(mems []*commitlog.Segment) *readState) {
	c.mu.Lock()
	old := c.state.Load()
	c.state.Store(next(old.mems))
	c.mu.Unlock()
	old.retire()
}

// end removes the current state and returns it for the caller to retire, nil if
// there is none.
func (c *currentState) end() *readState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Swap(nil)
}
