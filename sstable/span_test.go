package sstable

import (
	"bytes"
	"fmt"
	"slices"
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
			var it Iterator
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
				e, n, c := compareSelect(t, g, r, &it, s.entries, o, p, sel)
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

// compareSelect uses it, which is zero or closed. It returns how many spans it has extended, how many rows of gathered columns it has
// compared, and how many extended spans it has selected from in two windows.
func compareSelect(
	t *testing.T, g *generator, r *Reader, it *Iterator, entries []entry, o IterOptions, p *predicate.Program, sel *Selector,
) (extended, gathered, cuts int) {
	t.Helper()
	begin, end := o.Lower, o.Upper // of all ranges
	if a, b := g.bound(entries), g.bound(entries); g.IntN(2) == 0 && bytes.Compare(o.Lower, a) < 0 && bytes.Compare(a, b) < 0 && bytes.Compare(b, o.Upper) < 0 {
		begin, end = a, b
	}
	if g.IntN(4) == 0 && bytes.Equal(o.Upper, codec.AppendTable(nil, 1<<30)) {
		o.Upper = nil
	}
	var want []entry
	var shaper shaper
	rows := slices.DeleteFunc(visible(entries, o), func(e entry) bool { return e.del || !within(&e, begin, end) })
	for _, e := range rows {
		if p == nil || p.Match(shaper.row(&e)) {
			want = append(want, e)
		}
	}
	it.Init(r, o)
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
	// The first range ends at mid, and the second one begins there, unless one has all keys.
	mid := g.bound(entries)
	from, to, second := begin, end, g.IntN(2) == 0 && bytes.Compare(begin, mid) < 0 && bytes.Compare(mid, end) < 0
	at := begin
	switch {
	case reverse && second:
		at, from = end, mid
	case reverse:
		at = end
	case second:
		to = mid
	}
	bound, beyond := o.Upper, []byte(nil) // of the iterator
	if reverse {
		bound = o.Lower
	}
	beyondRows := g.IntN(2) == 0
	for i := range entries {
		c := bytes.Compare(entries[i].user, bound)
		if beyondRows && (reverse && c < 0 || !reverse && bound != nil && beyond == nil && c > 0) {
			beyond = entries[i].user
		}
	}
	count, open := sel != nil && g.IntN(2) == 0, g.IntN(2) == 0
	looked, examined := newCounter(it, rows, reverse), 0
	for bytes.Compare(begin, end) < 0 {
		last := rangeEnd{key: to, fixed: count}
		if reverse {
			last.key = from
		}
		if open && bytes.Equal(last.key, bound) {
			last.key = beyond
		}
		span, ok := it.SpanGE(at)
		if reverse {
			span, ok = it.SpanLT(at)
		}
		if !ok || !reverse && span.Upper != nil && bytes.Compare(span.Upper, at) <= 0 || reverse && bytes.Compare(span.Lower, at) >= 0 {
			break
		}
		before := span
		lower, upper := span.Lower, span.Upper
		if upper == nil || bytes.Compare(upper, to) > 0 {
			upper = to
		}
		if bytes.Compare(from, lower) > 0 {
			lower = from
		}
		if reverse {
			upper = at
		} else if bytes.Compare(at, lower) > 0 {
			lower = at
		}
		if cut := g.cut(rows, lower, upper); g.IntN(2) == 0 && bytes.Compare(cut, lower) > 0 && bytes.Compare(cut, upper) < 0 {
			if reverse {
				lower = cut
			} else {
				upper = cut
			}
		}
		if span.Selectable() && sel != nil && g.IntN(2) == 0 {
			limit := to
			switch {
			case reverse && bytes.Equal(from, o.Lower):
				limit = nil // beyond the bounds
			case reverse:
				limit = from
			case bytes.Equal(to, o.Upper):
				limit = codec.AppendTable(nil, 1<<31)
			}
			it.Extend(&span, reverse, limit, len(entries)/(1+g.IntN(4)))
			if !reverse && bytes.Equal(upper, before.Upper) {
				upper = span.Upper
			} else if reverse && bytes.Equal(lower, before.Lower) {
				lower = span.Lower
			} else {
				span = before
			}
		}
		if cut := g.cut(rows, lower, upper); span.end > span.first+1 && span.Selectable() && bytes.Compare(cut, lower) > 0 && bytes.Compare(cut, upper) < 0 {
			if reverse { // two windows in a span
				looked.add(&span, cut, upper, last.key)
				examined += selectSpan(t, g, it, &span, cut, upper, last, p, sel, reverse, next)
				upper = cut
			} else {
				looked.add(&span, lower, cut, last.key)
				examined += selectSpan(t, g, it, &span, lower, cut, last, p, sel, reverse, next)
				lower = cut
			}
			cuts++
		}
		if span.Selectable() {
			looked.add(&span, lower, upper, last.key)
		} else {
			looked.counted = -1
		}
		if span.Selectable() && g.IntN(2) == 0 {
			rows, n := selectColumns(t, g, it, &span, lower, upper, last, sel, reverse, next)
			gathered, examined = gathered+rows, examined+n
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
		if sel != nil && g.IntN(4) == 0 && !bytes.Equal(at, from) && !bytes.Equal(at, to) {
			looked.counted = -1
			at = walkSome(g, it, at, from, to, reverse, p, func() {
				if e := next(); !bytes.Equal(it.Key(), e.key) {
					t.Fatalf("reverse %v: walk at %x, want %x", reverse, it.Key(), e.key)
				}
			})
		}
		if !bytes.Equal(at, from) && !bytes.Equal(at, to) {
			continue
		}
		if !second {
			break
		}
		from, to, second, looked.counted = mid, end, false, -1
		if reverse {
			from, to = begin, mid
		}
	}
	if count && examined != looked.rows {
		t.Fatalf("%v, range %x %x, snapshot %d, reverse %v: %d rows are examined, want %d", p, begin, end, o.Snapshot, reverse, examined, looked.rows)
	}
	if err := it.Close(); err != nil || n != len(want) {
		t.Fatalf("%v, bounds %x %x, snapshot %d, reverse %v: %d rows are selected, want %d, error %v", p, o.Lower, o.Upper, o.Snapshot, reverse, n, len(want), err)
	}
	return extended, gathered, cuts
}

// cut returns a bound, mostly near a row in [lower, upper).
func (g *generator) cut(rows []entry, lower, upper []byte) []byte {
	compare := func(e entry, key []byte) int { return bytes.Compare(e.user, key) }
	i, _ := slices.BinarySearchFunc(rows, lower, compare)
	j, _ := slices.BinarySearchFunc(rows, upper, compare)
	if i >= j || g.IntN(8) == 0 {
		return g.bound(rows)
	}
	key := bytes.Clone(rows[i+g.IntN(j-i)].user)
	if g.IntN(2) == 0 {
		key = append(key, 0) // the least key above it
	}
	return key
}

// checkSpans walks over the spans within the bounds of it, each of which begins where the one before ends.
func checkSpans(t *testing.T, it *Iterator) {
	t.Helper()
	lower, upper := it.o.Lower, it.o.Upper
	s, ok := it.SpanGE(nil) // before the bounds
	if !ok || upper != nil && bytes.Compare(lower, upper) >= 0 {
		return
	}
	if upper == nil {
		upper = codec.AppendTable(nil, 1<<30)
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
	if at, _ := it.SpanLT(upper); s.first != at.first || s.first != beyond.first || !bytes.Equal(s.Upper, it.o.Upper) {
		t.Fatalf("bounds %x %x: the last span begins with group %d and ends at %x, want %d and %d", lower, upper, s.first, s.Upper, at.first, beyond.first)
	}
}

// counter counts the rows that Select has to look at in the windows of a range.
type counter struct {
	it      *Iterator
	groups  [][]entry // the rows in the range that the snapshot sees, without tombstones
	counted int       // the group whose rows were counted last
	rows    int
	reverse bool
}

func newCounter(it *Iterator, rows []entry, reverse bool) *counter {
	c := &counter{it: it, groups: make([][]entry, len(it.r.index.Groups)), counted: -1, reverse: reverse}
	for _, e := range rows {
		if g := it.r.index.Seek(e.user); !e.del {
			c.groups[g] = append(c.groups[g], e)
		}
	}
	return c
}

// add adds the rows that the first window in a group looks at, from it to the end of the range.
func (c *counter) add(s *Span, lower, upper, end []byte) {
	from, to := lower, end
	if c.reverse {
		from, to = end, upper
	}
	first, last := max(s.first, c.it.r.index.Seek(lower)), min(s.end-1, c.it.r.index.Seek(upper))
	for g := first; g <= last; g++ {
		if g == c.counted || c.it.excludes(g, g+1) {
			continue
		}
		for i := range c.groups[g] {
			if within(&c.groups[g][i], from, to) {
				c.rows++
			}
		}
	}
	if c.counted = last; c.reverse {
		c.counted = first
	}
}

// walkSome walks over some rows from at, passes those that match to check, and returns where it ends.
func walkSome(g *generator, it *Iterator, at, begin, end []byte, reverse bool, p *predicate.Program, check func()) []byte {
	seek, step := it.SeekGE, it.Next
	if reverse {
		seek, step = it.SeekLT, it.Prev
	}
	n := g.IntN(6)
	for ok := seek(at); ok && n > 0; ok = step() {
		user := bytes.Clone(codec.UserKey(it.Key()))
		if bytes.Compare(user, begin) < 0 || bytes.Compare(user, end) >= 0 {
			break
		}
		if row := it.Row(); row != nil && p.Match(row) {
			check()
		}
		if at = user; !reverse {
			at = append(at, 0) // the least key above it
		}
		n--
	}
	return at
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

// rangeEnd is where a range ends, in the direction of the windows: at key, or if it is not fixed, with
// each window or not at all.
type rangeEnd struct {
	key   []byte
	fixed bool
}

// windowOf returns a window of a range.
func windowOf(g *generator, lower, upper []byte, last rangeEnd, reverse bool) Window {
	w := Window{Lower: lower, Upper: upper, Reverse: reverse}
	switch {
	case last.fixed:
		w.End = last.key
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
	t *testing.T, g *generator, it *Iterator, span *Span, lower, upper []byte, last rangeEnd,
	p *predicate.Program, sel *Selector, reverse bool, next func() *entry,
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
		if bytes.Compare(lower, upper) < 0 && (bytes.Compare(from, lower) < 0 || bytes.Compare(from, upper) > 0) {
			t.Fatalf("selected from %x, beyond the window from %x to %x", from, lower, upper)
		}
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
	t *testing.T, g *generator, it *Iterator, span *Span, lower, upper []byte, last rangeEnd, sel *Selector, reverse bool, next func() *entry,
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
			if g.IntN(4) == 0 { // values of blocks that are not pinned change (arena.Poison)
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

// TestSelectErrors selects from groups of which one is damaged: its head, or what is not the head.
func TestSelectErrors(t *testing.T) {
	numbers := mixed(600)
	for i := range numbers {
		if e := &numbers[i]; i%20 == 7 { // a shape of too few rows for columns
			props := append(edm.Properties{{Name: "number", Value: edm.Int64(int64(i))}}, e.props...)
			*e = newEntry(e.pk, e.rk, e.seq, false, props)
		}
	}
	text := predicate.NewCompare("text", predicate.Ge, edm.String("\U0001F600"))
	for name, c := range map[string]struct {
		entries []entry
		node    *predicate.Node
	}{
		"one shape":      {typed(600), text},
		"several shapes": {mixed(600), text},
		"a few numbers":  {sortEntries(numbers), predicate.NewCompare("number", predicate.Lt, edm.Int64(0))},
	} {
		t.Run(name, func(t *testing.T) { testSelectErrors(t, c.entries, predicate.Compile(c.node)) })
	}
}

func testSelectErrors(t *testing.T, entries []entry, p *predicate.Program) {
	w := writerOptions()
	w.GroupBytes = 4000
	f, info := write(t, w, entries)
	data := bytesOf(t, f, info.Size)
	damaged := &open(t, f, nil).index.Groups[5]
	for _, head := range []bool{true, false} {
		bad := bytes.Clone(data)
		for i := range damaged.Len {
			if head == (i >= damaged.Before && i < damaged.HeadEnd()) {
				bad[damaged.Off+int64(i)] ^= 0xFF
			}
		}
		r := open(t, fileOf(t, bad), cache.New(1<<20))
		for _, reverse := range []bool{false, true} {
			sel := NewSelector(p)
			it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq, Fill: true})
			span, _ := it.SpanGE(r.index.Groups[1].Separator)
			if !it.Extend(&span, false, codec.AppendTable(nil, 1<<30), 600) {
				t.Fatal("not extended")
			}
			window := Window{Lower: span.Lower, Upper: span.Upper, Reverse: reverse}
			n, _, err := it.Select(&span, &window, sel)
			for err == nil && n == 0 && it.More() {
				n, _, err = it.SelectNext(sel)
			}
			if err == nil || it.group != 5 {
				t.Errorf("head %v, reverse %v: %d rows are selected in group %d, want an error in group 5", head, reverse, n, it.group)
			}
			if ok := it.SeekGE(nil); ok == head { // a walk reads the rows before a value that cannot be read
				t.Errorf("head %v, reverse %v: found a row is %v", head, reverse, ok)
			}
			span, _ = it.SpanGE(r.index.Groups[2].Separator)
			if _, _, err := it.Select(&span, &Window{Lower: span.Lower, Upper: span.Upper}, sel); (err == nil) == head {
				t.Errorf("head %v, reverse %v: Select from another group after the error: %v", head, reverse, err)
			}
			if err := it.Close(); head && err == nil {
				t.Errorf("reverse %v: the iterator has no error", reverse)
			}
		}
	}
}
