package sstable

import (
	"bytes"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/cache"
)

// TestAhead compares Ahead with the entries that follow, within random bounds.
func TestAhead(t *testing.T) {
	known := 0
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			f, info := write(t, s.options, s.entries)
			g := newGenerator(13)
			r := open(t, f, cache.New(1<<20))
			for round := range rounds(60) {
				o := IterOptions{Lower: g.bound(s.entries), Upper: g.bound(s.entries), Snapshot: codec.MaxSeq}
				if round%3 == 0 {
					o.Snapshot = g.Uint64N(info.MaxSeq + 2)
				}
				follow := visible(s.entries, o)
				it := r.NewIterator(o)
				first, step, reverse := func() bool { return it.SeekGE(nil) }, it.Next, round%2 == 0
				if reverse {
					first, step = func() bool { return it.SeekLT(nil) }, it.Prev
					slices.Reverse(follow)
				}
				if len(follow) == 0 {
					continue
				}
				for ok := first(); ok; ok = step() {
					follow = follow[1:]
					key := g.bound(s.entries)
					n := it.Ahead(key, reverse)
					known += n
					if n > len(follow) {
						t.Fatalf("round %d: %d entries ahead of %x, and %d follow", round, n, key, len(follow))
					}
					for _, e := range follow[:n] {
						if c := bytes.Compare(e.user, key); key != nil && (c == 0 || c > 0 != reverse) {
							t.Fatalf("round %d, reverse %v: %d entries ahead of %x, one is %x", round, reverse, n, key, e.user)
						}
					}
				}
				if err := it.Close(); err != nil || len(follow) > 0 {
					t.Fatalf("round %d: %d entries left, error %v", round, len(follow), err)
				}
			}
		})
	}
	if known == 0 {
		t.Error("Ahead knew no entry")
	}
}

// TestNextColumns compares the rows that NextColumns and CutColumns leave, and where they move
// to, with the entries that Ahead counts.
func TestNextColumns(t *testing.T) {
	read, cut := 0, 0
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			f, info := write(t, s.options, s.entries)
			g := newGenerator(17)
			r := open(t, f, cache.New(1<<20))
			for round := range rounds(60) {
				o := IterOptions{Lower: g.bound(s.entries), Upper: g.bound(s.entries), Snapshot: codec.MaxSeq}
				if round%3 == 0 {
					o.Snapshot = g.Uint64N(info.MaxSeq + 2)
				}
				follow := visible(s.entries, o)
				it := r.NewIterator(o)
				first, step, reverse := func() bool { return it.SeekGE(nil) }, it.Next, round%2 == 0
				if reverse {
					first, step = func() bool { return it.SeekLT(nil) }, it.Prev
					slices.Reverse(follow)
				}
				if len(follow) == 0 {
					continue
				}
				for ok := first(); ok; ok = step() {
					most := 1 + g.IntN(1+it.Ahead(nil, reverse))
					if it.Row() != nil {
						if c := it.NextColumns(reverse, most); c != nil {
							if c.Len() > most {
								t.Fatalf("round %d: %d rows, at most %d", round, c.Len(), most)
							}
							if n := 1 + g.IntN(c.Len()); n < c.Len() {
								it.CutColumns(n)
								cut++
							}
							compareColumns(t, c, follow[:c.Len()])
							read += c.Len()
							follow = follow[c.Len()-1:]
						}
					}
					if user := userKey(it.Key()); !bytes.Equal(user, follow[0].user) {
						t.Fatalf("round %d, reverse %v: at %x, want %x", round, reverse, user, follow[0].user)
					}
					follow = follow[1:]
				}
				if err := it.Close(); err != nil || len(follow) > 0 {
					t.Fatalf("round %d: %d entries left, error %v", round, len(follow), err)
				}
			}
		})
	}
	if read == 0 || cut == 0 {
		t.Errorf("%d rows by columns, %d times cut", read, cut)
	}
}

// compareColumns compares rows with entries.
func compareColumns(t *testing.T, c *Columns, entries []entry) {
	t.Helper()
	for i, e := range entries {
		if partition, row := string(c.AppendPartition(nil, i)), string(c.AppendRow(nil, i)); partition != e.pk || row != e.rk || e.del {
			t.Fatalf("row %d has the key %q %q, want %q %q, deleted %v", i, partition, row, e.pk, e.rk, e.del)
		}
		if at := c.Timestamp(i); at != e.ts {
			t.Fatalf("row %d has the Timestamp %v, want %v", i, at, e.ts)
		}
	}
}
