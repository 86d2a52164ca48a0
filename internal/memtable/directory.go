package memtable

import (
	"bytes"
	"math"
	"slices"
	"sync"

	"github.com/google/btree"
)

// directory orders the partitions of all shards. It takes in the new ones when
// it is asked: partitions stand in their shard in the order of their coming,
// so a shard's list of new ones is what lies behind the last one taken.
type directory struct {
	mu sync.Mutex

	// +checklocks:mu
	tree *btree.BTreeG[place]
	// Partitions taken in, by shard and in all.
	// +checklocks:mu
	taken [shardCount]uint32
	// +checklocks:mu
	known int64
	// Length of what all partitions' keys begin with, at most.
	// +checklocks:mu
	shared int
	// A partition of the directory.
	// +checklocks:mu
	sample place
	// The key that the place probeOff stands for.
	// +checklocks:mu
	probe []byte

	table    *Table
	lessFunc btree.LessFunc[place]
}

// place is a partition: where it is, and its key.
type place struct {
	prefix uint64 // the key's first 8 bytes after the shared prefix, big-endian
	off    uint32 // an entry of the partition
	id     uint32 // its number in the shard * shardCount + the shard's number
	keyLen uint16
}

const placeBytes = 36 // a place in the tree, its share of half-full nodes included

func (d *directory) init(t *Table) {
	d.table = t
	d.lessFunc = d.less
	d.tree = btree.NewG(treeDegree, d.lessFunc)
}

func (d *directory) less(a, b place) bool {
	if a.prefix != b.prefix {
		return a.prefix < b.prefix
	}
	return bytes.Compare(d.key(a), d.key(b)) < 0
}

func (d *directory) key(p place) []byte {
	if p.off == probeOff {
		return d.probe
	}
	return d.table.partitionKey(p)
}

// partitionKey returns what all keys of the partition at p begin with.
func (t *Table) partitionKey(p place) []byte { return t.key(p.off)[:p.keyLen] }

// ascend calls fn with the partitions whose key is at least from, all when
// from is nil, until fn returns false.
func (d *directory) ascend(from []byte, fn btree.ItemIteratorG[place]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drainLocked()
	switch probe, where := d.probeLocked(from, -1); {
	case where < 0:
		d.tree.Ascend(fn)
	case where == 0:
		d.tree.AscendGreaterOrEqual(probe, fn)
	}
}

// descend calls fn with the partitions whose key is at most from, all when
// from is nil, the last first, until fn returns false.
func (d *directory) descend(from []byte, fn btree.ItemIteratorG[place]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drainLocked()
	switch probe, where := d.probeLocked(from, 1); {
	case where > 0:
		d.tree.Descend(fn)
	case where == 0:
		d.tree.DescendLessOrEqual(probe, fn)
	}
}

// probeLocked makes the probe of key. where is negative when key sorts before
// all partitions, positive when after them, and open when key is nil.
func (d *directory) probeLocked(key []byte, open int) (p place, where int) {
	if key == nil || d.known == 0 {
		return place{}, open
	}
	shared := d.table.partitionKey(d.sample)[:d.shared]
	n := min(len(key), len(shared))
	if c := bytes.Compare(key[:n], shared[:n]); c != 0 {
		return place{}, c
	}
	if n < len(shared) {
		return place{}, -1
	}
	d.probe = append(d.probe[:0], key...)
	return place{prefix: prefixOf(key[n:]), off: probeOff}, 0
}

// drainLocked takes in the partitions that came since the last call.
func (d *directory) drainLocked() {
	if d.table.places.Load() == d.known {
		return
	}
	fresh := d.freshLocked()
	if len(fresh) == 0 {
		return
	}
	shared := d.shared
	if d.known == 0 {
		d.sample = fresh[0]
		shared = math.MaxInt
	}
	sample := d.table.partitionKey(d.sample)
	for _, p := range fresh {
		key := d.table.partitionKey(p)
		shared = commonLen(sample[:min(shared, len(sample))], key)
	}
	if shared != d.shared && d.known > 0 {
		d.tree.Ascend(func(p place) bool {
			fresh = append(fresh, p)
			return true
		})
		d.tree = btree.NewG(treeDegree, d.lessFunc)
		d.known = 0
	}
	d.shared = shared
	for i := range fresh {
		fresh[i].prefix = prefixOf(d.table.partitionKey(fresh[i])[shared:])
	}
	slices.SortFunc(fresh, func(a, b place) int {
		switch {
		case a.prefix < b.prefix:
			return -1
		case a.prefix > b.prefix:
			return 1
		}
		return bytes.Compare(d.key(a), d.key(b))
	})
	for _, p := range fresh {
		d.tree.ReplaceOrInsert(p)
	}
	d.known += int64(len(fresh))
}

// freshLocked returns the partitions that are not in the directory and counts
// them as taken.
func (d *directory) freshLocked() []place {
	fresh := make([]place, 0, d.table.places.Load()-d.known)
	for i := range d.table.shards {
		s := &d.table.shards[i]
		s.mu.Lock()
		for n := d.taken[i]; n < s.parts.n; n++ {
			p := s.parts.at(n)
			fresh = append(fresh, place{off: p.off, id: n*shardCount + uint32(i), keyLen: p.keyLen})
		}
		d.taken[i] = s.parts.n
		s.mu.Unlock()
	}
	d.table.mem.Add(int64(len(fresh)) * placeBytes)
	return fresh
}
