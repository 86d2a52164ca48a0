package commitlog

import (
	"bytes"
	"sync"

	"github.com/tablerock-db/tablerock/codec"
)

// overlay holds what is in the log and not yet durable: the newest pending
// entry of each key.
type overlay struct {
	shards [overlayShards]overlayShard
}

const overlayShards = 64

type overlayShard struct {
	mu sync.Mutex
	// +checklocks:mu
	pending map[uint64]pendingEntry // by codec.KeyHash
	_       [40]byte                // shards do not share a cache line
}

// pendingEntry is an entry of a record that no sync has covered yet.
type pendingEntry struct {
	seg   *Segment
	off   uint32
	seq   uint64
	shape *codec.Shape // nil for a delete
	// next is another pending key with the same hash.
	next *pendingEntry
}

// key returns the entry's user key.
func (p *pendingEntry) key() []byte {
	return codec.EntryKey(p.seg.image[p.off:])
}

func (o *overlay) shard(keyHash uint64) *overlayShard {
	return &o.shards[keyHash>>32%overlayShards]
}

// put makes p the newest pending entry of key.
func (o *overlay) put(keyHash uint64, key []byte, p pendingEntry) {
	s := o.shard(keyHash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending = make(map[uint64]pendingEntry)
	}
	head, ok := s.pending[keyHash]
	if !ok {
		s.pending[keyHash] = p
		return
	}
	// Replace the entry of the same key, keep those of other keys.
	var others *pendingEntry
	for e := &head; e != nil; e = e.next {
		if !bytes.Equal(e.key(), key) {
			c := *e
			c.next = others
			others = &c
		}
	}
	p.next = others
	s.pending[keyHash] = p
}

// get returns the newest pending entry of key.
func (o *overlay) get(keyHash uint64, key []byte) (pendingEntry, bool) {
	s := o.shard(keyHash)
	s.mu.Lock()
	defer s.mu.Unlock()
	head, ok := s.pending[keyHash]
	if !ok {
		return pendingEntry{}, false
	}
	for e := &head; e != nil; e = e.next {
		if bytes.Equal(e.key(), key) {
			return *e, true
		}
	}
	return pendingEntry{}, false
}

// remove forgets the entry with sequence seq, unless a newer one of its key has
// taken its place.
func (o *overlay) remove(keyHash, seq uint64) {
	s := o.shard(keyHash)
	s.mu.Lock()
	defer s.mu.Unlock()
	head, ok := s.pending[keyHash]
	if !ok {
		return
	}
	if head.next == nil {
		if head.seq == seq {
			delete(s.pending, keyHash)
		}
		return
	}
	var kept *pendingEntry
	for e := &head; e != nil; e = e.next {
		if e.seq != seq {
			c := *e
			c.next = kept
			kept = &c
		}
	}
	if kept == nil {
		delete(s.pending, keyHash)
		return
	}
	s.pending[keyHash] = *kept
}

// clear forgets everything, after a failure that leaves outcomes unknown.
func (o *overlay) clear() {
	for i := range o.shards {
		s := &o.shards[i]
		s.mu.Lock()
		s.pending = nil
		s.mu.Unlock()
	}
}
