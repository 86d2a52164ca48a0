package sstable

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

type sample struct {
	name    string
	entries []entry
	options WriterOptions
}

// samples are files of every kind.
func samples() []sample {
	var list []sample
	add := func(name string, entries []entry, change func(*WriterOptions)) {
		o := writerOptions()
		if change != nil {
			change(&o)
		}
		list = append(list, sample{name, entries, o})
	}
	add("empty", nil, nil)
	add("empty keys", []entry{newEntry("", "", 1, false, nil)}, nil)
	add("one tombstone", []entry{newEntry("a", "b", 9, true, nil)}, nil)
	for seed := range uint64(6) {
		g := newGenerator(seed)
		add(fmt.Sprintf("random seed=%d", seed), g.entries(900, 1+int(seed*seed*9), 1+int(seed)*3), func(o *WriterOptions) {
			o.Compression = Compression(seed % 3)
			if seed%2 == 1 {
				o.GroupBytes = 700
			}
		})
	}
	g := newGenerator(99)
	var many []entry
	for v := range 300 {
		many = append(many, newEntry("p", "r", uint64(v+2), v%3 == 0, g.props(2)))
	}
	many = append(many, newEntry("p", "q", 1, false, nil), newEntry("p", "s", 500, false, nil), newEntry("p", "t", 501, false, nil))
	add("versions across groups", sortEntries(many), func(o *WriterOptions) { o.GroupBytes = 900 })
	var large []entry
	for i := range 4 {
		var props edm.Properties
		for p := range 16 {
			props = append(props, edm.Property{Name: fmt.Sprintf("b%d", p), Value: edm.Binary(g.bytes(64 << 10 * p / 15))})
		}
		large = append(large, newEntry("large", fmt.Sprint(i), uint64(i+1), false, props))
	}
	add("entities of half a MiB", sortEntries(large), nil)
	var wide []entry
	for i := range 40 {
		var props edm.Properties
		for p := range 252 {
			props = append(props, edm.Property{Name: fmt.Sprintf("w%d", p), Value: edm.Binary(g.bytes(p * 16))})
		}
		wide = append(wide, newEntry("wide", fmt.Sprint(i), uint64(i+1), false, props))
	}
	add("252 properties", sortEntries(wide), nil)
	var deleted []entry
	for i := range 600 {
		props := edm.Properties{{Name: "N", Value: edm.Int32(int32(i))}, {Name: "S", Value: edm.String(fmt.Sprint(i))}}
		deleted = append(deleted, newEntry("deleted", fmt.Sprint(i), uint64(i+1), g.IntN(6) == 0, props))
	}
	add("rows of one shape and tombstones", sortEntries(deleted), func(o *WriterOptions) { o.GroupBytes = 2000 })
	return list
}

func TestRoundTrip(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			f, info := write(t, s.options, s.entries)
			checkInfo(t, info, s.entries)
			for _, size := range []int64{0, 1 << 20} {
				r := open(t, f, cache.New(size))
				if err := r.Verify(context.Background()); err != nil {
					t.Fatal(err)
				}
				it := r.NewIterator(IterOptions{AllVersions: true, Fill: true})
				n := 0
				for ok := it.SeekGE(nil); ok; ok = it.Next() {
					if n == len(s.entries) {
						t.Fatalf("more than %d entries", n)
					}
					e := &s.entries[n]
					if !bytes.Equal(it.Key(), e.key) {
						t.Fatalf("entry %d: key %x, want %x", n, it.Key(), e.key)
					}
					if d := diff(e, it.Row()); d != "" {
						t.Fatalf("entry %d, %q %q: %s", n, e.pk, e.rk, d)
					}
					n++
				}
				if err := it.Close(); err != nil || n != len(s.entries) {
					t.Fatalf("%d entries, want %d, error %v", n, len(s.entries), err)
				}
				seq, stamp, several := uint64(0), edm.Ticks(0), false
				for i, e := range s.entries {
					seq, stamp = max(seq, e.seq), max(stamp, e.ts)
					several = several || i > 0 && bytes.Equal(e.user, s.entries[i-1].user)
				}
				if gotSeq, gotStamp, err := r.Newest(); gotSeq != seq || gotStamp != stamp || err != nil {
					t.Errorf("newest: %d, %v, error %v, want %d, %v", gotSeq, gotStamp, err, seq, stamp)
				}
				if r.Versions() != several {
					t.Errorf("versions: %t, want %t", r.Versions(), several)
				}
			}
		})
	}
}

// TestMostRowsOfGroup writes tombstones with short keys, of which the bytes of a group would have more than
// a group may.
func TestMostRowsOfGroup(t *testing.T) {
	var entries []entry
	for i := range 2*rowgroup.MaxRows + 1 {
		entries = append(entries, newEntry("", fmt.Sprintf("%04d", i), uint64(i+1), true, nil))
	}
	f, _ := write(t, writerOptions(), entries)
	r := open(t, f, nil)
	if err := r.Verify(context.Background()); err != nil {
		t.Error(err)
	}
	var rows []int
	for i := range r.index.Groups {
		rows = append(rows, r.index.Groups[i].Rows)
	}
	if want := []int{rowgroup.MaxRows, rowgroup.MaxRows, 1}; !slices.Equal(rows, want) {
		t.Errorf("groups of %v rows, want %v", rows, want)
	}
}

func checkInfo(t *testing.T, info Info, entries []entry) {
	t.Helper()
	var want Info
	for i, e := range entries {
		want.Entries++
		if e.del {
			want.Tombstones++
		}
		if i == 0 {
			want.MinSeq, want.Smallest = e.seq, e.key
		}
		want.MinSeq, want.MaxSeq = min(want.MinSeq, e.seq), max(want.MaxSeq, e.seq)
		want.Largest = e.key
	}
	if info.Entries != want.Entries || info.Tombstones != want.Tombstones || info.MinSeq != want.MinSeq || info.MaxSeq != want.MaxSeq ||
		!bytes.Equal(info.Smallest, want.Smallest) || !bytes.Equal(info.Largest, want.Largest) {
		t.Fatalf("info %+v, want %+v", info, want)
	}
}

// newest returns the version of a user key that a snapshot shows, nil if there is
// none.
func newest(entries []entry, user []byte, snap uint64) *entry {
	for i := range entries {
		if e := &entries[i]; bytes.Equal(e.user, user) && e.seq <= snap {
			return e
		}
	}
	return nil
}

func TestGet(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			f, info := write(t, s.options, s.entries)
			g := newGenerator(5)
			for _, size := range []int64{0, 64 << 10, 8 << 20} {
				c := cache.New(size)
				r := open(t, f, c)
				var row Row
				check := func(user []byte, snap uint64) {
					t.Helper()
					want := newest(s.entries, user, snap)
					seq, kind, ok, err := r.Get(user, codec.KeyHash(user), snap, &row)
					if err != nil || ok != (want != nil) {
						t.Fatalf("get %x at %d: %t, %v, want %t", user, snap, ok, err, want != nil)
					}
					if !ok {
						return
					}
					if seq != want.seq || (kind == codec.KindDelete) != want.del {
						t.Fatalf("get %x at %d: sequence %d, kind %d, want %d, tombstone %t", user, snap, seq, kind, want.seq, want.del)
					}
					if kind == codec.KindPut {
						if d := diff(want, &row); d != "" {
							t.Fatalf("get %x at %d: %s", user, snap, d)
						}
					}
				}
				for range rounds(min(400, 4*len(s.entries)+4)) {
					user := codec.AppendKey(nil, 16, fmt.Sprintf("p%d", g.IntN(3)), g.text(g.IntN(3)))
					if len(s.entries) > 0 && g.IntN(4) > 0 {
						user = s.entries[g.IntN(len(s.entries))].user
					}
					check(user, codec.MaxSeq)
					check(user, g.Uint64N(info.MaxSeq+2))
				}
				row.Release()
				if st := c.Stats(); st.Bytes > max(size, 0)+1 {
					t.Fatalf("cache of %d bytes, limit %d", st.Bytes, size)
				}
				if n := c.Close(); n != 0 {
					t.Errorf("%d blocks are pinned at the end", n)
				}
			}
		})
	}
}

// visible returns the entries that o shows.
func visible(entries []entry, o IterOptions) []entry {
	var list []entry
	for _, e := range entries {
		if e.seq > o.Snapshot || !within(&e, o.Lower, o.Upper) {
			continue
		}
		if n := len(list); n > 0 && bytes.Equal(list[n-1].user, e.user) {
			continue
		}
		list = append(list, e)
	}
	return list
}

// within reports whether e is in [lower, upper). A nil upper is the end.
func within(e *entry, lower, upper []byte) bool {
	return bytes.Compare(lower, e.user) <= 0 && (upper == nil || bytes.Compare(e.user, upper) < 0)
}

// bound returns a bound of one of the kinds that package codec makes.
func (g *generator) bound(entries []entry) []byte {
	pk, rk := fmt.Sprintf("p%d", g.IntN(4)), g.text(g.IntN(3))
	if len(entries) > 0 && g.IntN(4) > 0 {
		e := &entries[g.IntN(len(entries))]
		pk, rk = e.pk, e.rk
	}
	switch g.IntN(9) {
	case 0:
		return codec.AppendTable(nil, uint32(15+g.IntN(3)))
	case 1:
		return codec.AppendPartitionStart(nil, 16, pk)
	case 2:
		return codec.AppendPartition(nil, 16, pk)
	case 3:
		return codec.AppendPartitionEnd(nil, 16, pk)
	case 4:
		return codec.AppendRowEnd(nil, 16, pk, rk)
	case 5:
		return codec.AppendRowStart(nil, 16, pk, rk)
	case 6:
		return append(codec.AppendRowStart(nil, 16, pk, rk), 0xFF)
	case 7:
		return nil
	}
	return codec.AppendKey(nil, 16, pk, rk)
}

// TestIterate compares random walks with the model.
func TestIterate(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			f, info := write(t, s.options, s.entries)
			g := newGenerator(8)
			r := open(t, f, cache.New(1<<20))
			for round := range rounds(60) {
				o := IterOptions{Lower: g.bound(s.entries), Upper: g.bound(s.entries), Snapshot: g.Uint64N(info.MaxSeq + 2), Fill: round%2 == 0}
				if round%3 == 0 {
					o.Snapshot = codec.MaxSeq
				}
				walk(t, g, r, s.entries, o)
			}
		})
	}
}

func walk(t *testing.T, g *generator, r *Reader, entries []entry, o IterOptions) {
	t.Helper()
	want := visible(entries, o)
	it := r.NewIterator(o)
	at := -1
	log := fmt.Sprintf("bounds %x %x snapshot %d:", o.Lower, o.Upper, o.Snapshot)
	for range 60 {
		var ok bool
		switch op := g.IntN(12); {
		case op == 0 || at < 0 || at >= len(want):
			if (at < 0 || at >= len(want)) && (it.Next() || it.Prev()) {
				t.Fatalf("%s: a move from no entry to %x", log, it.Key())
			}
			key := g.bound(entries)
			at = 0
			if g.IntN(2) == 0 {
				for at < len(want) && bytes.Compare(want[at].user, key) < 0 {
					at++
				}
				ok = it.SeekGE(key)
				log += fmt.Sprintf(" ge %x", key)
			} else {
				for at < len(want) && (key == nil || bytes.Compare(want[at].user, key) < 0) {
					at++
				}
				at--
				ok = it.SeekLT(key)
				log += fmt.Sprintf(" lt %x", key)
			}
		case op < 8:
			at++
			ok = it.Next()
			log += " next"
		default:
			at--
			ok = it.Prev()
			log += " prev"
		}
		if inside := at >= 0 && at < len(want); ok != inside || it.Valid() != inside || it.Err() != nil {
			t.Fatalf("%s: valid %t, want %t (position %d of %d), error %v", log, ok, inside, at, len(want), it.Err())
		}
		if !ok {
			continue
		}
		if !bytes.Equal(it.Key(), want[at].key) {
			t.Fatalf("%s: key %x, want %x", log, it.Key(), want[at].key)
		}
		if g.IntN(3) == 0 {
			if d := diff(&want[at], it.Row()); d != "" {
				t.Fatalf("%s: %s", log, d)
			}
		}
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestForwardOnly moves an iterator of all versions backward.
func TestForwardOnly(t *testing.T) {
	f, _ := write(t, writerOptions(), []entry{newEntry("p", "a", 1, false, nil), newEntry("p", "b", 2, false, nil)})
	r := open(t, f, nil)
	for name, back := range map[string]func(*Iterator) bool{
		"SeekLT": func(it *Iterator) bool { return it.SeekLT(nil) },
		"Prev":   func(it *Iterator) bool { return it.SeekGE(nil) && it.Next() && it.Prev() },
	} {
		it := r.NewIterator(IterOptions{AllVersions: true})
		if back(it) || it.Valid() || it.Close() != errForwardOnly {
			t.Errorf("%s: valid %t, error %v", name, it.Valid(), it.Err())
		}
	}
}

func TestSameInputSameBytes(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, s := range samples() {
		f1, info1 := write(t, s.options, s.entries)
		f2, info2 := write(t, s.options, s.entries)
		if info1.Hash != info2.Hash || !bytes.Equal(bytesOf(t, f1, info1.Size), bytesOf(t, f2, info2.Size)) {
			t.Errorf("%s: two files differ", s.name)
		}
	}
}

// TestCopy writes the entries of an iterator, as a compaction does. The same entries
// must give the same bytes, whatever the type of their rows.
func TestCopy(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, s := range samples() {
		f, info := write(t, s.options, s.entries)
		it := open(t, f, nil).NewIterator(IterOptions{AllVersions: true})
		out := create(t)
		w := NewWriter(out, s.options)
		for ok := it.SeekGE(nil); ok; ok = it.Next() {
			if err := w.Add(it.Key(), it.Row()); err != nil {
				t.Fatal(err)
			}
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
		if copied, err := w.Finish(); err != nil || copied.Hash != info.Hash {
			t.Errorf("%s: hash %x, want %x, error %v", s.name, copied.Hash, info.Hash, err)
		}
	}
}
