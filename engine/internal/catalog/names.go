package catalog

import (
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// names finds a table by its name in any case: a persistent hash trie. A read of an
// entity looks up its table, and among 1,000 tables a search in the ordered tree
// costs five times as much (BenchmarkLookup). It is immutable, and nil is empty.
//
// Each node takes hashBits of the hash. Children are in the order of these bits; used
// has a bit for each child. Names of equal hashes share a node at depth maxDepth,
// which is an unordered list.
type names struct {
	used     uint32
	children []child
}

// child is a table or a node of the next depth.
type child struct {
	table *Table
	node  *names
}

const (
	hashBits = 5
	maxDepth = (64 + hashBits - 1) / hashBits
	maxName  = 63 // bytes of a table's name, by edm.CheckTableName
)

// hashName returns the hash of a name folded. It allocates nothing.
func hashName(name string) uint64 {
	var buf [maxName]byte
	if len(name) > len(buf) {
		return 0 // no table has this name
	}
	for i := range len(name) {
		buf[i] = fold(name[i])
	}
	return xxhash.Sum64(buf[:len(name)])
}

// slot returns the bit of a hash at a depth, and its index among the children.
func (n *names) slot(hash uint64, depth int) (bit uint32, i int) {
	bit = 1 << (hash >> (depth * hashBits) & (1<<hashBits - 1))
	return bit, bits.OnesCount32(n.used & (bit - 1))
}

// fewTables is how many names exact compares.
const fewTables = 4

// exact returns the table of exactly this name if n is a root with few children and one of them
// is the table, or else nil. Most programs have few tables and do not change the case of a name,
// and without it a missing get needs 7 % more CPU time (bench/peers, get/key=missing).
func (n *names) exact(name string) *Table {
	if n == nil || len(n.children) > fewTables {
		return nil
	}
	for _, c := range n.children {
		if c.table != nil && c.table.Name == name {
			return c.table
		}
	}
	return nil
}

// find returns the table of a name whose hash is given, or nil.
func (n *names) find(name string, hash uint64) *Table {
	for depth := 0; n != nil; depth++ {
		if depth == maxDepth {
			i := n.indexOf(name)
			if i < 0 {
				return nil
			}
			return n.children[i].table
		}
		bit, i := n.slot(hash, depth)
		if n.used&bit == 0 {
			return nil
		}
		c := n.children[i]
		if c.table != nil {
			if c.table.Name != name && compareFolded(c.table.Name, name) != 0 {
				return nil
			}
			return c.table
		}
		n = c.node
	}
	return nil
}

// indexOf returns the index of a name in a list, -1 if it has none.
func (n *names) indexOf(name string) int {
	return slices.IndexFunc(n.children, func(c child) bool { return compareFolded(c.table.Name, name) == 0 })
}

// with returns n with t, in place of a table of the same name. n is a node at a depth.
func (n *names) with(t *Table, depth int) *names {
	if n == nil {
		n = &names{}
	}
	if depth == maxDepth {
		if i := n.indexOf(t.Name); i >= 0 {
			return n.replace(i, child{table: t})
		}
		return &names{children: append(slices.Clone(n.children), child{table: t})}
	}
	bit, i := n.slot(t.hash, depth)
	if n.used&bit == 0 {
		children := make([]child, len(n.children)+1)
		copy(children, n.children[:i])
		children[i].table = t
		copy(children[i+1:], n.children[i:])
		return &names{used: n.used | bit, children: children}
	}
	c := n.children[i]
	switch {
	case c.node != nil:
		c.node = c.node.with(t, depth+1)
	case compareFolded(c.table.Name, t.Name) == 0:
		c.table = t
	default:
		// Two names share the bits so far.
		c.node = c.node.with(c.table, depth+1).with(t, depth+1)
		c.table = nil
	}
	return n.replace(i, c)
}

// without returns n without t, which it contains, and nil if no table remains.
func (n *names) without(t *Table, depth int) *names {
	i, bit := n.indexAt(t, depth)
	c := n.children[i]
	if c.node != nil {
		if c.node = c.node.without(t, depth+1); c.node != nil {
			return n.replace(i, c)
		}
	}
	if len(n.children) == 1 {
		return nil
	}
	return &names{used: n.used &^ bit, children: slices.Delete(slices.Clone(n.children), i, i+1)}
}

// indexAt returns the index of the child that contains t, and its bit.
func (n *names) indexAt(t *Table, depth int) (i int, bit uint32) {
	if depth == maxDepth {
		return n.indexOf(t.Name), 0
	}
	bit, i = n.slot(t.hash, depth)
	return i, bit
}

func (n *names) replace(i int, c child) *names {
	children := slices.Clone(n.children)
	children[i] = c
	return &names{used: n.used, children: children}
}
