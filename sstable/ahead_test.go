package sstable

import (
	"bytes"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/race"
)

// walkSamples calls walk for iterators over all samples, with random bounds and snapshots, in
// both directions. follow are the entries that it shows, in this order, at least one.
func walkSamples(t *testing.T, seed uint64, walk func(t *testing.T, g *generator, it *Iterator, reverse bool, all, follow []entry)) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			f, info := write(t, s.options, s.entries)
			g := newGenerator(seed)
			r := open(t, f, cache.New(1<<20))
			for round := range rounds(60) {
				o := IterOptions{Lower: g.bound(s.entries), Upper: g.bound(s.entries), Snapshot: codec.MaxSeq}
				if round%3 == 0 {
					o.Snapshot = g.Uint64N(info.MaxSeq + 2)
				}
				follow, reverse := visible(s.entries, o), round%2 == 0
				if len(follow) == 0 {
					continue
				}
				if reverse {
					slices.Reverse(follow)
				}
				it := r.NewIterator(o)
				walk(t, g, it, reverse, s.entries, follow)
				if err := it.Close(); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				if t.Failed() {
					t.Fatalf("round %d, reverse %v", round, reverse)
				}
			}
		})
	}
}

// begin and step move to the first and to the next entry in a direction.
func begin(it *Iterator, reverse bool) bool {
	if reverse {
		return it.SeekLT(nil)
	}
	return it.SeekGE(nil)
}

func step(it *Iterator, reverse bool) bool {
	if reverse {
		return it.Prev()
	}
	return it.Next()
}

// TestAhead compares Ahead with the entries that follow, within random bounds.
func TestAhead(t *testing.T) {
	race.SkipOneGoroutine(t)
	known := 0
	walkSamples(t, 13, func(t *testing.T, g *generator, it *Iterator, reverse bool, all, follow []entry) {
		for ok := begin(it, reverse); ok; ok = step(it, reverse) {
			follow = follow[1:]
			key := g.bound(all)
			n := it.Ahead(key, reverse)
			known += n
			if n > len(follow) {
				t.Errorf("%d entries ahead of %x, and %d follow", n, key, len(follow))
				return
			}
			for _, e := range follow[:n] {
				if c := bytes.Compare(e.user, key); key != nil && (c == 0 || c > 0 != reverse) {
					t.Errorf("%d entries ahead of %x, one is %x", n, key, e.user)
				}
			}
			if n == len(follow) || !it.plain {
				continue
			}
			next := follow[n].user
			c := bytes.Compare(next, key)
			if _, near := it.h.Seek(next); near && (key == nil || c != 0 && c > 0 == reverse) {
				t.Errorf("%d entries ahead of %x, and %x follows in the group", n, key, next)
			}
		}
		if len(follow) > 0 {
			t.Errorf("%d entries left", len(follow))
		}
	})
	if known == 0 {
		t.Error("Ahead knew no entry")
	}
}

// TestNextColumns compares the rows that NextColumns and CutColumns leave, and where they move
// to, with the entries that Ahead counts.
func TestNextColumns(t *testing.T) {
	race.SkipOneGoroutine(t)
	read, cut := 0, 0
	var c Columns
	walkSamples(t, 17, func(t *testing.T, g *generator, it *Iterator, reverse bool, _, follow []entry) {
		for ok := begin(it, reverse); ok; ok = step(it, reverse) {
			most := 1 + g.IntN(1+it.Ahead(nil, reverse))
			if it.Row() != nil {
				c.Release()
				if it.NextColumns(&c, reverse, most); c.Len() > 0 {
					if c.Len() > most {
						t.Errorf("%d rows, at most %d", c.Len(), most)
						return
					}
					if n := 1 + g.IntN(c.Len()); n < c.Len() {
						it.CutColumns(&c, n)
						cut++
					}
					var want []*entry
					for i := range c.Len() {
						want = append(want, &follow[i])
					}
					compareColumns(t, &c, want, func() {})
					read += c.Len()
					follow = follow[c.Len()-1:]
				}
			}
			if user := codec.UserKey(it.Key()); !bytes.Equal(user, follow[0].user) {
				t.Errorf("at %x, want %x", user, follow[0].user)
				return
			}
			follow = follow[1:]
		}
		if len(follow) > 0 {
			t.Errorf("%d entries left", len(follow))
		}
	})
	if read == 0 || cut == 0 {
		t.Errorf("%d rows by columns, %d times cut", read, cut)
	}
}

// compareColumns compares the rows of c with entries. drop is called when all values have been
// read, and before they are compared.
func compareColumns(t *testing.T, c *Columns, entries []*entry, drop func()) {
	t.Helper()
	words, texts := make([][]uint64, c.Properties()), make([][][]byte, c.Properties())
	for p := range words {
		switch _, typ := c.Property(p); typ {
		case edm.TypeString, edm.TypeBinary, edm.TypeGuid:
			var err error
			if texts[p], err = c.AppendBytes(nil, p); err != nil {
				t.Fatal(err)
			}
		default:
			words[p] = c.AppendWords(nil, p)
		}
	}
	drop()
	for i, e := range entries {
		if partition, row := string(c.AppendPartition(nil, i)), string(c.AppendRow(nil, i)); partition != e.pk || row != e.rk || e.del {
			t.Fatalf("row %d has the key %q %q, want %q %q, deleted %v", i, partition, row, e.pk, e.rk, e.del)
		}
		if at := c.Timestamp(i); at != e.ts || c.Properties() != len(e.props) {
			t.Fatalf("row %d has the Timestamp %v and %d properties, want %v and %d", i, at, c.Properties(), e.ts, len(e.props))
		}
		for p, want := range e.props {
			name, typ := c.Property(p)
			if name != want.Name || typ != want.Value.Type() {
				t.Fatalf("property %d is %s of type %v, want %s", p, name, typ, want.Name)
			}
			if texts[p] != nil && !bytes.Equal(texts[p][i], want.Value.Bytes()) || words[p] != nil && words[p][i] != want.Value.Word() {
				t.Fatalf("row %d has another value of %s", i, name)
			}
		}
	}
}
