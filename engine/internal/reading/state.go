// Package reading is what a read looks at: every memtable and the live files of
// one instant, pinned while it looks.
package reading

import (
	"sync/atomic"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/commitlog"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/sstable"
)

// State is the memtables and the version of one instant. It is immutable.
//
// A reader pins it before it looks at the first memtable, so that a flush that
// moves rows from a memtable to a file cannot hide them from it in between.
// Pins are counted in shards: readers on different processors write different
// cache lines.
type State struct {
	Mems    []*commitlog.Segment // newest first
	Version *lsm.Version

	pins    [pinShards]pinShard
	retired atomic.Bool
	freed   atomic.Bool
}

const pinShards = 16

type pinShard struct {
	n atomic.Int64
	_ [56]byte
}

// New returns a State, which takes hold of the memtables and over the caller's
// hold of the version.
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

// Retire is called once, after s has been replaced.
func (s *State) Retire() {
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

// Get returns the newest version of key with a sequence number of at most snap,
// nil if there is none or it is a tombstone. The row is mem or disk and lives
// as long as the state is pinned and disk is not released.
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
	if err := disk.LoadAll(); err != nil {
		return nil, err
	}
	return &disk.View, nil
}

// Sift sets Maybe of those keys, all of the partition with the hash partHash, of
// which there may be an entry. It reads nothing from disk.
func (s *State) Sift(partHash uint64, list []lsm.Candidate) {
	var row codec.Row
	for _, m := range s.Mems {
		for i := range list {
			if _, _, ok := m.Table.Get(list[i].Key, partHash, codec.MaxSeq, &row); ok {
				list[i].Maybe = true
			}
		}
	}
	s.Version.Sift(list)
}
