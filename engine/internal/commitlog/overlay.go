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
	// By codec.PartitionHash.
	// +checklocks:mu
	chains map[uint64]chain
	_      [48]byte // shards do not share a cache line
}

// chain is what is pending in a partition.
type chain struct {
	newest *Commit // the others stand behind it
	n      int     // commits
	// index has the newest commit of each codec.KeyHash, nil if the commits are
	// few enough to be looked through.
	index map[uint64]*Commit
}

// crowded is how many commits of a partition have an index: from about here on
// BenchmarkCrowd is faster with one.
const crowded = 64

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
	if s.chains == nil {
		s.chains = make(map[uint64]chain)
	}
	ch := s.chains[c.partHash]
	c.links = links{older: ch.newest, pending: true}
	if c.older != nil {
		c.older.newer = c
	}
	ch.newest = c
	ch.n++
	if ch.index != nil {
		for i := range c.entries {
			ch.index[c.entries[i].keyHash] = c
		}
	} else if ch.n >= crowded {
		ch.index = c.indexed()
	}
	s.chains[c.partHash] = ch
}

// indexed returns the index of c and the commits behind it.
func (c *Commit) indexed() map[uint64]*Commit {
	index := make(map[uint64]*Commit)
	for ; c != nil; c = c.older {
		for i := range c.entries {
			if hash := c.entries[i].keyHash; index[hash] == nil {
				index[hash] = c
			}
		}
	}
	return index
}

// has reports whether something is pending in the partition with the given
// hash.
func (o *overlay) has(partHash uint64) bool {
	s := o.shard(partHash)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chains[partHash].newest != nil
}

// get returns the newest pending entry of key.
func (o *overlay) get(partHash, keyHash uint64, key []byte) (Pending, bool) {
	s := o.shard(partHash)
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.chains[partHash]
	c := ch.newest
	if ch.index != nil {
		c = ch.index[keyHash]
	}
	for ; c != nil; c = c.older {
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
	ch := s.chains[c.partHash]
	ch.drop(c)
	if ch.n == 0 {
		delete(s.chains, c.partHash)
	} else {
		s.chains[c.partHash] = ch
	}
}

// drop takes c out of the chain.
func (ch *chain) drop(c *Commit) {
	ch.n--
	if c.older != nil || ch.n < crowded/2 {
		ch.index = nil // an older commit may have a key of c, and the index does not tell
	}
	if ch.index != nil {
		for i := range c.entries {
			if hash := c.entries[i].keyHash; ch.index[hash] == c {
				delete(ch.index, hash)
			}
		}
	}
	if c.older != nil {
		c.older.newer = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		ch.newest = c.older
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
	for _, ch := range s.chains {
		for c := ch.newest; c != nil; {
			older := c.older
			c.links = links{}
			c = older
		}
	}
	s.chains = nil
}
