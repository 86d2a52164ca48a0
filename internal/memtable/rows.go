package memtable

import (
	"bytes"
	"encoding/binary"
)

// item is the newest version of a row of a partition.
type item struct {
	prefix uint64 // the RowKey's first 8 bytes after the partition's shared prefix, big-endian
	trail  uint64 // sequence number << 8 | kind
	off    uint32 // offset of the entry in the image
	prev   uint32 // 1 + index of the previous version, 0 if none is kept
}

// form is the data structure of the rows of a partition.
type form uint8

// The forms, by rising number of rows.
const (
	formOne   form = 0              // in the partition itself
	formArray form = 1              // in a sorted array of 4; the next forms double it up to 32
	formTree  form = 1 + arrayForms // in a tree

	arrayForms = 4
)

// capacity returns the number of items in an array of the form f.
func (f form) capacity() uint32 { return 2 << f }

// before reports whether the key of the entry at a is before that of the entry at b.
// +checklocks:s.mu
func (s *shard) before(a, b uint32) bool { return bytes.Compare(s.key(a), s.key(b)) < 0 }

// shared returns the prefix that the RowKeys of all rows in p share.
func (s *shard) shared(p *partition) []byte {
	return s.key(p.off)[p.keyLen:][:p.shared]
}

// prefixOf returns the first 8 bytes of b as a number, padded with zeros. The
// numbers order as the bytes do, but equal numbers do not imply equal bytes.
func prefixOf(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var n uint64
	for i, c := range b {
		n |= uint64(c) << (56 - 8*i)
	}
	return n
}

// prefixFor returns the prefix to compare key, a key of partition p, with the items
// of p. where is negative if key sorts before all rows of p and positive if it
// sorts after them; then the prefix is not valid.
func (s *shard) prefixFor(p *partition, key []byte) (prefix uint64, where int) {
	row, shared := key[p.keyLen:], s.shared(p)
	n := min(len(row), len(shared))
	if c := bytes.Compare(row[:n], shared[:n]); c != 0 {
		return 0, c
	}
	if n < len(shared) {
		return 0, -1
	}
	return prefixOf(row[n:]), 0
}

// items returns the rows of p, which must not be a tree, in order. The caller may
// change them in place.
// +checklocks:s.mu
func (s *shard) items(p *partition) []item {
	if p.form == formOne {
		return p.one[:]
	}
	return s.arrays[p.form-formArray].run(p.handle, p.form.capacity())[:p.rows]
}

// search returns the index of the first item that is not before the key with the
// given prefix, and reports whether it has that key.
// +checklocks:s.mu
func (s *shard) search(items []item, prefix uint64, key []byte) (int, bool) {
	lo, hi := 0, len(items)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		it := &items[mid]
		before := it.prefix < prefix
		if it.prefix == prefix {
			c := bytes.Compare(s.key(it.off), key)
			if c == 0 {
				return mid, true
			}
			before = c < 0
		}
		if before {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, false
}

// row returns the row of p with the given key.
// +checklocks:s.mu
func (s *shard) row(p *partition, key []byte) (item, bool) {
	row, shared := key[p.keyLen:], s.shared(p)
	if !bytes.HasPrefix(row, shared) {
		return item{}, false
	}
	switch {
	case p.form == formOne: // the shared prefix is the whole RowKey
		return p.one[0], len(row) == len(shared)
	case p.form < formTree:
		items := s.items(p)
		i, ok := s.search(items, prefixOf(row[len(shared):]), key)
		if !ok {
			return item{}, false
		}
		return items[i], true
	}
	if it := s.findIn(s.tree(p), prefixOf(row[len(shared):]), key); it != nil {
		return *it, true
	}
	return item{}, false
}

// searchItem is search for the key of it. It does not read the key unless an item has the
// same prefix.
// +checklocks:s.mu
func (s *shard) searchItem(items []item, it item) (int, bool) {
	i, _ := s.search(items, it.prefix, nil)
	if i == len(items) || items[i].prefix != it.prefix {
		return i, false
	}
	n, found := s.search(items[i:], it.prefix, s.key(it.off))
	return i + n, found
}

// tree returns the tree of p, in which no row waits.
// +checklocks:s.mu
func (s *shard) tree(p *partition) *tree {
	t := s.trees[p.handle]
	s.insertWaiting(t)
	return t
}

// add makes it the newest version of its row. The RowKey must have the shared
// prefix of p.
// +checklocks:s.mu
func (s *shard) add(p *partition, it item, keep uint64) {
	if p.form == formTree {
		s.put(s.trees[p.handle], it, keep)
		return
	}
	items := s.items(p)
	i, found := s.search(items, it.prefix, s.key(it.off))
	if found {
		items[i] = s.replace(items[i], it, keep)
		return
	}
	if p.form == formOne || p.rows == p.form.capacity() {
		if s.promote(p); p.form == formTree {
			s.add(p, it, keep)
			return
		}
	}
	p.rows++
	items = s.items(p)
	copy(items[i+1:], items[i:])
	items[i] = it
}

// promote moves the rows of p, which is full, to the next form.
// +checklocks:s.mu
func (s *shard) promote(p *partition) {
	items, old, handle := s.items(p), p.form, p.handle
	p.form++
	if p.form == formTree {
		p.handle = uint32(len(s.trees))
		s.trees = append(s.trees, s.newTree(items))
		s.grew(treeBytes)
	} else {
		p.handle = s.newArray(p.form)
		copy(s.items(p), items)
	}
	if old != formOne {
		free := &s.freeArrays[old-formArray]
		*free = append(*free, handle)
	}
}

// newArray returns the index of an unused array of the form f.
// +checklocks:s.mu
func (s *shard) newArray(f form) uint32 {
	if free := &s.freeArrays[f-formArray]; len(*free) > 0 {
		i := (*free)[len(*free)-1]
		*free = (*free)[:len(*free)-1]
		return i
	}
	i, n := s.arrays[f-formArray].add(f.capacity())
	s.grew(n * itemBytes)
	return i
}

// shrink reduces the shared prefix of the RowKeys of p to n bytes or fewer and
// updates the prefixes of all items. The order of the rows does not change.
// +checklocks:s.mu
func (s *shard) shrink(p *partition, n int) {
	// A client can choose keys so that each shortens the prefix by one byte. After
	// some updates of a tree, halving the prefix bounds their number.
	const exactBreaks = 16
	if p.form == formTree {
		if p.breaks < exactBreaks {
			p.breaks++
			// Decimal numbers that count up differ in the previous digit next.
			n = max(0, n-2)
		} else {
			n /= 2
		}
	}
	p.shared = uint16(n)
	at := int(p.keyLen) + n
	if p.form == formTree {
		t := s.tree(p)
		s.setPrefixes(t.root, at)
		t.max = t.last.items[t.last.n-1].prefix
		return
	}
	items := s.items(p)
	for i := range items {
		items[i].prefix = prefixOf(s.key(items[i].off)[at:])
	}
}

// ascend calls fn with the rows of p whose key is at least from, in order, until fn
// returns false. A nil from is the start.
// +checklocks:s.mu
func (s *shard) ascend(p *partition, from []byte, fn func(item) bool) {
	prefix, where := uint64(0), -1
	if from != nil {
		prefix, where = s.prefixFor(p, from)
	}
	if where > 0 {
		return
	}
	if p.form == formTree {
		t := s.tree(p)
		leaf, i := t.first, 0
		if where == 0 {
			leaf, i, _ = s.leafOf(t, prefix, from)
		}
		leaf.ascend(i, fn)
		return
	}
	items, i := s.items(p), 0
	if where == 0 {
		i, _ = s.search(items, prefix, from)
	}
	for i < len(items) && fn(items[i]) {
		i++
	}
}

// descend calls fn with the rows of p whose key is at most from, in reverse order,
// until fn returns false. A nil from is the end.
// +checklocks:s.mu
func (s *shard) descend(p *partition, from []byte, fn func(item) bool) {
	prefix, where := uint64(0), 1
	if from != nil {
		prefix, where = s.prefixFor(p, from)
	}
	if where < 0 {
		return
	}
	if p.form == formTree {
		t := s.tree(p)
		leaf := t.last
		i := leaf.n - 1
		if where == 0 {
			at, found := 0, false
			leaf, at, found = s.leafOf(t, prefix, from)
			if i = at - 1; found {
				i = at
			}
		}
		leaf.descend(i, fn)
		return
	}
	items := s.items(p)
	i := len(items) - 1
	if where == 0 {
		at, found := s.search(items, prefix, from)
		if i = at - 1; found {
			i = at
		}
	}
	for i >= 0 && fn(items[i]) {
		i--
	}
}
