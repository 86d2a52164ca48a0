package commitlog

import (
	"bytes"
	"sync"

	"github.com/tablerock-db/tablerock/codec"
)

// overlay holds the commits that are in the log and not yet durable, by the
// partition of their entries. A write looks into its own partition only, where
// mostly nothing is pending.
type overlay struct {
	shards [overlayShards]overlayShard
}

const overlayShards = 64

type overlayShard struct {
	mu sync.Mutex
	// The newest commit of each partition, by codec.PartitionHash; the others
	// stand behind it.
	// +checklocks:mu
	newest map[uint64]*Commit
	_      [48]byte // shards do not share a cache line
}

// links are a commit's place in the overlay, guarded by its shard's mutex.
type links struct {
	newer, older *Commit // of the same partition
	pending      bool
}

func (o *overlay) shard(partHash uint64) *overlayShard { return &o.shards[partHash%overlayShards] }

// put makes c, which has its place in the log, the newest commit of its
// partition.
func (o *overlay) put(c *Commit) {
	s := o.shard(c.partHash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == nil {
		s.newest = make(map[uint64]*Commit)
	}
	c.links = links{older: s.newest[c.partHash], pending: true}
	if c.older != nil {
		c.older.newer = c
	}
	s.newest[c.partHash] = c
}

// has reports whether something is pending in the partition with the given
// hash.
func (o *overlay) has(partHash uint64) bool {
	s := o.shard(partHash)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest[partHash] != nil
}

// get returns the newest pending entry of key.
func (o *overlay) get(partHash, keyHash uint64, key []byte) (Pending, bool) {
	s := o.shard(partHash)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := s.newest[partHash]; c != nil; c = c.older {
		if i := c.find(keyHash, key); i >= 0 {
			return Pending{Seg: c.seg, Seq: c.firstSeq + uint64(i), off: c.offs[i], shape: c.entries[i].shape}, true
		}
	}
	return Pending{}, false
}

// find returns the place of the entry of key, -1 if c has none.
func (c *Commit) find(keyHash uint64, key []byte) int {
	tag := tagOf(keyHash)
	for from := 0; ; from++ {
		i := bytes.IndexByte(c.tags[from:], tag)
		if i < 0 {
			return -1
		}
		from += i
		if c.entries[from].keyHash == keyHash && bytes.Equal(codec.EntryKey(c.seg.image[c.offs[from]:]), key) {
			return from
		}
	}
}

// tagOf returns the part of a key's hash by which a commit's entries are
// searched.
func tagOf(keyHash uint64) byte { return byte(keyHash >> 56) }

// remove forgets c, if clear has not.
func (o *overlay) remove(c *Commit) {
	s := o.shard(c.partHash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.pending {
		return
	}
	if c.older != nil {
		c.older.newer = c.newer
	}
	switch {
	case c.newer != nil:
		c.newer.older = c.older
	case c.older != nil:
		s.newest[c.partHash] = c.older
	default:
		delete(s.newest, c.partHash)
	}
	c.links = links{}
}

// clear forgets everything, after a failure that leaves outcomes unknown.
func (o *overlay) clear() {
	for i := range o.shards {
		o.shards[i].clear()
	}
}

func (s *overlayShard) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.newest {
		for c != nil {
			older := c.older
			c.links = links{}
			c = older
		}
	}
	s.newest = nil
}
