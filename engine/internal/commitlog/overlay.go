package commitlog

import (
	"bytes"
	"sync"

	"github.com/tablerock-db/tablerock/codec"
)

// overlay has the parts of the commits that are in the log and not durable, by their
// partition. A write looks up its own partition only, where mostly nothing
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

// chain is the list of the pending parts of a partition.
type chain struct {
	newest *part // older parts follow by part.older
	n      int   // length
	// index has the newest part with each codec.KeyHash. It is nil for short
	// chains, which are searched one by one.
	index map[uint64]*part
}

// minIndexed is the length from which a chain has an index: about where
// BenchmarkPending becomes faster with an index.
const minIndexed = 64

// links are a part's neighbors in its chain, guarded by the mutex of the shard.
type links struct {
	newer, older *part
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

// put adds the parts of c, which has just been appended, as the newest of their partitions.
func (o *overlay) put(c *Commit) {
	for i := range c.parts {
		c.parts[i].commit = c
		o.putPart(&c.parts[i])
	}
}

func (o *overlay) putPart(p *part) {
	s := o.shard(p.hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chains == nil {
		s.chains = make(map[uint64]chain)
	}
	ch := s.chains[p.hash]
	p.links = links{older: ch.newest, pending: true}
	if p.older != nil {
		p.older.newer = p
	}
	ch.newest = p
	ch.n++
	if ch.index != nil {
		for _, e := range p.entries() {
			ch.index[e.keyHash] = p
		}
	} else if ch.n >= minIndexed {
		ch.index = indexFrom(p)
	}
	s.chains[p.hash] = ch
}

// entries returns the entries of a part in the overlay.
func (p *part) entries() []entry { return p.commit.entries[p.from:p.to] }

// indexFrom returns the index of a chain whose newest part is p.
func indexFrom(p *part) map[uint64]*part {
	index := make(map[uint64]*part)
	for ; p != nil; p = p.older {
		for _, e := range p.entries() {
			if index[e.keyHash] == nil {
				index[e.keyHash] = p
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
	p := ch.newest
	if ch.index != nil {
		p = ch.index[keyHash]
	}
	for ; p != nil; p = p.older {
		if i := p.find(keyHash, key); i >= 0 {
			c := p.commit
			return Pending{Seg: c.seg, Seq: c.firstSeq + uint64(i), off: c.offs[i], shape: c.entries[i].shape}, true
		}
	}
	return Pending{}, false
}

// find returns the index of the entry of key in the commit of p, or -1.
func (p *part) find(keyHash uint64, key []byte) int {
	tag, c := tagOf(keyHash), p.commit
	for from := p.from; ; from++ {
		i := bytes.IndexByte(c.tags[from:p.to], tag)
		if i < 0 {
			return -1
		}
		from += i
		if c.entries[from].keyHash == keyHash && bytes.Equal(codec.EntryKey(c.seg.image[c.offs[from]:]), key) {
			return from
		}
	}
}

// tagOf returns the byte of a key's hash by which part.find searches.
func tagOf(keyHash uint64) byte { return byte(keyHash >> 56) }

// remove removes the parts of c, unless clear has.
func (o *overlay) remove(c *Commit) {
	for i := range c.parts {
		o.removePart(&c.parts[i])
	}
}

func (o *overlay) removePart(p *part) {
	s := o.shard(p.hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.pending {
		return
	}
	ch := s.chains[p.hash]
	ch.drop(p)
	if ch.n == 0 {
		delete(s.chains, p.hash)
	} else {
		s.chains[p.hash] = ch
	}
}

// drop removes p from the chain.
func (ch *chain) drop(p *part) {
	ch.n--
	if p.older != nil || ch.n < minIndexed/2 {
		ch.index = nil // an older part may have a key of p, which the index does not say
	}
	if ch.index != nil {
		for _, e := range p.entries() {
			if ch.index[e.keyHash] == p {
				delete(ch.index, e.keyHash)
			}
		}
	}
	if p.older != nil {
		p.older.newer = p.newer
	}
	if p.newer != nil {
		p.newer.older = p.older
	} else {
		ch.newest = p.older
	}
	p.links = links{}
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
		for p := ch.newest; p != nil; {
			older := p.older
			p.links = links{}
			p = older
		}
	}
	s.chains = nil
}
