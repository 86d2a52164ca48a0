package memtable

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/race"
)

// TestDirectoryArrayAndTree scans while partitions arrive a few at a time after
// many that arrived together. The directory adds them to the tree, the first and the
// last of all soon, and later moves them to the array.
func TestDirectoryArrayAndTree(t *testing.T) {
	race.SkipOneGoroutine(t)
	t.Run("prefixes differ", func(t *testing.T) { checkArrayAndTree(t, 16) })
	t.Run("prefixes are equal", func(t *testing.T) { checkArrayAndTree(t, 1) }) // the partitions share less
}

// +checklocksignore
func checkArrayAndTree(t *testing.T, firstTable uint32) {
	rnd := rand.New(rand.NewPCG(seed, 5))
	m := newModel(t, 4<<20)
	m.apply(codec.AppendKey(nil, firstTable, "partition-0100", ""), codec.KindPut)
	order := slices.Insert(rnd.Perm(1298), 601, -1, 1298)
	add := func(n int) {
		for ; n > 0; n-- {
			m.apply(codec.AppendKey(nil, 16, fmt.Sprintf("partition-%04d", 101+order[0]), ""), codec.KindPut)
			order = order[1:]
		}
	}
	add(600)
	m.checkScans(nil, nil, m.seq)
	var inTree, emptied int
	for len(order) > 0 {
		add(min(len(order), 1+rnd.IntN(30)))
		before := m.table.dir.tree.Len()
		n, it := 0, m.table.NewIterator(IterOptions{Snapshot: m.seq})
		for ok := it.SeekLT(nil); ok; ok = it.Prev() {
			n++
		}
		if n != len(m.keys) {
			t.Fatalf("backward at first: %d rows, want %d", n, len(m.keys))
		}
		m.checkScans(nil, nil, m.seq)
		m.walk(rnd, nil, nil, m.seq, 50)
		inTree = max(inTree, m.table.dir.tree.Len())
		if m.table.dir.tree.Len() < before {
			emptied++
		}
	}
	if inTree == 0 || emptied == 0 {
		t.Errorf("at most %d partitions in the tree, emptied %d times: want both the array and the tree in use", inTree, emptied)
	}
}
