package memtable

// nodeLen is the number of items of a node: a leaf then takes 1,536 bytes, a size of
// the allocator.
const nodeLen = 62

// Sizes for the accounting.
const (
	leafBytes  = 1536
	innerBytes = leafBytes + 8*nodeLen
	treeBytes  = 64 + 8 // without nodes and waiting rows, with its share of the list of trees
)

// tree is a B+tree of the rows of a partition. It never shrinks. Rows that arrive in
// order are appended to the last leaf without a search, and leave full leaves. With
// google/btree instead, BenchmarkApply needs 150 ns and not 75 for a row in order, which is
// 7 % of an ordered load, and as much as here for a row at random.
//
// The mutex of the shard guards a tree and its nodes.
type tree struct {
	root        *node
	first, last *node // leaves
	// max is the prefix of the last row.
	max uint64
	// waiting are n rows that are not in the nodes yet, in the order of their arrival, and
	// keep is that of Table.Apply for all of them. See put.
	n       int
	keep    uint64
	waiting *[maxWaiting]item // nil until a row waits
}

// maxWaiting is the most rows that wait for their insertion into a tree.
const maxWaiting = 32

// node is a leaf, which has items, or an inner node, which has children.
type node struct {
	next, prev *node // the neighbors of a leaf
	// children is nil in a leaf. The keys of the rows in child i are at least that of
	// item i, except in the first children at the left edge of the tree.
	children *[nodeLen]*node
	n        int
	items    [nodeLen]item
}

// newTree returns a tree of items, of which there is at least one, in order.
// +checklocks:s.mu
func (s *shard) newTree(items []item) *tree {
	leaf := &node{}
	s.grew(leafBytes)
	t := &tree{root: leaf, first: leaf, last: leaf}
	for _, it := range items {
		s.appendItem(t, it)
	}
	return t
}

// findIn returns the item of t with the given prefix and key, nil if there is none.
// +checklocks:s.mu
func (s *shard) findIn(t *tree, prefix uint64, key []byte) *item {
	leaf, i, found := s.leafOf(t, prefix, key)
	if !found {
		return nil
	}
	return &leaf.items[i]
}

// leafOf returns the leaf of a key and the index in it of the first item that is not
// before the key, and reports whether it has that key. The index may be the number of
// items.
// +checklocks:s.mu
func (s *shard) leafOf(t *tree, prefix uint64, key []byte) (leaf *node, i int, found bool) {
	n := t.root
	for n.children != nil {
		n = n.children[s.childOf(n, prefix, key)]
	}
	i, found = s.search(n.items[:n.n], prefix, key)
	return n, i, found
}

// childOf returns the index of the child of n for a key.
// +checklocks:s.mu
func (s *shard) childOf(n *node, prefix uint64, key []byte) int {
	i, found := s.search(n.items[1:n.n], prefix, key)
	if found {
		i++
	}
	return i
}

// put makes it the newest version of its row.
//
// A row behind the others is appended. Another one waits until there are some, or until
// the rows are read: while they are inserted together, the nodes of a small tree stay in
// the processor's cache, and they mostly do not until the next row arrives. With an
// insertion at once, a random load needs 12 % more CPU (bench, load/order=random).
// +checklocks:s.mu
func (s *shard) put(t *tree, it item, keep uint64) {
	if it.prefix >= t.max {
		last := &t.last.items[t.last.n-1]
		if it.prefix > t.max || s.before(last.off, it.off) {
			s.appendItem(t, it)
			return
		}
	}
	if t.n == maxWaiting || t.keep != keep {
		s.insertWaiting(t)
	}
	if t.waiting == nil {
		t.waiting = new([maxWaiting]item)
		s.grew(maxWaiting * itemBytes)
	}
	t.keep = keep
	t.waiting[t.n] = it
	t.n++
}

// insertWaiting inserts the rows that wait. Call it before anything reads the nodes of t.
// +checklocks:s.mu
func (s *shard) insertWaiting(t *tree) {
	for i := range t.n {
		it := t.waiting[i]
		old, right := s.insertInto(t, t.root, it)
		if old != nil {
			*old = s.replace(*old, it, t.keep)
		}
		s.growRoot(t, right)
	}
	t.n = 0
}

// insertInto returns the item with the key of it in the part of t below n. If there is
// none, it inserts it. If n had to be split, right is the new node behind it.
// +checklocks:s.mu
func (s *shard) insertInto(t *tree, n *node, it item) (old *item, right *node) {
	if n.children != nil {
		i, found := s.searchItem(n.items[1:n.n], it)
		if found {
			i++
		}
		old, right = s.insertInto(t, n.children[i], it)
		if right != nil {
			right = s.addChild(n, i+1, right)
		}
		return old, right
	}
	i, found := s.searchItem(n.items[:n.n], it)
	if found {
		return &n.items[i], nil
	}
	if n.n == nodeLen {
		right = s.splitLeaf(t, n)
		if i > n.n {
			right.insertItem(i-n.n, it)
			return nil, right
		}
	}
	n.insertItem(i, it)
	return nil, right
}

// appendItem appends it behind the last row of t.
// +checklocks:s.mu
func (s *shard) appendItem(t *tree, it item) {
	t.max = it.prefix
	if last := t.last; last.n < nodeLen {
		last.items[last.n] = it
		last.n++
		return
	}
	leaf := &node{prev: t.last, n: 1}
	s.grew(leafBytes)
	leaf.items[0] = it
	t.last.next, t.last = leaf, leaf
	s.growRoot(t, s.appendChild(t.root, leaf))
}

// appendChild appends leaf behind the last leaf below n, which is at the right edge of
// the tree. If n has no room, it returns a new node behind n.
// +checklocks:s.mu
func (s *shard) appendChild(n, leaf *node) (right *node) {
	if n.children == nil {
		return leaf
	}
	child := s.appendChild(n.children[n.n-1], leaf)
	if child == nil {
		return nil
	}
	if n.n == nodeLen {
		right = s.newInner()
		right.insertChild(0, child)
		return right
	}
	n.insertChild(n.n, child)
	return nil
}

// growRoot gives t a new root if its root was split.
// +checklocks:s.mu
func (s *shard) growRoot(t *tree, right *node) {
	if right == nil {
		return
	}
	root := s.newInner()
	root.insertChild(0, t.root)
	root.insertChild(1, right)
	t.root = root
}

// splitLeaf moves the upper half of the items of n to a new leaf.
// +checklocks:s.mu
func (s *shard) splitLeaf(t *tree, n *node) (right *node) {
	right = &node{next: n.next, prev: n}
	s.grew(leafBytes)
	n.moveHalf(right)
	if n.next != nil {
		n.next.prev = right
	} else {
		t.last = right
	}
	n.next = right
	return right
}

// addChild inserts child at index i of n. If n has no room, it is split.
// +checklocks:s.mu
func (s *shard) addChild(n *node, i int, child *node) (right *node) {
	if n.n == nodeLen {
		right = s.newInner()
		n.moveHalf(right)
		if i > n.n {
			right.insertChild(i-n.n, child)
			return right
		}
	}
	n.insertChild(i, child)
	return right
}

// +checklocks:s.mu
func (s *shard) newInner() *node {
	s.grew(innerBytes)
	return &node{children: new([nodeLen]*node)}
}

// moveHalf moves the upper half of n, which is full, to right, which is empty.
func (n *node) moveHalf(right *node) {
	const half = nodeLen / 2
	right.n = copy(right.items[:], n.items[half:])
	if n.children != nil {
		copy(right.children[:], n.children[half:])
		clear(n.children[half:])
	}
	n.n = half
}

func (n *node) insertItem(i int, it item) {
	copy(n.items[i+1:n.n+1], n.items[i:n.n])
	n.items[i] = it
	n.n++
}

func (n *node) insertChild(i int, child *node) {
	copy(n.children[i+1:n.n+1], n.children[i:n.n])
	n.children[i] = child
	n.insertItem(i, child.items[0])
}

// setPrefixes sets the prefixes of all items at and below n to those of their keys from
// byte at on.
// +checklocks:s.mu
func (s *shard) setPrefixes(n *node, at int) {
	for i := range n.n {
		n.items[i].prefix = prefixOf(s.key(n.items[i].off)[at:])
		if n.children != nil {
			s.setPrefixes(n.children[i], at)
		}
	}
}

// ascend calls fn with the items from index i of leaf on until it returns false.
func (leaf *node) ascend(i int, fn func(item) bool) {
	for ; leaf != nil; leaf, i = leaf.next, 0 {
		for ; i < leaf.n; i++ {
			if !fn(leaf.items[i]) {
				return
			}
		}
	}
}

// descend calls fn with the items from index i of leaf down until it returns false. The
// index may be -1.
func (leaf *node) descend(i int, fn func(item) bool) {
	for {
		for ; i >= 0; i-- {
			if !fn(leaf.items[i]) {
				return
			}
		}
		if leaf = leaf.prev; leaf == nil {
			return
		}
		i = leaf.n - 1
	}
}
