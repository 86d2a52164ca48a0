package sstable

import (
	"bytes"
	"fmt"
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
	begin, end := o.Lower, o.Upper // of the range
	if a, b := g.bound(entries), g.bound(entries); g.IntN(2) == 0 && bytes.Compare(o.Lower, a) < 0 && bytes.Compare(a, b) < 0 && bytes.Compare(b, o.Upper) < 0 {
		begin, end = a, b
	}
	var want []entry
	var shaper shaper
	for _, e := range visible(entries, o) {
		if within(&e, begin, end) && !e.del && (p == nil || p.Match(shaper.row(&e))) {
			want = append(want, e)
		}
	}
	it := r.NewIterator(o)
	if o.Prune != nil && it.pruner == nil {
		it.prune() // the bounds of a small file are not worth it
	}
	checkSpans(t, it)
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
	at := begin
	last := end
	if reverse {
		at, last = end, append([]byte{}, begin...) // not nil
	}
	count := g.IntN(2) == 0
	if !count {
		last = nil
	}
	examined := 0
	for bytes.Compare(begin, end) < 0 {
		span, ok := it.SpanGE(at)
		if reverse {
			span, ok = it.SpanLT(at)
		}
		if !ok || !reverse && span.Upper != nil && bytes.Compare(span.Upper, at) <= 0 || reverse && bytes.Compare(span.Lower, at) >= 0 {
			break
		}
		before := span
		lower, upper := span.Lower, span.Upper
		if upper == nil || bytes.Compare(upper, end) > 0 {
			upper = end
		}
		if bytes.Compare(begin, lower) > 0 {
			lower = begin
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
			to := end
			switch {
			case reverse && bytes.Equal(begin, o.Lower):
				to = nil // beyond the bounds
			case reverse:
				to = begin
			case bytes.Equal(end, o.Upper):
				to = codec.AppendTable(nil, 1<<31)
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
				examined += selectSpan(t, g, it, &span, cut, upper, last, p, sel, reverse, next)
				upper = cut
			} else {
				examined += selectSpan(t, g, it, &span, lower, cut, last, p, sel, reverse, next)
				lower = cut
			}
			cuts++
		}
		if span.Selectable() && g.IntN(2) == 0 {
			n, looked := selectColumns(t, g, it, &span, lower, upper, last, sel, reverse, next)
			gathered, examined = gathered+n, examined+looked
		} else {
			examined += selectSpan(t, g, it, &span, lower, upper, last, p, sel, reverse, next)
		}
		if span.end == span.first+1 {
			checkHas(t, g, it, &span, entries)
		} else if span.Selectable() {
			extended++
		}
		if at = upper; reverse {
			at = lower
		}
		if bytes.Equal(at, begin) || bytes.Equal(at, end) {
			break
		}
	}
	if live := lookedAt(it, visible(entries, o), begin, end); count && examined != live {
		t.Fatalf("%v, range %x %x, snapshot %d, reverse %v: %d rows are examined, want %d", p, begin, end, o.Snapshot, reverse, examined, live)
	}
	if err := it.Close(); err != nil || n != len(want) {
		t.Fatalf("%v, bounds %x %x, snapshot %d, reverse %v: %d rows are selected, want %d, error %v", p, o.Lower, o.Upper, o.Snapshot, reverse, n, len(want), err)
	}
	return extended, gathered, cuts
}

// checkSpans walks over the spans within the bounds of it, each of which begins where the one before ends.
func checkSpans(t *testing.T, it *Iterator) {
	t.Helper()
	lower, upper := it.o.Lower, it.o.Upper
	s, ok := it.SpanGE(nil) // before the bounds
	if !ok || bytes.Compare(lower, upper) >= 0 {
		return
	}
	if at, _ := it.SpanGE(lower); s.first != at.first {
		t.Fatalf("bounds %x %x: the first span begins with group %d, want %d", lower, upper, s.first, at.first)
	}
	for next, ok := it.SpanAfter(&s); ok; next, ok = it.SpanAfter(&s) {
		if next.first != s.end || !bytes.Equal(next.Lower, s.Upper) || bytes.Compare(next.Lower, upper) >= 0 {
			t.Fatalf("bounds %x %x: group %d at %x follows the one before group %d, which ends at %x", lower, upper, next.first, next.Lower, s.end, s.Upper)
		}
		s = next
	}
	beyond, _ := it.SpanLT(codec.AppendTable(nil, 1<<31))
	if at, _ := it.SpanLT(upper); s.first != at.first || s.first != beyond.first || !bytes.Equal(s.Upper, upper) {
		t.Fatalf("bounds %x %x: the last span begins with group %d and ends at %x, want %d and %d", lower, upper, s.first, s.Upper, at.first, beyond.first)
	}
}

// lookedAt returns how many of the rows are looked at by the windows of a range together.
func lookedAt(it *Iterator, rows []entry, begin, end []byte) (n int) {
	all := it.r.index.Groups
	for i := range rows {
		e := &rows[i]
		if e.del || !within(e, begin, end) {
			continue
		}
		g := it.r.index.Seek(e.user)
		shared := all[g].Continues || g+1 < len(all) && all[g+1].Continues
		if !shared && (it.pruner == nil || !it.pruner.None(g)) {
			n++
		}
	}
	return n
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

// windowOf returns a window of a range that ends at last, or if that is nil, with the window or not at all.
func windowOf(g *generator, lower, upper, last []byte, reverse bool) Window {
	w := Window{Lower: lower, Upper: upper, Reverse: reverse}
	switch {
	case last != nil:
		w.End = last
	case g.IntN(2) == 0:
	case reverse:
		w.End = lower
	default:
		w.End = upper
	}
	return w
}

// selectSpan compares the rows that are selected in a part of a span with those that next
// returns. It returns how many rows were looked at, and walks over a span that is not Selectable.
func selectSpan(
	t *testing.T, g *generator, it *Iterator, span *Span, lower, upper, last []byte, p *predicate.Program, sel *Selector, reverse bool, next func() *entry,
) (examined int) {
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
		return 0
	}
	if it.Excludes(span) {
		return 0
	}
	extended := span.end > span.first+1
	w := windowOf(g, lower, upper, last, reverse)
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
			return examined
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
func selectColumns(
	t *testing.T, g *generator, it *Iterator, span *Span, lower, upper, last []byte, sel *Selector, reverse bool, next func() *entry,
) (gathered, examined int) {
	t.Helper()
	if it.Excludes(span) {
		return 0, 0
	}
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
	w := windowOf(g, lower, upper, last, reverse)
	_, looked, err := it.Select(span, &w, sel)
	for ; ; _, looked, err = it.SelectNext(sel) {
		if err != nil {
			t.Fatal(err)
		}
		examined += looked
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
			return gathered, examined
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

// TestExtend compares the groups that Extend adds to a span with those that it may add.
func TestExtend(t *testing.T) {
	entries := typed(3000)
	for i := range 40 { // versions of a key in several groups
		entries = append(entries, newEntry("p", "002000", uint64(5000+i), false, edm.Properties{{Name: "id", Value: edm.String(fmt.Sprintf("%0200d", i))}}))
	}
	entries = sortEntries(entries)
	w := writerOptions()
	w.GroupBytes = 1500
	f, _ := write(t, w, entries)
	r := open(t, f, nil)
	all := r.index.Groups
	g := newGenerator(3)
	most, shared := 0, 0
	for range 4000 {
		o := IterOptions{Snapshot: codec.MaxSeq}
		if g.IntN(2) == 0 {
			o.Lower, o.Upper = g.bound(entries), g.bound(entries)
		}
		it := r.NewIterator(o)
		e := &entries[g.IntN(len(entries))]
		s, _ := it.SpanGE(e.user)
		if !s.Selectable() || !within(e, o.Lower, o.Upper) {
			continue
		}
		reverse, to, rows := g.IntN(2) == 0, entries[g.IntN(len(entries))].user, s.Rows+g.IntN(2000)
		switch g.IntN(4) {
		case 0:
			to = all[g.IntN(len(all))].Separator
		case 1: // beyond all groups
			if to = nil; !reverse {
				to = codec.AppendTable(nil, 1<<31)
			}
		}
		want := s
		for want.end-want.first < maxExtended {
			var next Span
			whole := false
			if reverse {
				next, _ = it.SpanLT(all[want.first].Separator)
				whole = next.first > 0 && bytes.Equal(next.Lower, all[next.first].Separator) && bytes.Compare(next.Lower, to) >= 0
			} else {
				next, _ = it.SpanAfter(&want)
				whole = next.end > 0 && next.end < len(all) && bytes.Equal(next.Upper, all[next.end].Separator) && bytes.Compare(next.Upper, to) <= 0
			}
			if shared += max(next.end-next.first-1, 0); !whole || !next.Selectable() || want.Rows+next.Rows > rows {
				break
			}
			if want.end, want.Upper = next.end, next.Upper; reverse {
				want.first, want.end, want.Lower, want.Upper = next.first, s.end, next.Lower, s.Upper
			}
			want.Rows += next.Rows
		}
		several := it.Extend(&s, reverse, to, rows)
		if s.first != want.first || s.end != want.end || s.Rows != want.Rows || !bytes.Equal(s.Lower, want.Lower) || !bytes.Equal(s.Upper, want.Upper) {
			t.Fatalf("bounds %x %x, reverse %v, to %x, %d rows: %+v, want %+v", o.Lower, o.Upper, reverse, to, rows, s, want)
		}
		if several != (s.end > s.first+1) || !s.Selectable() {
			t.Fatalf("groups %d to %d: several is %v, selectable %v", s.first, s.end-1, several, s.Selectable())
		}
		most = max(most, s.end-s.first)
	}
	if most != maxExtended || shared == 0 {
		t.Errorf("at most %d groups in a span, %d share a key with the one before", most, shared)
	}
}
