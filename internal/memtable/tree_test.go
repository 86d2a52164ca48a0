package memtable

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/race"
)

// TestTreeOrders inserts the rows of one partition in several orders, and compares
// every lookup and every walk from a row with a sorted list, and bounds the memory.
func TestTreeOrders(t *testing.T) {
	race.SkipOneGoroutine(t)
	const rows = 9000 // more than nodeLen * nodeLen, so that inner nodes have a parent
	rng := rand.New(rand.NewPCG(seed, 11))
	random := func(i int) int { return i * 7919 % rows }
	evenFirst := func(i int) int { return 2*i%rows + 2*i/rows }
	for _, c := range []struct {
		name     string
		row      func(i int) int // a permutation
		after    func(n int) string
		rowBytes int64 // the most that Table.Bytes may count for a row
	}{
		{"ascending", func(i int) int { return i }, decimal, 27},
		{"descending", func(i int) int { return rows - 1 - i }, decimal, 53},
		{"random", random, decimal, 43},
		{"ascending, then between", evenFirst, decimal, 27},
		{"ascending, equal prefixes", func(i int) int { return i }, behindPrefix, 27},
		{"random, equal prefixes", random, behindPrefix, 43},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := checkTree(t, rng, rows, func(i int) []byte { return codec.AppendKey(nil, 1, "p", c.after(c.row(i))) })
			if got := (n - tableBytes) / rows; got > c.rowBytes {
				t.Errorf("%d bytes a row, want at most %d", got, c.rowBytes)
			}
		})
	}
}

func decimal(n int) string { return fmt.Sprintf("%06d", n) }

// behindPrefix returns names that differ behind the prefix of an item, and one that makes
// the shared prefix short.
func behindPrefix(n int) string {
	if n == 4500 {
		return "a"
	}
	return fmt.Sprintf("b-the-same-prefix-%06d", n)
}

// checkTree returns the Bytes of the table.
func checkTree(t *testing.T, rng *rand.Rand, rows int, key func(i int) []byte) int64 {
	t.Helper()
	var image []byte
	var offs []uint32
	var keys [][]byte
	for i := range rows {
		offs = append(offs, uint32(len(image)))
		keys = append(keys, key(i))
		image = codec.AppendEntry(image, codec.Entry{Kind: codec.KindDelete, Key: keys[i]})
	}
	table := New(image)
	for i, off := range offs {
		table.Apply(off, uint64(i+1), 0)
	}
	slices.SortFunc(keys, slices.Compare[[]byte])
	if len(slices.CompactFunc(slices.Clone(keys), slices.Equal[[]byte])) != rows {
		t.Fatal("the keys are not distinct")
	}
	var row codec.Row
	for _, k := range keys {
		if _, _, ok := table.Get(k, codec.PartitionHash(k), codec.MaxSeq, &row); !ok {
			t.Fatalf("Get(%q) found nothing", k)
		}
	}
	it := table.NewIterator(IterOptions{Snapshot: codec.MaxSeq})
	for range 50 {
		from := rng.IntN(rows)
		walkTree(t, it, keys, from)
	}
	walkTree(t, it, keys, 0)
	walkTree(t, it, keys, rows-1)
	return table.Bytes()
}

// walkTree walks from keys[from] to both ends.
func walkTree(t *testing.T, it *Iterator, keys [][]byte, from int) {
	t.Helper()
	i := from
	for ok := it.SeekGE(keys[from]); ok; ok = it.Next() {
		if i == len(keys) || string(it.userKey()) != string(keys[i]) {
			t.Fatalf("row %d of a walk up from row %d is %q", i, from, it.userKey())
		}
		i++
	}
	if i != len(keys) {
		t.Fatalf("a walk up from row %d ended at row %d", from, i)
	}
	i = from - 1
	for ok := it.SeekLT(keys[from]); ok; ok = it.Prev() {
		if i < 0 || string(it.userKey()) != string(keys[i]) {
			t.Fatalf("row %d of a walk down from row %d is %q", i, from, it.userKey())
		}
		i--
	}
	if i != -1 {
		t.Fatalf("a walk down from row %d ended at row %d", from, i)
	}
}
