package sstable

import (
	"bytes"

	"github.com/tablerock-db/tablerock/internal/predicate"
)

// selectMatches selects from group g by a program.
func (it *Iterator) selectMatches(g int, sel *Selector) (selected, examined int, err error) {
	if it.matched != g {
		it.matchChunks(g, sel)
	}
	if it.matched != g || it.found > 0 || !it.whole {
		if !it.loadFor(g, 0) {
			return 0, 0, it.err
		}
		if err := it.match(sel); err != nil {
			return 0, 0, err
		}
	}
	s, w := it.span, it.window
	if it.counted != g {
		it.counted, examined = g, it.seen
		if w.Passed && (w.Reverse && g+1 == it.end || !w.Reverse && g == it.begin) {
			if examined, err = it.countLeft(g); err != nil {
				return 0, 0, err
			}
		}
	}
	if it.found == 0 {
		return 0, examined, nil
	}
	from, to := it.first, it.limit
	if g == it.begin && (g > s.first || bytes.Compare(w.Lower, s.Lower) > 0) {
		from = it.matchGE(w.Lower)
	}
	if g+1 == it.end && (g+1 < s.end || s.Upper == nil || bytes.Compare(w.Upper, s.Upper) < 0) {
		to = it.matchGE(w.Upper)
	}
	it.selected, selected = it.matches.Within(from, to)
	return selected, examined, nil
}

// countLeft returns how many rows of group g are not before the window. The head of the group is mostly
// there, because the iterator is in it.
func (it *Iterator) countLeft(g int) (int, error) {
	if !it.loadFor(g, 0) {
		return 0, it.err
	}
	from, to := it.rangeRows()
	if it.window.Reverse {
		to, _ = it.h.Seek(it.window.Upper)
	} else {
		from, _ = it.h.Seek(it.window.Lower)
	}
	var rows predicate.Bits
	it.h.Visible(from, to, it.o.Snapshot, &rows)
	return rows.Len(), nil
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

// match sets matches for the current group, unless they are set for the rows in the range of the
// window: several windows share a group of overlapping files, and to select from all of its rows at
// once takes two thirds of the time (bench, runs=8-overlapping/filter=Double).
func (it *Iterator) match(sel *Selector) error {
	from, to := it.rangeRows()
	if it.matched == it.g {
		if it.whole || it.matchFrom <= from && to <= it.matchTo {
			return nil
		}
		it.counted = -1 // the last call was for another range
		it.cut.Reset()
	}
	it.matched, it.matches, it.whole, it.matchFrom, it.matchTo = it.g, predicate.Bits{}, false, from, to
	it.h.Visible(from, to, it.o.Snapshot, &it.matches)
	if it.seen, it.found = it.matches.Len(), 0; it.seen == 0 {
		return nil
	}
	it.setCaptures(it.g, sel)
	if err := sel.rows.Select(&it.view.Row, &it.matches); err != nil {
		it.view.Release() // without the error, so that a walk finds the rows before it
		it.h, it.g, it.matched = nil, -1, -1
		return err
	}
	it.found = it.matches.Len()
	it.addToChunks(sel)
	return nil
}

// rangeRows returns the rows from to to-1 of the current group that are in the range of the window.
func (it *Iterator) rangeRows() (from, to int) {
	from, to = it.first, it.limit
	all, w := it.r.index.Groups, it.window
	if bytes.Compare(w.From, it.o.Lower) > 0 && bytes.Compare(w.From, all[it.g].Separator) > 0 {
		from, _ = it.h.Seek(w.From)
	}
	within := it.o.Upper == nil || bytes.Compare(w.To, it.o.Upper) < 0
	if w.To != nil && within && (it.g+1 == len(all) || bytes.Compare(w.To, all[it.g+1].Separator) < 0) {
		to, _ = it.h.Seek(w.To)
	}
	return from, to
}
