package sstable

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/race"
)

// TestConcurrentReaders reads through a cache that is too small, so that blocks are
// evicted and their memory is reused while others read.
func TestConcurrentReaders(t *testing.T) {
	entries := visible(newGenerator(4).entries(1200, 5, 4), IterOptions{Snapshot: codec.MaxSeq})
	o := writerOptions()
	o.GroupBytes = 2000
	f, _ := write(t, o, entries)
	r := open(t, f, cache.New(96<<10))
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			g := newGenerator(uint64(n))
			var row Row
			defer row.Release()
			for range 1500 {
				e := &entries[g.IntN(len(entries))]
				_, kind, ok, err := r.Get(e.user, codec.KeyHash(e.user), codec.MaxSeq, &row)
				if err != nil || !ok || (kind == codec.KindDelete) != e.del {
					t.Errorf("get: %t, kind %d, %v", ok, kind, err)
					return
				}
				if !e.del {
					if d := diff(e, &row); d != "" {
						t.Error(d)
						return
					}
				}
				absent := append(slices.Clone(e.user), 0) // which the filter does not exclude
				if _, _, ok, err := r.Get(absent, codec.KeyHash(e.user), codec.MaxSeq, &row); err != nil || ok {
					t.Errorf("get of an absent key: %t, %v", ok, err)
					return
				}
			}
			it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq, Fill: n%2 == 0})
			i := 0
			for ok := it.SeekGE(nil); ok; ok = it.Next() {
				if d := diff(&entries[i], it.Row()); d != "" {
					t.Error(d)
					break
				}
				i++
			}
			if err := it.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestArrangedHead reads a head by gets and scans until it is laid out by rows. An
// iterator that has pinned the old head must read it to its end.
func TestArrangedHead(t *testing.T) {
	entries := uniform(2000)
	f, _ := write(t, writerOptions(), entries)
	for scans := range arrangeAfter/scanUses + 1 {
		c := cache.New(4 << 20)
		r := open(t, f, c)
		arranged := func() bool {
			h, pin, _, err := r.head(0, nil, false, true)
			if err != nil {
				t.Fatal(err)
			}
			defer pin.Release()
			return h.arranged
		}
		var iters []*Iterator
		for range scans {
			it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq, Fill: true})
			if !it.SeekGE(nil) {
				t.Fatal(it.Err())
			}
			iters = append(iters, it)
		}
		var row Row
		for uses := scans * scanUses; ; uses++ {
			if got, want := arranged(), uses >= arrangeAfter; got != want {
				t.Errorf("after %d scans and %d gets: laid out by rows is %t, want %t", scans, uses-scans*scanUses, got, want)
			}
			if uses > arrangeAfter {
				break
			}
			e := &entries[uses] // of the first group
			if _, _, ok, err := r.Get(e.user, codec.KeyHash(e.user), codec.MaxSeq, &row); err != nil || !ok {
				t.Fatalf("get: %t, %v", ok, err)
			}
			if e.del {
				continue
			}
			if d := diff(e, &row); d != "" {
				t.Errorf("row %d: %s", uses, d)
			}
		}
		row.Release()
		for _, it := range iters {
			i := 0
			for ok := it.Valid(); ok; ok = it.Next() {
				if row := it.Row(); row != nil {
					if d := diff(&entries[i], row); d != "" {
						t.Fatalf("row %d of an iterator: %s", i, d)
					}
				}
				i++
			}
			if err := it.Close(); err != nil || i != len(entries) {
				t.Errorf("%d of %d rows, %v", i, len(entries), err)
			}
		}
		c.Drop(r.o.CacheDB, r.o.Number)
		if s := c.Stats(); s.Bytes != 0 || s.Blocks != 0 {
			t.Errorf("after the blocks are dropped: %+v", s)
		}
		if n := c.Close(); n != 0 {
			t.Errorf("%d blocks are pinned at the end", n)
		}
	}
}

// uniform returns n small rows of one shape, without big values.
func uniform(n int) []entry {
	var list []entry
	for i := range n {
		list = append(list, newEntry(fmt.Sprintf("p%d", i/300), fmt.Sprintf("%06d", i), uint64(i+1), i%50 == 7, edm.Properties{
			{Name: "a", Value: edm.Int64(int64(i))},
			{Name: "s", Value: edm.String(fmt.Sprintf("value number %d of some length", i*i))},
			{Name: "g", Value: edm.GuidWords(uint64(i), 5)},
		}))
	}
	return sortEntries(list)
}

func TestReadsDoNotAllocate(t *testing.T) {
	entries := uniform(2000)
	f, _ := write(t, writerOptions(), entries)
	hot := open(t, f, cache.New(16<<20))
	var row Row
	get := func(r *Reader) {
		for i := range entries {
			e := &entries[i]
			if _, _, ok, err := r.Get(e.user, codec.KeyHash(e.user), codec.MaxSeq, &row); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if !e.del {
				touch(&row)
			}
		}
	}
	miss := func() {
		for i := range entries {
			if hot.MayContain(uint64(i) * 0x9E3779B97F4A7C15) {
				sink++
			}
		}
	}
	it := hot.NewIterator(IterOptions{Snapshot: codec.MaxSeq})
	scan := func() {
		for ok := it.SeekGE(nil); ok; ok = it.Next() {
			sink += uint64(len(it.Key()))
			if row := it.Row(); row != nil {
				touch(row)
			}
		}
		for ok := it.SeekLT(nil); ok; ok = it.Prev() {
			sink += uint64(len(it.Key()))
		}
	}
	cold := open(t, f, cache.New(0)).NewIterator(IterOptions{Snapshot: codec.MaxSeq})
	coldScan := func() {
		for ok := cold.SeekGE(nil); ok; ok = cold.Next() {
			if row := cold.Row(); row != nil {
				touch(row)
			}
		}
	}
	for name, run := range map[string]func(){"get": func() { get(hot) }, "miss": miss, "scan": scan, "scan without a cache": coldScan} {
		if n := testing.AllocsPerRun(3, run); n > 2 && !race.Enabled || n > 5000 {
			t.Errorf("%s: %v allocations in %d rows", name, n, len(entries))
		}
	}
}
