package memtable

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
)

// op is an entry that TestConcurrent applies. Its sequence number is 1 + its index
// in the list.
type op struct {
	key  string
	kind codec.Kind
	off  uint32
}

// registry registers snapshots as the engine does: between two calls of Apply, at
// the last sequence number applied.
type registry struct {
	mu      sync.Mutex
	applied uint64
	snaps   []uint64
}

func (r *registry) apply(tb *Table, off uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := uint64(0)
	if len(r.snaps) > 0 {
		keep = slices.Max(r.snaps)
	}
	r.applied++
	tb.Apply(off, r.applied, keep)
}

func (r *registry) register() (snap uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.snaps = append(r.snaps, r.applied)
	return r.applied
}

func (r *registry) release(snap uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.snaps, snap)
	r.snaps = slices.Delete(r.snaps, i, i+1)
}

// TestConcurrent applies entries while readers read their snapshots by key, forward
// and backward, and compare each row with the list of entries up to the snapshot.
func TestConcurrent(t *testing.T) {
	const (
		entries = 20_000
		readers = 3
	)
	rnd := rand.New(rand.NewPCG(seed, 3))
	l := newLog(entries * 160)
	ops := make([]op, entries)
	for i := range ops {
		partition := []int{0, rnd.IntN(5), 100 + rnd.IntN(2000)}[rnd.IntN(3)]
		o := op{kind: codec.KindPut}
		o.key = string(codec.AppendKey(nil, 16, fmt.Sprint("p", partition), fmt.Sprintf("%06d", rnd.IntN(1500)*701)))
		if rnd.IntN(6) == 0 {
			o.kind = codec.KindDelete
		}
		o.off = l.add(t, []byte(o.key), o.kind, uint64(i+1), fmt.Sprint("t", i+1))
		ops[i] = o
	}
	tb := New(l.image)
	tb.AddShape(1, 0, testShape)
	var reg registry
	var wg sync.WaitGroup
	for n := range readers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(100+n)))
			for snap := uint64(0); snap < entries && !t.Failed(); {
				snap = reg.register()
				checkSnapshot(t, tb, ops, snap, rnd)
				reg.release(snap)
			}
		})
	}
	for _, o := range ops {
		reg.apply(tb, o.off)
	}
	wg.Wait()
	if n := tb.Bytes(); n < int64(tb.Len())*itemBytes {
		t.Errorf("Bytes = %d for %d versions", n, tb.Len())
	}
}

// checkSnapshot compares the rows of tb at snap with ops.
func checkSnapshot(t *testing.T, tb *Table, ops []op, snap uint64, rnd *rand.Rand) {
	newest := map[string]uint64{}
	for i, o := range ops[:snap] {
		newest[o.key] = uint64(i + 1)
	}
	keys := make([]string, 0, len(newest))
	for k := range newest {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var row codec.Row
	for range 200 {
		key := []byte(ops[rnd.IntN(len(ops))].key)
		seq, kind, ok := tb.Get(key, codec.PartitionHash(key), snap, &row)
		want := newest[string(key)]
		if seq != want || ok != (want != 0) || ok && kind != ops[want-1].kind {
			t.Errorf("seed %d: Get(%q, snap %d) = %d %d %t, want %d", seed, key, snap, seq, kind, ok, want)
			return
		}
		if ok && kind == codec.KindPut {
			checkRow(t, &row, key, seq)
		}
		// The newest version is at least as new, and whole.
		if seq, kind, ok = tb.Get(key, codec.PartitionHash(key), codec.MaxSeq, &row); seq < want {
			t.Errorf("seed %d: Get(%q) = %d, older than %d", seed, key, seq, want)
			return
		}
		if ok && kind == codec.KindPut {
			checkRow(t, &row, key, seq)
		}
	}
	it := tb.NewIterator(IterOptions{Snapshot: snap})
	i := 0
	check := func() bool {
		user, seq, kind := codec.SplitTrailer(it.Key())
		if i < 0 || i == len(keys) || string(user) != keys[i] || seq != newest[keys[i]] || kind != ops[seq-1].kind {
			t.Errorf("seed %d: snapshot %d, row %d of %d: at %q seq %d kind %d", seed, snap, i, len(keys), user, seq, kind)
			return false
		}
		if row := it.Row(); row != nil {
			checkRow(t, row, user, seq)
		}
		return true
	}
	for ok := it.SeekGE(nil); ok && check(); ok = it.Next() {
		i++
	}
	if i != len(keys) {
		t.Errorf("seed %d: snapshot %d: %d rows forward, want %d", seed, snap, i, len(keys))
		return
	}
	for ok := it.SeekLT(nil); ok; ok = it.Prev() {
		i--
		if !check() {
			return
		}
	}
	if i != 0 {
		t.Errorf("seed %d: snapshot %d: %d rows missing backward", seed, snap, i)
	}
}

// TestApplyAllIsAtomic applies batches that overwrite all rows of a partition while
// readers, which read a small partition in one batch, check that they never see a
// partial batch.
func TestApplyAllIsAtomic(t *testing.T) {
	const rows, batches = firstBatch, 5000
	l := newLog(rows * batches * 96)
	tb := New(l.image)
	tb.AddShape(1, 0, testShape)
	lower, upper := codec.AppendPartition(nil, 16, "p"), codec.AppendPartitionEnd(nil, 16, "p")
	var wg sync.WaitGroup
	var applied atomic.Bool
	for range 2 {
		wg.Go(func() {
			for last := false; !last && !t.Failed(); {
				last = applied.Load()
				it := tb.NewIterator(IterOptions{Lower: lower, Upper: upper, Snapshot: codec.MaxSeq})
				n, first := uint64(0), uint64(0)
				for ok := it.SeekGE(nil); ok; ok = it.Next() {
					_, seq, _ := codec.SplitTrailer(it.Key())
					if n == 0 {
						first = seq
					}
					if seq != first+n || first%rows != 1 {
						t.Errorf("row %d has seq %d, the first %d", n, seq, first)
						return
					}
					n++
				}
				if n != 0 && n != rows || n == 0 && last {
					t.Errorf("%d of %d rows", n, rows)
				}
			}
		})
	}
	offs := make([]uint32, rows)
	hash := codec.PartitionHash(lower)
	tb.ApplyAll(hash, len(lower), nil, 1, 0)
	for b := range uint64(batches) {
		for i := range offs {
			offs[i] = l.add(t, codec.AppendKey(nil, 16, "p", fmt.Sprintf("%03d", i)), codec.KindPut, b*rows+uint64(i)+1, "x")
		}
		tb.ApplyAll(hash, len(lower), offs, b*rows+1, 0)
	}
	applied.Store(true)
	wg.Wait()
	if n := tb.Len(); n != rows {
		t.Errorf("Len = %d, want %d", n, rows)
	}
}

// TestNoAllocations covers point reads and the steps of an iterator.
func TestNoAllocations(t *testing.T) {
	m := newModel(t, 8<<20)
	for i := range 20_000 {
		p := i % 40
		if i%4 == 0 {
			p = i
		}
		m.apply(codec.AppendKey(nil, 16, fmt.Sprint("p", p), fmt.Sprintf("%013d", i)), codec.KindPut)
	}
	var row codec.Row
	for _, c := range []struct{ name, partition, row string }{
		{"in a tree", "p1", "0000000000001"},
		{"alone", "p444", "0000000000444"},
		{"missing in a tree", "p1", "0000000000002"},
		{"missing beside one", "p444", "0000000000445"},
		{"missing partition", "none", ""},
	} {
		n := testing.AllocsPerRun(100, func() {
			var buf [64]byte
			key := codec.AppendKey(buf[:0], 16, c.partition, c.row)
			m.table.Get(key, codec.PartitionHash(key), codec.MaxSeq, &row)
		})
		if n != 0 {
			t.Errorf("Get of a row %s allocates %v times", c.name, n)
		}
	}
	for _, reverse := range []bool{false, true} {
		it := m.table.NewIterator(IterOptions{Snapshot: codec.MaxSeq})
		move, ok := it.Next, it.SeekGE(nil)
		if reverse {
			move, ok = it.Prev, it.SeekLT(nil)
		}
		for range 2000 { // past the first batches, which grow the buffers
			ok = ok && move()
		}
		n := testing.AllocsPerRun(10_000, func() {
			ok = ok && move()
			_ = it.Key()
			_ = it.Row()
		})
		if n != 0 || !ok {
			t.Errorf("a step, reverse = %t, allocates %v times, at the end = %t", reverse, n, !ok)
		}
	}
}
