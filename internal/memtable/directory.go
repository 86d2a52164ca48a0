package memtable

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/google/btree"

	"github.com/tablerock-db/tablerock/codec"
)

// directory orders the partitions of all shards. It adds the new partitions when
// it is asked: a shard lists its partitions by arrival, so the new ones follow
// the last one that was added.
//
// Most partitions are in a sorted array, which is cheaper than a tree. Later ones
// are in a tree, until the array is rebuilt with them.
type directory struct {
	mu sync.Mutex

	// +checklocks:mu
	sorted []partitionRef
	// +checklocks:mu
	tree *btree.BTreeG[partitionRef]
	// The partitions of the tree that a call of ascend or descend merges.
	// +checklocks:mu
	fromTree []partitionRef
	// Number of partitions added, by shard.
	// +checklocks:mu
	added [shardCount]uint32
	// Number of partitions added.
	// +checklocks:mu
	known int64
	// Length of a prefix that the keys of all partitions share.
	// +checklocks:mu
	shared int
	// A partition of the directory.
	// +checklocks:mu
	sample partitionRef
	// The key of a partitionRef with the offset probeOff.
	// +checklocks:mu
	probe []byte

	table    *Table
	lessFunc btree.LessFunc[partitionRef]
}

// partitionRef refers to a partition of a shard.
type partitionRef struct {
	prefix uint64 // the key's first 8 bytes after the shared prefix, big-endian
	off    uint32 // an entry of the partition
	id     uint32 // its index in the shard * shardCount + the index of the shard
	keyLen uint16
}

// probeOff is the offset of a partitionRef whose key is the probe of the directory.
const probeOff = math.MaxUint32

const (
	treeDegree = 64 // of the directory's tree
	refBytes   = 26 // a partitionRef, its share of a half-full tree included
	// minArrayShare is the least ratio of partitions in the array to partitions in
	// the tree.
	minArrayShare = 4
)

// +checklocks:d.mu
func (d *directory) init(t *Table) {
	d.table = t
	d.lessFunc = d.less
	d.tree = btree.NewG(treeDegree, d.lessFunc)
}

// +checklocks:d.mu
func (d *directory) less(a, b partitionRef) bool {
	if a.prefix != b.prefix {
		return a.prefix < b.prefix
	}
	return bytes.Compare(d.key(a), d.key(b)) < 0
}

// +checklocks:d.mu
func (d *directory) compare(a, b partitionRef) int {
	switch {
	case a.prefix < b.prefix:
		return -1
	case a.prefix > b.prefix:
		return 1
	}
	return bytes.Compare(d.key(a), d.key(b))
}

// +checklocks:d.mu
func (d *directory) key(p partitionRef) []byte {
	if p.off == probeOff {
		return d.probe
	}
	return d.table.partitionKey(p)
}

// partitionKey returns the prefix that all keys of a partition share.
func (t *Table) partitionKey(p partitionRef) []byte { return t.key(p.off)[:p.keyLen] }

// ascend appends to dst the first n partitions whose key is at least from; nil is
// the start.
func (d *directory) ascend(dst []partitionRef, from []byte, n int) []partitionRef {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addNewLocked()
	probe, where := d.probeLocked(from, -1)
	if where > 0 {
		return dst
	}
	i := 0
	if where == 0 {
		i = d.searchLocked(probe)
	}
	array := d.sorted[i:]
	if d.tree.Len() == 0 {
		return append(dst, array[:min(n, len(array))]...)
	}
	d.fromTree = d.fromTree[:0]
	collect := func(p partitionRef) bool {
		d.fromTree = append(d.fromTree, p) // +checklocksignore: called under mu
		return len(d.fromTree) < n         // +checklocksignore: called under mu
	}
	if where < 0 {
		d.tree.Ascend(collect)
	} else {
		d.tree.AscendGreaterOrEqual(probe, collect)
	}
	tree := d.fromTree
	for ; n > 0 && len(array)+len(tree) > 0; n-- {
		if len(tree) == 0 || len(array) > 0 && d.less(array[0], tree[0]) {
			dst, array = append(dst, array[0]), array[1:]
		} else {
			dst, tree = append(dst, tree[0]), tree[1:]
		}
	}
	return dst
}

// descend appends to dst the last n partitions whose key is at most from, the
// last first; nil is the end.
func (d *directory) descend(dst []partitionRef, from []byte, n int) []partitionRef {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addNewLocked()
	probe, where := d.probeLocked(from, 1)
	if where < 0 {
		return dst
	}
	i := len(d.sorted) - 1
	if where == 0 {
		i = d.searchLocked(probe)
		if i == len(d.sorted) || d.less(probe, d.sorted[i]) {
			i--
		}
	}
	d.fromTree = d.fromTree[:0]
	if d.tree.Len() > 0 {
		collect := func(p partitionRef) bool {
			d.fromTree = append(d.fromTree, p) // +checklocksignore: called under mu
			return len(d.fromTree) < n         // +checklocksignore: called under mu
		}
		if where > 0 {
			d.tree.Descend(collect)
		} else {
			d.tree.DescendLessOrEqual(probe, collect)
		}
	}
	tree := d.fromTree
	for ; n > 0 && (i >= 0 || len(tree) > 0); n-- {
		if len(tree) == 0 || i >= 0 && d.less(tree[0], d.sorted[i]) {
			dst = append(dst, d.sorted[i])
			i--
		} else {
			dst, tree = append(dst, tree[0]), tree[1:]
		}
	}
	return dst
}

// searchLocked returns the index in the array of the first partition that is not
// before the probe.
// +checklocks:d.mu
func (d *directory) searchLocked(probe partitionRef) int {
	i, _ := slices.BinarySearchFunc(d.sorted, probe, d.compare)
	return i
}

// probeLocked returns a probe for key. where is negative if key sorts before all
// partitions, positive if it sorts after them, and open if key is nil; then the
// probe is not valid.
// +checklocks:d.mu
func (d *directory) probeLocked(key []byte, open int) (p partitionRef, where int) {
	if key == nil || d.known == 0 {
		return partitionRef{}, open
	}
	shared := d.table.partitionKey(d.sample)[:d.shared]
	n := min(len(key), len(shared))
	if c := bytes.Compare(key[:n], shared[:n]); c != 0 {
		return partitionRef{}, c
	}
	d.probe = append(d.probe[:0], key...)
	return partitionRef{prefix: prefixOf(key[n:]), off: probeOff}, 0
}

// addNewLocked adds the partitions that arrived since the last call.
// +checklocks:d.mu
func (d *directory) addNewLocked() {
	if d.table.partitions.Load() == d.known {
		return
	}
	fresh := d.newLocked()
	guess := d.shared
	if d.known == 0 {
		d.sample = fresh[0]
		guess = codec.CommonLen(d.table.partitionKey(fresh[0]), d.table.partitionKey(fresh[len(fresh)-1]))
	}
	shared := d.setPrefixesLocked(fresh, guess)
	d.known += int64(len(fresh))
	if shared != d.shared && len(fresh) < int(d.known) {
		// The prefixes of all partitions change.
		fresh = d.emptyTreeLocked(append(fresh, d.sorted...))
		d.sorted = nil
	}
	d.shared = shared
	if shared != guess {
		d.setPrefixesLocked(fresh, shared)
	}
	slices.SortFunc(fresh, d.compare)
	if (d.tree.Len()+len(fresh))*minArrayShare <= len(d.sorted) {
		for _, p := range fresh {
			d.tree.ReplaceOrInsert(p)
		}
		return
	}
	if d.tree.Len() > 0 {
		fresh = d.emptyTreeLocked(fresh)
		slices.SortFunc(fresh, d.compare)
	}
	d.sorted = d.mergeLocked(d.sorted, fresh)
}

// setPrefixesLocked sets the prefixes of list from the bytes after the first n
// bytes of the keys, and returns how many of these n bytes the keys share with the
// sample. If they share fewer than n, the prefixes are not valid.
// +checklocks:d.mu
func (d *directory) setPrefixesLocked(list []partitionRef, n int) (shared int) {
	common := d.table.partitionKey(d.sample)[:n]
	for i := range list {
		key := d.table.partitionKey(list[i])
		if !bytes.HasPrefix(key, common) {
			common = common[:codec.CommonLen(common, key)]
		}
		list[i].prefix = prefixOf(key[len(common):])
	}
	return len(common)
}

// emptyTreeLocked moves the partitions of the tree to the end of list.
// +checklocks:d.mu
func (d *directory) emptyTreeLocked(list []partitionRef) []partitionRef {
	d.tree.Ascend(func(p partitionRef) bool {
		list = append(list, p)
		return true
	})
	d.tree = btree.NewG(treeDegree, d.lessFunc)
	return list
}

// mergeLocked merges two sorted lists of partitions.
// +checklocks:d.mu
func (d *directory) mergeLocked(a, b []partitionRef) []partitionRef {
	if len(a) == 0 {
		return b
	}
	out := make([]partitionRef, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if d.less(a[0], b[0]) {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// newLocked returns the partitions that are not in the directory, and counts them as
// added. They are ordered by entry: then their keys are read sequentially, and are sorted
// if they arrived sorted.
// +checklocks:d.mu
func (d *directory) newLocked() []partitionRef {
	fresh := make([]partitionRef, 0, d.table.partitions.Load()-d.known)
	for i := range d.table.shards {
		s := &d.table.shards[i]
		s.mu.Lock()
		for n := d.added[i]; n < s.partitions.n; n++ {
			p := s.partitions.at(n)
			fresh = append(fresh, partitionRef{off: p.off, id: n*shardCount + uint32(i), keyLen: p.keyLen})
		}
		d.added[i] = s.partitions.n
		s.mu.Unlock()
	}
	d.table.mem.Add(int64(len(fresh)) * refBytes)
	slices.SortFunc(fresh, func(a, b partitionRef) int { return cmp.Compare(a.off, b.off) })
	return fresh
}
