package commitlog

import (
	"bytes"
	"sync"

	"github.com/tablerock-db/tablerock/codec"
)

// overlay has the commits that are in the log and not durable, by the partition
// of their entries. A write looks up its own partition only, where mostly nothing
// is pending.
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

// chain is the list of the pending commits of a partition.
type chain struct {
	newest *Commit // older commits follow by Commit.older
	n      int     // length
	// index has the newest commit with each codec.KeyHash. It is nil for short
	// chains, which are searched one by one.
	index map[uint64]*Commit
}

// minIndexed is the length from which a chain has an index: about where
// BenchmarkPending becomes faster with an index.
const minIndexed = 64

// links are a commit's neighbors in its chain, guarded by the mutex of the shard.
type links struct {
	newer, older *Commit
	pending      bool
}

// Pending is an entry that is in the log and not durable.
type Pending struct {
	Seg   *Segment
	Seq   uint64
	off   uint32
	shape *codec.Shape // nil for a delete
}

// Row sets row to the entry, in the memory of Seg, and reports whether the entry
// is a put.
func (p *Pending) Row(row *codec.Row) bool {
	if p.shape == nil {
		return false
	}
	row.ResetEntry(p.Seg.image[p.off:], p.shape)
	return true
}

// Pending returns the newest entry of key that is in the log and not durable.
// partHash and keyHash are the hashes of key. Entries of commits with OnApply are
// not found. The caller must hold the partition's lock.
func (l *Log) Pending(partHash, keyHash uint64, key []byte) (Pending, bool) {
	return l.overlay.get(partHash, keyHash, key)
}

// HasPending reports whether Pending can find an entry in a partition.
func (l *Log) HasPending(partHash uint64) bool { return l.overlay.has(partHash) }

func (o *overlay) shard(partHash uint64) *overlayShard { return &o.shards[partHash%overlayShards] }

// put adds c, which has just been appended, as the newest commit of its partition.
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
	} else if ch.n >= minIndexed {
		ch.index = indexFrom(c)
	}
	s.chains[c.partHash] = ch
}

// indexFrom returns the index of a chain whose newest commit is c.
func indexFrom(c *Commit) map[uint64]*Commit {
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

// find returns the index of the entry of key in c, or -1.
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

// tagOf returns the byte of a key's hash by which Commit.find searches.
func tagOf(keyHash uint64) byte { return byte(keyHash >> 56) }

// remove removes c, unless clear has.
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

// drop removes c from the chain.
func (ch *chain) drop(c *Commit) {
	ch.n--
	if c.older != nil || ch.n < minIndexed/2 {
		ch.index = nil // an older commit may have a key of c, which the index does not say
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

// clear removes everything. A failed log needs no overlay.
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
