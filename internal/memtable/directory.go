package memtable

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	"github.com/google/btree"
)

// directory orders the partitions of all shards. It takes in the new ones when
// it is asked: partitions stand in their shard in the order of their coming,
// so a shard's list of new ones is what lies behind the last one taken.
//
// Most stand in an array, which costs less than a tree and is made anew when
// the tree of those that came since has grown to a part of it.
type directory struct {
	mu sync.Mutex

	// +checklocks:mu
	sorted []place
	// +checklocks:mu
	tree *btree.BTreeG[place]
	// The walk under way.
	// +checklocks:mu
	walk walk
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

const (
	placeBytes = 26 // a place, the share of a half-full tree included
	// treePart is how many times as many partitions there are in the array as
	// in the tree, at least.
	treePart = 4
)

// walk goes through the array and the tree at once.
type walk struct {
	i    int // in the array
	done bool
	fn   btree.ItemIteratorG[place]
	// up and down take an item of the tree, with what comes before it in the
	// array. They are made once.
	up, down btree.ItemIteratorG[place]
}

func (d *directory) init(t *Table) {
	d.table = t
	d.lessFunc = d.less
	d.tree = btree.NewG(treeDegree, d.lessFunc)
	d.walk.up, d.walk.down = d.takeUp, d.takeDown
}

func (d *directory) less(a, b place) bool {
	if a.prefix != b.prefix {
		return a.prefix < b.prefix
	}
	return bytes.Compare(d.key(a), d.key(b)) < 0
}

func (d *directory) compare(a, b place) int {
	switch {
	case a.prefix < b.prefix:
		return -1
	case a.prefix > b.prefix:
		return 1
	}
	return bytes.Compare(d.key(a), d.key(b))
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
	w := &d.walk
	w.i, w.done, w.fn = 0, false, fn
	switch probe, where := d.probeLocked(from, -1); {
	case where > 0:
		return
	case where < 0:
		d.tree.Ascend(w.up)
	default:
		w.i = d.searchLocked(probe)
		d.tree.AscendGreaterOrEqual(probe, w.up)
	}
	for ; !w.done && w.i < len(d.sorted); w.i++ {
		w.done = !fn(d.sorted[w.i])
	}
	w.fn = nil
}

// descend calls fn with the partitions whose key is at most from, all when
// from is nil, the last first, until fn returns false.
func (d *directory) descend(from []byte, fn btree.ItemIteratorG[place]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drainLocked()
	w := &d.walk
	w.i, w.done, w.fn = len(d.sorted)-1, false, fn
	switch probe, where := d.probeLocked(from, 1); {
	case where < 0:
		return
	case where > 0:
		d.tree.Descend(w.down)
	default:
		w.i = d.searchLocked(probe)
		if w.i == len(d.sorted) || d.less(probe, d.sorted[w.i]) {
			w.i--
		}
		d.tree.DescendLessOrEqual(probe, w.down)
	}
	for ; !w.done && w.i >= 0; w.i-- {
		w.done = !fn(d.sorted[w.i])
	}
	w.fn = nil
}

func (d *directory) takeUp(p place) bool {
	w := &d.walk
	for ; w.i < len(d.sorted) && d.less(d.sorted[w.i], p); w.i++ {
		if !w.fn(d.sorted[w.i]) {
			w.done = true
			return false
		}
	}
	w.done = !w.fn(p)
	return !w.done
}

func (d *directory) takeDown(p place) bool {
	w := &d.walk
	for ; w.i >= 0 && d.less(p, d.sorted[w.i]); w.i-- {
		if !w.fn(d.sorted[w.i]) {
			w.done = true
			return false
		}
	}
	w.done = !w.fn(p)
	return !w.done
}

// searchLocked returns the place in the array of the first partition that is
// not before the probe.
func (d *directory) searchLocked(probe place) int {
	i, _ := slices.BinarySearchFunc(d.sorted, probe, d.compare)
	return i
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
	guess := d.shared
	if d.known == 0 {
		d.sample = fresh[0]
		guess = commonLen(d.table.partitionKey(fresh[0]), d.table.partitionKey(fresh[len(fresh)-1]))
	}
	shared := d.prefixLocked(fresh, guess)
	d.known += int64(len(fresh))
	if shared != d.shared && len(fresh) < int(d.known) {
		// All prefixes begin elsewhere.
		fresh = d.takeTreeLocked(append(fresh, d.sorted...))
		d.sorted = nil
	}
	d.shared = shared
	if shared != guess {
		d.prefixLocked(fresh, shared)
	}
	slices.SortFunc(fresh, d.compare)
	if (d.tree.Len()+len(fresh))*treePart <= len(d.sorted) {
		for _, p := range fresh {
			d.tree.ReplaceOrInsert(p)
		}
		return
	}
	if d.tree.Len() > 0 {
		fresh = d.takeTreeLocked(fresh)
		slices.SortFunc(fresh, d.compare)
	}
	d.sorted = d.mergeLocked(d.sorted, fresh)
}

// prefixLocked sets the prefixes of list to what follows the first n bytes of
// the keys, and returns how many of these bytes the keys share with the sample.
// If those are fewer, the prefixes say nothing.
func (d *directory) prefixLocked(list []place, n int) (shared int) {
	common := d.table.partitionKey(d.sample)[:n]
	for i := range list {
		key := d.table.partitionKey(list[i])
		if !bytes.HasPrefix(key, common) {
			common = common[:commonLen(common, key)]
		}
		list[i].prefix = prefixOf(key[len(common):])
	}
	return len(common)
}

// takeTreeLocked appends the partitions in the tree to list and empties it.
func (d *directory) takeTreeLocked(list []place) []place {
	d.tree.Ascend(func(p place) bool {
		list = append(list, p)
		return true
	})
	d.tree = btree.NewG(treeDegree, d.lessFunc)
	return list
}

// mergeLocked returns the partitions of a and b in order, as those of each
// are.
func (d *directory) mergeLocked(a, b []place) []place {
	if len(a) == 0 {
		return b
	}
	out := make([]place, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if d.less(a[0], b[0]) {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// freshLocked returns the partitions that are not in the directory, in the
// order of their entries, and counts them as taken.
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
	return sortByEntry(fresh)
}

// sortByEntry returns list, which it may use as memory, in the order of the
// entries: their keys are read one behind the other then, and are in their own
// order if they came so.
func sortByEntry(list []place) []place {
	const (
		fewest = 1024 // from here on, digits are faster than comparisons
		bits   = 11
		digits = 3
		mask   = 1<<bits - 1
	)
	if len(list) < fewest {
		slices.SortFunc(list, func(a, b place) int { return cmp.Compare(a.off, b.off) })
		return list
	}
	other := make([]place, len(list))
	for d := range digits {
		var ends [1 << bits]uint32
		for i := range list {
			ends[list[i].off>>(d*bits)&mask]++
		}
		sum := uint32(0)
		for i, n := range ends {
			ends[i] = sum
			sum += n
		}
		for i := range list {
			at := &ends[list[i].off>>(d*bits)&mask]
			other[*at] = list[i]
			*at++
		}
		list, other = other, list
	}
	return list
}
