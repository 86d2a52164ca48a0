package engine

import (
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/arena"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/wal"
)

// memSegment is a log segment, the memory that mirrors it byte for byte, and
// the memtable that indexes that memory. The three are born, frozen and dropped
// together.
type memSegment struct {
	number uint64
	memory *arena.Memory
	image  []byte
	table  *memtable.Table
	// log writes the segment; nil for one that was recovered.
	log *wal.Segment
	// refs counts the read states that hold the segment.
	refs atomic.Int32
	// appliedSeq is the last sequence number in the memtable.
	appliedSeq atomic.Uint64

	// opened says that the segment has its file. Only a leader, or in NoSync
	// mode the holder of DB.out, touches it.
	opened bool
	// written is how far NoSync mode has handed the segment to the file system.
	written atomic.Int64
	// end is where the records of a recovered segment end.
	end int64

	// What follows is guarded by DB.log.mu until the segment is frozen.

	shapes  map[*codec.Shape]uint16
	lastSeq uint64 // the last sequence number appended
}

// tail returns where the records of m end.
func (m *memSegment) tail() int64 {
	if m.log == nil {
		return m.end
	}
	return m.log.Tail()
}

// empty reports whether m holds no record.
func (m *memSegment) empty() bool { return m.tail() <= wal.HeaderLen }

// unref gives up one read state's hold on the segment's memory.
func (m *memSegment) unref() {
	if m.refs.Add(-1) == 0 {
		m.memory.Free()
	}
}

// readState is what a read looks at: every memtable and the live files. It is
// immutable; the current one stands behind DB.state.
//
// A reader pins it before it looks at the first memtable, so that a flush that
// moves rows from a memtable to a file cannot hide them from it in between.
// Pins are counted in shards: readers on different processors write different
// cache lines.
type readState struct {
	mems    []*memSegment // newest first
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

func newReadState(mems []*memSegment, version *lsm.Version) *readState {
	for _, m := range mems {
		m.refs.Add(1)
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
		m.unref()
	}
	s.version.Unref()
}

// replaceState installs the state that change makes of the current one's
// memtables, with the tree's current version.
func (db *DB) replaceState(change func(mems []*memSegment) []*memSegment) {
	db.stateMu.Lock()
	old := db.state.Load()
	version := db.tree.Version()
	db.runs.Store(int64(version.RunsMax()))
	db.state.Store(newReadState(change(old.mems), version))
	db.stateMu.Unlock()
	old.retire()
}
