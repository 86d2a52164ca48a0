package sstable

import (
	"bytes"

	"github.com/tablerock-db/tablerock/internal/predicate"
)

// selectMatches selects from group g by a program.
func (it *Iterator) selectMatches(g int, sel *Selector) (selected, examined int, err error) {
	fresh := it.matched != g // this call sets matches
	if fresh {
		it.matchChunks(g, sel)
	}
	if it.matched != g || it.found > 0 || !it.whole || it.counted != g && !fresh {
		if !it.loadFor(g, 0) {
			return 0, 0, it.err
		}
		again, err := it.match(sel)
		if err != nil {
			return 0, 0, err
		}
		fresh = fresh || again
	}
	if it.counted != g {
		it.counted, examined = g, it.seen
		if !fresh { // a walk has counted the rows before the window
			examined = it.countLeft()
		}
	}
	if it.found == 0 {
		return 0, examined, nil
	}
	from, to, s, w := it.first, it.limit, it.span, it.window
	if g == it.begin && (g > s.first || bytes.Compare(w.Lower, s.Lower) > 0) {
		from = it.matchGE(w.Lower)
	}
	if g+1 == it.end && (g+1 < s.end || s.Upper == nil || bytes.Compare(w.Upper, s.Upper) < 0) {
		to = it.matchGE(w.Upper)
	}
	it.selected, selected = it.matches.Within(from, to)
	return selected, examined, nil
}

// Matches returns how many rows of the group of the last Select satisfy its program, and how many
// rows it has looked at there.
func (it *Iterator) Matches() (found, seen int) { return it.found, it.seen }

// fewMatches is the greatest number of matches in a group whose keys matchGE compares.
const fewMatches = 8

// matchGE is selection.Cut.RowGE for the current group.
func (it *Iterator) matchGE(key []byte) int {
	if it.found > fewMatches {
		row, _ := it.h.Seek(key)
		return row
	}
	return it.cut.RowGE(it.g, it.h, &it.matches, it.limit, key)
}

// match sets matches for the rows of the current group from the window to the end of the range, and
// reports whether they were not set for this group and range: several windows share a group of
// overlapping files, and to select from all of its rows at once takes two thirds of the time (bench,
// runs=8-overlapping/filter=Double).
func (it *Iterator) match(sel *Selector) (matched bool, err error) {
	w := it.window
	if it.matched == it.g {
		if it.whole || bytes.Equal(it.matchEnd, w.End) {
			return false, nil
		}
		it.counted = -1
		it.cut.Reset()
	}
	it.matched, it.matchEnd, it.whole, it.matches = it.g, w.End, false, predicate.Bits{}
	from, to := it.rowsLeft()
	it.h.Visible(from, to, it.o.Snapshot, &it.matches)
	if it.seen, it.found = it.matches.Len(), 0; it.seen == 0 {
		return true, nil
	}
	it.setCaptures(it.g, sel)
	if err := sel.rows.Select(&it.view.Row, &it.matches); err != nil {
		it.view.Release() // without the error, so that a walk finds the rows before it
		it.h, it.g, it.matched = nil, -1, -1
		return false, err
	}
	it.found = it.matches.Len()
	it.addToChunks(sel)
	return true, nil
}

// left returns the bounds of the keys from the window to the end of the range.
func (it *Iterator) left() (lower, upper []byte) {
	if w := it.window; w.Reverse {
		return w.End, w.Upper
	}
	return it.window.Lower, it.window.End
}

// allLeft reports whether all keys of group g are from the window to the end of the range.
func (it *Iterator) allLeft(g int) bool {
	all := it.r.index.Groups
	lower, upper := it.left()
	return bytes.Compare(lower, all[g].Separator) <= 0 && (upper == nil || g+1 < len(all) && bytes.Compare(upper, all[g+1].Separator) >= 0)
}

// rowsLeft returns the rows from to to-1 of the current group that are from the window to the end of
// the range.
func (it *Iterator) rowsLeft() (from, to int) {
	from, to = it.first, it.limit
	all := it.r.index.Groups
	lower, upper := it.left()
	if bytes.Compare(lower, all[it.g].Separator) > 0 {
		row, _ := it.h.Seek(lower)
		from = max(from, row)
	}
	if upper != nil && (it.g+1 == len(all) || bytes.Compare(upper, all[it.g+1].Separator) < 0) {
		row, _ := it.h.Seek(upper)
		to = min(to, row)
	}
	return from, to
}

// countLeft returns how many rows of the current group are from the window to the end of the range.
func (it *Iterator) countLeft() int {
	var rows predicate.Bits
	from, to := it.rowsLeft()
	it.h.Visible(from, to, it.o.Snapshot, &rows)
	return rows.Len()
}
