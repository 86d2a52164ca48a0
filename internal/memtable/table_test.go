package memtable

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/race"
)

// keyspaces are random key generators for several distributions of data.
var keyspaces = []struct {
	name string
	rows int
	key  func(rnd *rand.Rand, n int) []byte
}{
	{"partitions=100/rows=100", 8000, func(rnd *rand.Rand, n int) []byte {
		return codec.AppendKey(nil, 16, fmt.Sprintf("p%04d", rnd.IntN(100)), fmt.Sprintf("%013d", 1700000000000+rnd.Int64N(100)*977))
	}},
	{"partitions=many/rows=1", 8000, func(rnd *rand.Rand, n int) []byte {
		return codec.AppendKey(nil, 16, fmt.Sprintf("p%04d", rnd.IntN(6000)), "")
	}},
	{"partitions=1/rows=many", 8000, func(rnd *rand.Rand, n int) []byte {
		return codec.AppendKey(nil, 16, "p", fmt.Sprint("row-", rnd.IntN(6000)))
	}},
	{"sequential", 8000, func(rnd *rand.Rand, n int) []byte {
		return codec.AppendKey(nil, 16, fmt.Sprintf("p%02d", n/1000), fmt.Sprintf("%013d", n))
	}},
	{"mixed", 8000, func(rnd *rand.Rand, n int) []byte {
		sizes := []int{1, 2, 5, 33, 40, 700}
		p := rnd.IntN(60)
		row := strings.Repeat("x", rnd.IntN(3)*7) + []string{"", "a", "é", "\U0001F600", "\uE000"}[rnd.IntN(5)] + fmt.Sprint(rnd.IntN(sizes[p%len(sizes)]))
		return codec.AppendKey(nil, []uint32{0, 16, 257, 1 << 24}[p%4], fmt.Sprint("part", p), row)
	}},
}

func TestModel(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, ks := range keyspaces {
		if testing.Short() {
			ks.rows /= 4
		}
		t.Run(ks.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			m := newModel(t, 4<<20)
			for n := range ks.rows {
				kind := codec.KindPut
				if rnd.IntN(5) == 0 {
					kind = codec.KindDelete
				}
				m.apply(ks.key(rnd, n), kind)
				switch rnd.IntN(ks.rows / 16) {
				case 0:
					m.snaps = append(m.snaps, m.seq)
				case 1:
					m.snaps = nil
				case 2:
					if len(m.snaps) > 0 {
						m.snaps = m.snaps[1:]
					}
				}
				if rnd.IntN(ks.rows/8) == 0 { // the directory takes in new partitions on the way
					m.walk(rnd, nil, nil, m.seq, 50)
				}
			}
			m.snaps = append(m.snaps, m.seq)
			for _, k := range m.sorted() {
				m.checkGet([]byte(k), codec.MaxSeq)
				m.checkGet([]byte(k), m.snaps[rnd.IntN(len(m.snaps))])
				m.checkGet(append([]byte(k[:len(k)-1]), 'z', 1), codec.MaxSeq)
			}
			for range 500 {
				m.checkGet(ks.key(rnd, rnd.IntN(2*ks.rows)), m.seq)
			}
			m.checkVersions()
			for _, snap := range m.snaps {
				m.checkScans(nil, nil, snap)
			}
			for range 60 {
				lower, upper := m.bound(rnd), m.bound(rnd)
				m.checkScans(lower, upper, m.seq)
				m.walk(rnd, lower, upper, m.snaps[rnd.IntN(len(m.snaps))], 300)
			}
		})
	}
}

// TestPartitionBounds scans each partition between its bounds, without the
// directory, and then ranges of RowKeys in it.
// +checklocksignore
func TestPartitionBounds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(seed, 2))
	m := newModel(t, 4<<20)
	for p := range 50 {
		for r := range p {
			m.apply(codec.AppendKey(nil, 16, fmt.Sprint(p), fmt.Sprint(r)), codec.KindPut)
		}
	}
	for p := range 51 {
		pk := fmt.Sprint(p)
		lower, upper := codec.AppendPartition(nil, 16, pk), codec.AppendPartitionEnd(nil, 16, pk)
		m.checkScans(lower, upper, m.seq)
		m.walk(rnd, lower, upper, m.seq, 200)
		m.checkScans(codec.AppendRowStart(nil, 16, pk, "1"), append(codec.AppendRowStart(nil, 16, pk, "1"), 0xFF), m.seq)
		m.checkScans(codec.AppendRowEnd(nil, 16, pk, "1"), codec.AppendRowStart(nil, 16, pk, "4"), m.seq)
	}
	if m.table.dir.known != 0 {
		t.Fatalf("the directory added %d partitions for scans within one", m.table.dir.known)
	}
	m.checkScans(codec.AppendPartitionStart(nil, 16, "2"), append(codec.AppendPartitionStart(nil, 16, "2"), 0xFF), m.seq)
	if m.table.dir.known != 49 {
		t.Fatalf("the directory knows %d partitions, want 49", m.table.dir.known)
	}
}

// TestSharedPrefixShrinks adds rows that each shorten the shared prefix of their
// partition by one byte.
// +checklocksignore
func TestSharedPrefixShrinks(t *testing.T) {
	m := newModel(t, 4<<20)
	const longest = 1000
	for n := longest; n >= 0; n-- {
		m.apply(codec.AppendKey(nil, 16, "p", strings.Repeat("a", n)+"b"), codec.KindPut)
		if n == longest-100 {
			p := m.table.shard(codec.PartitionHash([]byte(m.keys[0]))).partitions.at(0)
			if p.breaks != 16 || p.shared > longest/2 {
				t.Fatalf("shared prefix of %d after %d breaks in a tree and more", p.shared, p.breaks)
			}
		}
	}
	for _, k := range m.sorted() {
		m.checkGet([]byte(k), m.seq)
	}
	m.checkScans(nil, nil, m.seq)
	s := m.table.shard(codec.PartitionHash([]byte(m.keys[0])))
	if p := s.partitions.at(0); p.breaks != 16 || p.shared != 0 {
		t.Fatalf("%d breaks, shared prefix %d, want 16 and 0", p.breaks, p.shared)
	}
}

// TestDirectoryGrows scans between arrivals of partitions that shorten the prefix
// that all partitions of the directory share.
// +checklocksignore
func TestDirectoryGrows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(seed, 4))
	m := newModel(t, 4<<20)
	n := 0
	for _, prefix := range []string{"aaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaa", "aaaab", "aaaaa", "b", ""} {
		for i := range 100 {
			m.apply(codec.AppendKey(nil, 16, fmt.Sprint(prefix, i*37%100), ""), codec.KindPut)
			n++
		}
		m.checkScans(nil, nil, m.seq)
		m.walk(rnd, nil, nil, m.seq, 200)
		listed := m.table.dir.tree.Len() + len(m.table.dir.sorted)
		if got := m.table.dir.known; got != int64(n) || listed != n {
			t.Fatalf("the directory knows %d partitions and lists %d, want %d", got, listed, n)
		}
	}
	m.apply(codec.AppendKey(nil, 1<<31, "", ""), codec.KindPut)
	m.checkScans(nil, nil, m.seq)
	if m.table.dir.shared != 0 {
		t.Fatalf("the directory shares %d bytes between tables 16 and 1<<31", m.table.dir.shared)
	}
}

// TestEqualHash looks up a partition that has the hash of another partition.
// +checklocksignore
func TestEqualHash(t *testing.T) {
	m := newModel(t, 1<<20)
	key := codec.AppendKey(nil, 16, "p", "r")
	m.apply(key, codec.KindPut)
	hash := codec.PartitionHash(key)
	s := m.table.shard(hash)
	if _, p := s.find(hash, codec.AppendPartition(nil, 16, "p")); p == nil {
		t.Error("the partition is not found")
	}
	if _, p := s.find(hash, codec.AppendPartition(nil, 16, "q")); p != nil {
		t.Error("another partition with the same hash is taken for it")
	}
}

// +checklocksignore
func TestKeepZeroDropsAllOlder(t *testing.T) {
	m := newModel(t, 1<<20)
	key := codec.AppendKey(nil, 16, "p", "r")
	for range 10 {
		m.snaps = append(m.snaps, m.seq)
		m.apply(key, codec.KindPut)
	}
	if n := m.table.Len(); n != 10 {
		t.Fatalf("Len = %d, want 10", n)
	}
	m.checkVersions()
	m.snaps = nil
	m.apply(key, codec.KindDelete)
	if n := m.table.Len(); n != 1 {
		t.Fatalf("Len = %d, want 1", n)
	}
	m.checkVersions()
	s := m.table.shard(codec.PartitionHash(key))
	before := s.versions.n
	m.snaps = []uint64{m.seq}
	m.apply(key, codec.KindPut)
	if s.versions.n != before {
		t.Fatalf("the slab of versions grew to %d while some were free", s.versions.n)
	}
	m.checkVersions()
}

// TestShapes defines more shapes than the table keeps decoded.
func TestShapes(t *testing.T) {
	race.SkipOneGoroutine(t)
	var image []byte
	var offs []uint32
	var shapes []*codec.Shape
	for i := range 2000 {
		var props edm.Properties
		for k := range 252 {
			props = append(props, edm.Property{Name: fmt.Sprintf("Property%d", 300*k+i%300), Value: edm.Int32(0)})
		}
		shape := codec.NewShape(props)
		offs, shapes = append(offs, uint32(len(image))), append(shapes, shape)
		image = codec.AppendEntry(image, codec.Entry{Kind: codec.KindShape, Shape: uint16(i + 1), Values: codec.AppendShape(nil, shape)})
	}
	tb := New(image)
	for i, s := range shapes {
		tb.AddShape(uint16(i+1), offs[i], s)
	}
	for range 2 {
		for i, want := range shapes {
			got := tb.Shape(uint16(i + 1))
			if got.Len() != want.Len() || got.Name(251) != want.Name(251) {
				t.Fatalf("shape %d names %q, want %q", i+1, got.Name(251), want.Name(251))
			}
		}
	}
	if n := tb.Bytes(); n > shapeBudget+100<<10 {
		t.Errorf("the table keeps %d bytes", n)
	}
	if tb.Shapes() != len(shapes) || tb.Shape(0) != nil || tb.Shape(uint16(len(shapes)+1)) != nil {
		t.Error("there are more or fewer shapes")
	}
}

// TestUpperBoundOfOtherPartition scans to a bound that is as long as the prefix of the last
// partition of the first batch and differs from it in the last byte alone, as the end of that
// partition does.
func TestUpperBoundOfOtherPartition(t *testing.T) {
	m := newModel(t, 4096)
	for i := range firstBatch - 1 {
		m.apply(codec.AppendKey(nil, 16, fmt.Sprintf("P%03d", i), ""), codec.KindPut)
	}
	for _, partition := range []string{"a", "aa", "b"} {
		m.apply(codec.AppendKey(nil, 16, partition, ""), codec.KindPut)
	}
	m.checkScans(nil, codec.AppendPartitionStart(nil, 16, "ab"), m.seq)
}

func TestForwardOnly(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an iterator of all versions moved backward")
		}
	}()
	newModel(t, 64).table.NewIterator(IterOptions{AllVersions: true}).SeekLT(nil)
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"item", reflect.TypeOf(item{}).Size(), itemBytes},
		{"partition", reflect.TypeOf(partition{}).Size(), partitionBytes},
		{"version", reflect.TypeOf(version{}).Size(), versionBytes},
	} {
		// Where words have 32 bits, there is less padding.
		if c.got > c.want || c.got < c.want && bits.UintSize == 64 {
			t.Errorf("%s has %d bytes, the accounting says %d", c.name, c.got, c.want)
		}
	}
	if n := reflect.TypeOf(Table{}).Size(); n > tableBytes || n < tableBytes/2 {
		t.Errorf("a Table has %d bytes, the accounting says %d", n, tableBytes)
	}
}

// TestBytes compares the accounting with the size of the Go heap, and checks that
// the arrays of partitions that moved to another form are reused.
// +checklocksignore
func TestBytes(t *testing.T) {
	race.SkipOneGoroutine(t)
	const rows = 60_000
	for _, partitions := range []int{1, 60, 1500, 4000, 20_000, rows} {
		t.Run(fmt.Sprint("partitions=", partitions), func(t *testing.T) {
			l := newLog(rows * 64)
			offs := make([]uint32, rows)
			for i := range offs {
				// One partition after another, so that they can share the arrays.
				key := codec.AppendKey(nil, 16, fmt.Sprint(i/(rows/partitions)), fmt.Sprint(i))
				offs[i] = l.add(t, key, codec.KindDelete, uint64(i+1), "")
			}
			before := heapBytes()
			tb := New(l.image)
			for i, off := range offs {
				tb.Apply(off, uint64(i+1), 0)
			}
			tb.NewIterator(IterOptions{}).SeekGE(nil) // makes the directory
			used := heapBytes() - before
			if got := tb.Bytes(); got < used*8/10 || got > used*13/10 {
				t.Errorf("Bytes = %d, the heap grew by %d", got, used)
			}
			for i := range tb.shards {
				for f, a := range tb.shards[i].arrays { // +checklocksignore: nothing runs concurrently
					if partitions <= 1500 && a.n > slabLen {
						t.Errorf("shard %d has %d items in arrays of form %d although all partitions are trees", i, a.n, f+1)
					}
				}
			}
			runtime.KeepAlive(tb)
		})
	}
}

// heapBytes returns the memory of live objects.
func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestEmpty(t *testing.T) {
	m := newModel(t, 64)
	m.checkGet(codec.AppendKey(nil, 16, "p", "r"), codec.MaxSeq)
	m.checkScans(nil, nil, codec.MaxSeq)
	m.checkScans(codec.AppendPartition(nil, 16, "p"), codec.AppendPartitionEnd(nil, 16, "p"), codec.MaxSeq)
	m.checkScans(codec.AppendTable(nil, 16), codec.AppendTable(nil, 17), codec.MaxSeq)
	m.checkVersions()
}

// TestLenOfReplacedRows puts the rows of one partition in random order, and each of them
// again, with and without a snapshot. Len counts the versions that are kept.
func TestLenOfReplacedRows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(seed, 8))
	const rows = 100
	for _, snapshots := range [][]uint64{nil, {2 * rows}} {
		m := newModel(t, 1<<20)
		m.apply(codec.AppendKey(nil, 16, "p", fmt.Sprintf("%03d", rows)), codec.KindPut)
		for range 2 {
			for _, n := range rnd.Perm(rows) {
				m.apply(codec.AppendKey(nil, 16, "p", fmt.Sprintf("%03d", n)), codec.KindPut)
			}
			m.snaps = snapshots
		}
		want := 1 + rows
		if snapshots != nil {
			want += rows
		}
		if got := m.table.Len(); got != want {
			t.Errorf("snapshots at %v: %d versions, want %d", snapshots, got, want)
		}
	}
}
