package sstable

import (
	"bytes"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/internal/race"
)

// TestSelect compares what Select selects in all spans of a file, and what Has finds, with
// a walk over the rows, for random conditions, bounds and snapshots.
func TestSelect(t *testing.T) {
	race.SkipOneGoroutine(t)
	extended, gathered, cuts := 0, 0, 0
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			f, info := write(t, s.options, s.entries)
			g := newGenerator(12)
			blocks := cache.New(1 << 20)
			r := open(t, f, blocks)
			for round := range rounds(160) {
				o := IterOptions{Lower: g.bound(s.entries), Upper: g.bound(s.entries), Snapshot: codec.MaxSeq, Fill: round%2 == 0}
				if o.Upper == nil {
					o.Upper = codec.AppendTable(nil, 1<<30)
				}
				if round%3 == 0 {
					o.Snapshot = g.Uint64N(info.MaxSeq + 2)
				}
				var row Row
				for range min(2*(round%5), len(s.entries)) { // arranges heads
					e := &s.entries[g.IntN(len(s.entries))]
					if _, _, _, err := r.Get(e.user, codec.KeyHash(e.user), codec.MaxSeq, &row); err != nil {
						t.Fatal(err)
					}
					row.Release()
				}
				var p *predicate.Program
				var sel *Selector
				if len(s.entries) > 1 && round%4 > 0 {
					p = predicate.Compile(g.condition(s.entries, g.IntN(4)))
					sel, o.Prune = NewSelector(p), p.ForBounds()
				}
				e, n, c := compareSelect(t, g, r, s.entries, o, p, sel)
				extended, gathered, cuts = extended+e, gathered+n, cuts+c
			}
			if n := blocks.Close(); n != 0 {
				t.Errorf("%d blocks are pinned at the end", n)
			}
		})
	}
	if extended == 0 || gathered == 0 || cuts == 0 {
		t.Errorf("%d spans extended, %d rows gathered, %d spans cut", extended, gathered, cuts)
	}
}

// compareSelect returns how many spans it has extended, how many rows of gathered columns it has
// compared, and how many extended spans it has selected from in two windows.
func compareSelect(t *testing.T, g *generator, r *Reader, entries []entry, o IterOptions, p *predicate.Program, sel *Selector) (extended, gathered, cuts int) {
	t.Helper()
	var want []entry
	var shaper shaper
	for _, e := range visible(entries, o) {
		if !e.del && (p == nil || p.Match(shaper.row(&e))) {
			want = append(want, e)
		}
	}
	it := r.NewIterator(o)
	if o.Prune != nil && it.pruner == nil {
		it.prune() // the bounds of a small file are not worth it
	}
	reverse := g.IntN(2) == 0
	n := 0
	next := func() *entry {
		n++
		if n > len(want) {
			t.Fatalf("%v: more than %d rows", p, len(want))
		}
		if reverse {
			return &want[len(want)-n]
		}
		return &want[n-1]
	}
	at := o.Lower
	if reverse {
		at = o.Upper
	}
	for bytes.Compare(o.Lower, o.Upper) < 0 {
		span, ok := it.SpanGE(at)
		if reverse {
			span, ok = it.SpanLT(at)
		}
		if !ok || !reverse && span.Upper != nil && bytes.Compare(span.Upper, at) <= 0 || reverse && bytes.Compare(span.Lower, at) >= 0 {
			break
		}
		before := span
		lower, upper := span.Lower, span.Upper
		if upper == nil || bytes.Compare(upper, o.Upper) > 0 {
			upper = o.Upper
		}
		if reverse {
			upper = at
		} else if bytes.Compare(at, lower) > 0 {
			lower = at
		}
		if cut := g.bound(entries); cut != nil && g.IntN(3) == 0 && bytes.Compare(cut, lower) > 0 && bytes.Compare(cut, upper) < 0 {
			if reverse {
				lower = cut
			} else {
				upper = cut
			}
		}
		if span.Selectable() && sel != nil && g.IntN(2) == 0 {
			to := codec.AppendTable(nil, 1<<31) // beyond the bounds
			if reverse {
				to = nil
			}
			it.Extend(&span, reverse, to, len(entries)/(1+g.IntN(4)))
			if !reverse && bytes.Equal(upper, before.Upper) {
				upper = span.Upper
			} else if reverse && bytes.Equal(lower, before.Lower) {
				lower = span.Lower
			} else {
				span = before
			}
		}
		if cut := g.bound(entries); span.end > span.first+1 && span.Selectable() && bytes.Compare(cut, lower) > 0 && bytes.Compare(cut, upper) < 0 {
			if reverse { // two windows in a span
				selectSpan(t, g, it, &span, cut, upper, p, sel, reverse, next)
				upper = cut
			} else {
				selectSpan(t, g, it, &span, lower, cut, p, sel, reverse, next)
				lower = cut
			}
			cuts++
		}
		if span.Selectable() && g.IntN(2) == 0 {
			gathered += selectColumns(t, g, it, &span, lower, upper, sel, reverse, next)
		} else {
			selectSpan(t, g, it, &span, lower, upper, p, sel, reverse, next)
		}
		if span.end == span.first+1 {
			checkHas(t, g, it, &span, entries)
		} else if span.Selectable() {
			extended++
		}
		if at = upper; reverse {
			at = lower
		}
		if bytes.Equal(at, o.Upper) || bytes.Equal(at, o.Lower) {
			break
		}
	}
	if err := it.Close(); err != nil || n != len(want) {
		t.Fatalf("%v, bounds %x %x, snapshot %d, reverse %v: %d rows are selected, want %d, error %v", p, o.Lower, o.Upper, o.Snapshot, reverse, n, len(want), err)
	}
	return extended, gathered, cuts
}

// checkHas looks up keys of a span.
func checkHas(t *testing.T, g *generator, it *Iterator, span *Span, entries []entry) {
	t.Helper()
	for range 5 {
		user := entries[g.IntN(len(entries))].user
		if !span.Selectable() || bytes.Compare(user, span.Lower) < 0 || span.Upper != nil && bytes.Compare(user, span.Upper) >= 0 {
			continue
		}
		want := newest(entries, user, it.o.Snapshot) != nil
		if has, err := it.Has(span, user, codec.KeyHash(user)); has != want || err != nil {
			t.Fatalf("the key %x at %d: found %v, want %v, error %v", user, it.o.Snapshot, has, want, err)
		}
	}
}

// windowOf returns a window whose range ends with it or is open.
func windowOf(g *generator, lower, upper []byte, reverse bool) Window {
	w := Window{Lower: lower, Upper: upper, Reverse: reverse}
	switch {
	case g.IntN(2) == 0:
	case reverse:
		w.End = lower
	default:
		w.End = upper
	}
	return w
}

// selectSpan compares the rows that are selected in a part of a span with those that next
// returns. It walks over a span that is not Selectable.
func selectSpan(
	t *testing.T, g *generator, it *Iterator, span *Span, lower, upper []byte, p *predicate.Program, sel *Selector, reverse bool, next func() *entry,
) {
	t.Helper()
	check := func() {
		e := next()
		if !bytes.Equal(it.Key(), e.key) {
			t.Fatalf("reverse %v: row with key %x, want %x", reverse, it.Key(), e.key)
		}
		if d := diff(e, it.Row()); d != "" {
			t.Fatal(d)
		}
	}
	if !span.Selectable() {
		var rows [][]byte
		for ok := it.SeekGE(lower); ok && bytes.Compare(codec.UserKey(it.Key()), upper) < 0; ok = it.Next() {
			if row := it.Row(); row != nil && (p == nil || p.Match(row)) {
				rows = append(rows, bytes.Clone(it.Key()))
			}
		}
		for i := range rows {
			key := rows[i]
			if reverse {
				key = rows[len(rows)-1-i]
			}
			if e := next(); !bytes.Equal(e.key, key) {
				t.Fatalf("key %x, want %x", key, e.key)
			}
		}
		return
	}
	if it.Excludes(span) {
		return
	}
	extended := span.end > span.first+1
	w := windowOf(g, lower, upper, reverse)
	w.ByRows = true
	n, examined, err := it.Select(span, &w, sel)
	if err != nil || sel == nil && n != examined || examined > span.Rows {
		t.Fatalf("%d rows of %d selected in a span of %d, error %v", n, examined, span.Rows, err)
	}
	if found, seen := it.Matches(); sel != nil && (n > found || found > seen || seen > span.Rows) {
		t.Fatalf("%d rows of %d matches among %d are selected in a span of %d", n, found, seen, span.Rows)
	}
	move := it.NextSelected
	if reverse {
		move = it.PrevSelected
	}
	for {
		from := it.SelectedFrom()
		for ok := move(); ok; ok = move() {
			check()
			user := bytes.Clone(codec.UserKey(it.Key()))
			if bytes.Compare(user, lower) < 0 || bytes.Compare(user, upper) >= 0 {
				t.Fatalf("the key %x is not in the window from %x to %x", user, lower, upper)
			}
			if c := bytes.Compare(user, from); c < 0 && !reverse || c >= 0 && reverse {
				t.Fatalf("reverse %v: the key %x is in a group from %x", reverse, user, from)
			}
			if extended {
				if _, err := it.Has(span, user, codec.KeyHash(user)); err == nil {
					t.Fatal("Has accepts a span of several groups")
				}
			} else if has, err := it.Has(span, user, codec.KeyHash(user)); !has || err != nil {
				t.Fatalf("the key %x is not found, error %v", user, err)
			}
			n--
		}
		if n != 0 {
			t.Fatalf("%d selected rows are not shown", n)
		}
		if !it.More() {
			return
		}
		looked := 0
		if n, looked, err = it.SelectNext(sel); err != nil {
			t.Fatal(err)
		}
		if examined += looked; examined > span.Rows {
			t.Fatalf("%d rows of %d examined", examined, span.Rows)
		}
	}
}

// selectColumns is selectSpan by columns, for a span that is Selectable. It returns how many rows it has
// gathered from several groups or heap units.
func selectColumns(t *testing.T, g *generator, it *Iterator, span *Span, lower, upper []byte, sel *Selector, reverse bool, next func() *entry) (gathered int) {
	t.Helper()
	var c Columns
	defer c.Release()
	end := func() {
		if c.Len() == 0 {
			return
		}
		var want []*entry
		for range c.Len() {
			want = append(want, next())
		}
		compareColumns(t, &c, want, func() {
			if g.IntN(4) == 0 { // values of blocks that are not pinned change (cache.Poison)
				it.r.o.Cache.Drop(it.r.o.CacheDB, it.r.o.Number)
			}
		})
		if c.n > 1 {
			gathered += c.Len()
		}
		c.Release()
	}
	w := windowOf(g, lower, upper, reverse)
	_, _, err := it.Select(span, &w, sel)
	for ; ; _, _, err = it.SelectNext(sel) {
		if err != nil {
			t.Fatal(err)
		}
		for left := true; left; {
			var got int
			if got, left = it.NextSelectedColumns(&c, reverse, 1+g.IntN(100)); got == 0 && left {
				end()
				if got, left = it.NextSelectedColumns(&c, reverse, 1+g.IntN(100)); got == 0 && left { // by rows only
					if e := next(); it.NextSelectedRow(reverse) == nil || !bytes.Equal(it.Key(), e.key) {
						t.Fatalf("reverse %v: row with key %x, want %x", reverse, it.Key(), e.key)
					}
					continue
				}
			}
			if left = it.Left(reverse); got > 0 && !it.Keep(&c, left) {
				end()
			}
		}
		if !it.More() {
			end()
			return gathered
		}
	}
}

// TestSelectKeepsColumns selects from a head many times, which stays in columns.
func TestSelectKeepsColumns(t *testing.T) {
	f, _ := write(t, writerOptions(), uniform(400))
	r := open(t, f, cache.New(1<<20))
	sel := NewSelector(predicate.Compile(predicate.NewCompare("a", predicate.Gt, edm.Int64(100))))
	for range 3 * arrangeAfter {
		it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq, Fill: true})
		span, _ := it.SpanGE(nil)
		if n, _, err := it.Select(&span, &Window{Upper: codec.AppendTable(nil, 1<<30), ByRows: true}, sel); n == 0 || err != nil {
			t.Fatalf("%d rows selected, error %v", n, err)
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
	}
	h, pin, _, err := r.head(0, nil, false, true)
	if err != nil || h.arranged {
		t.Errorf("laid out by rows: %v, error %v", h.arranged, err)
	}
	pin.Release()
}

// TestSelectByRows selects all rows of a group several times. Only reads by rows count as
// uses, after which a head is laid out by rows.
func TestSelectByRows(t *testing.T) {
	f, _ := write(t, writerOptions(), uniform(2000))
	for _, byRows := range []bool{false, true} {
		c := cache.New(4 << 20)
		r := open(t, f, c)
		for range arrangeAfter/scanUses + 1 {
			it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq, Fill: true})
			span, ok := it.SpanGE(nil)
			if !ok {
				t.Fatal(it.Err())
			}
			if _, _, err := it.Select(&span, &Window{Upper: span.Upper, ByRows: byRows}, nil); err != nil {
				t.Fatal(err)
			}
			if err := it.Close(); err != nil {
				t.Fatal(err)
			}
		}
		h, pin, _, err := r.head(0, nil, false, true)
		if err != nil || h.arranged != byRows {
			t.Errorf("by rows %v: laid out by rows is %v, error %v", byRows, h.arranged, err)
		}
		pin.Release()
		if n := c.Close(); n != 0 {
			t.Errorf("%d blocks are pinned at the end", n)
		}
	}
}
