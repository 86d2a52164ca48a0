// Package readstate has what a read reads: memtables and files of one instant.
package readstate

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/sstable"
)

// State is the memtables and the version of the files at one instant. It is
// immutable.
//
// A reader pins it before it reads the first memtable. Otherwise a flush that moves
// rows from a memtable to an sstable could hide them. Pins are counted in shards, so
// that readers on different processors write different cache lines.
type State struct {
	Mems    []*commitlog.Segment // newest first
	Version *lsm.Version

	pins    [pinShards]pinShard
	retired atomic.Bool
	freed   atomic.Bool
}

// MemStats are sums over the memtables of a State.
type MemStats struct {
	Bytes    int64 // of the memtables and of the log
	LogBytes int64 // of records of the log that are not flushed
	Rows     int64 // tombstones included
	// Each has the parts by segment, oldest first.
	Each []struct{ Segment, Rows, Bytes, LogBytes int64 }
}

// MemStats returns the sums over the memtables.
func (s *State) MemStats() (m MemStats) {
	m.Each = slices.Grow(m.Each, len(s.Mems))[:len(s.Mems)]
	for i, seg := range s.Mems {
		one := &m.Each[len(s.Mems)-1-i]
		one.Segment, one.Rows, one.Bytes = int64(seg.Number), int64(seg.Table.Len()), seg.Table.Bytes()+seg.Tail()
		if !seg.Empty() {
			one.LogBytes = seg.Tail()
		}
		m.Bytes, m.LogBytes, m.Rows = m.Bytes+one.Bytes, m.LogBytes+one.LogBytes, m.Rows+one.Rows
	}
	return m
}

const pinShards = 16

type pinShard struct {
	n atomic.Int64
	_ [56]byte
}

// New returns a State that references the memtables and takes over the
// caller's reference to the version.
func New(mems []*commitlog.Segment, version *lsm.Version) *State {
	for _, m := range mems {
		m.Ref()
	}
	return &State{Mems: mems, Version: version}
}

// Unpin undoes one Current.Pin of the same shard.
func (s *State) Unpin(shard uint64) {
	if s.pins[shard%pinShards].n.Add(-1) == 0 && s.retired.Load() {
		s.tryFree()
	}
}

// retire frees s when nothing pins it. It is called once, after s has been replaced.
func (s *State) retire() {
	s.retired.Store(true)
	s.tryFree()
}

func (s *State) tryFree() {
	for i := range s.pins {
		if s.pins[i].n.Load() != 0 {
			return
		}
	}
	if !s.freed.CompareAndSwap(false, true) {
		return
	}
	for _, m := range s.Mems {
		m.Unref()
	}
	s.Version.Unref()
}

// Get returns the newest version of key with a sequence number of at most snap, or
// nil if there is none or it is a tombstone. The row is mem or disk, whose values are
// loaded unless it is Lazy. It is valid while s is pinned and disk is not released.
func (s *State) Get(key []byte, partHash, keyHash, snap uint64, mem *codec.Row, disk *sstable.Row) (edm.Row, error) {
	for _, m := range s.Mems {
		if _, kind, ok := m.Table.Get(key, partHash, snap, mem); ok {
			if kind == codec.KindDelete {
				return nil, nil
			}
			return mem, nil
		}
	}
	_, kind, ok, err := s.Version.Get(key, keyHash, snap, disk)
	if err != nil || !ok || kind == codec.KindDelete {
		return nil, err
	}
	if !disk.Lazy {
		err = disk.Load()
	}
	if err != nil {
		return nil, err
	}
	return &disk.Row, nil
}

// ProbeFilters sets Maybe for the keys that may have an entry. All keys are in the
// partition with the hash partHash. It reads nothing from disk.
func (s *State) ProbeFilters(partHash uint64, list []lsm.Candidate) {
	var row codec.Row
	for _, m := range s.Mems {
		for i := range list {
			if _, _, ok := m.Table.Get(list[i].Key, partHash, codec.MaxSeq, &row); ok {
				list[i].Maybe = true
			}
		}
	}
	s.Version.ProbeFilters(list)
}

// Current has the State of new reads. The zero Current has none. Its
// methods may be called concurrently.
type Current struct {
	mu    sync.Mutex // held to replace state
	state atomic.Pointer[State]
	// replaced has the states that Retire will free.
	// +checklocks:mu
	replaced []*State
}

// Load returns the current state without a pin, nil if there is none.
func (c *Current) Load() *State { return c.state.Load() }

// Pin returns the current state, pinned until Unpin is called with the same shard,
// or nil if there is none.
func (c *Current) Pin(shard uint64) *State {
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
		s.Unpin(shard)
	}
}

// Start makes s the first state.
func (c *Current) Start(s *State) { c.state.Store(s) }

// Replace replaces the current state by next(its memtables). It calls next under mu. Call Retire
// later: to free the state before can take long, and a caller may hold the lock of the log.
func (c *Current) Replace(next func(mems []*commitlog.Segment) *State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.state.Load()
	c.state.Store(next(old.Mems))
	c.replaced = append(c.replaced, old)
}

// Add makes seg the newest memtable. The version stays the same: during a flush the tree has one with the rows of memtables
// that the state still has, and they would be counted twice.
func (c *Current) Add(seg *commitlog.Segment) {
	c.Replace(func(mems []*commitlog.Segment) *State {
		version := c.state.Load().Version
		version.Ref()
		return New(append([]*commitlog.Segment{seg}, mems...), version)
	})
}

// Retire frees the states that were replaced or ended, each when nothing pins it. It removes
// files that nothing else needs.
func (c *Current) Retire() {
	c.mu.Lock()
	replaced := c.replaced
	c.replaced = nil
	c.mu.Unlock()
	for _, s := range replaced {
		s.retire()
	}
}

// End removes the current state. Call Retire later, as after Replace.
func (c *Current) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.state.Swap(nil); old != nil {
		c.replaced = append(c.replaced, old)
	}
}
