package sstable

import (
	"bytes"
	"errors"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/bloom"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
	"github.com/tablerock-db/tablerock/sstable/internal/selection"
)

// Span is a range of keys of a file as its index knows it: one row group, or several that
// share a user key. All versions of a user key are in one Span.
type Span struct {
	// Lower and Upper bound the user keys to [Lower, Upper), within the bounds of the
	// iterator. A nil Upper is open. Both are valid as long as the iterator.
	Lower, Upper []byte
	Rows         int // of the groups, also those beyond the bounds
	first, end   int // groups
}

// Single reports whether s is one group.
func (s *Span) Single() bool { return s.end == s.first+1 }

// Selector selects rows by a program. It belongs to one goroutine.
type Selector struct{ rows *selection.Selector }

// NewSelector returns a Selector for a program.
func NewSelector(p *predicate.Program) *Selector {
	return &Selector{selection.New(p)}
}

// SpanGE returns the Span that may have the first user key that is not less than key. Its
// Upper is greater than key, unless the file has no such key. ok is false for an empty
// file.
func (it *Iterator) SpanGE(key []byte) (s Span, ok bool) {
	if len(it.r.index.groups) == 0 {
		return Span{}, false
	}
	if bytes.Compare(key, it.o.Lower) < 0 {
		key = it.o.Lower
	}
	return it.spanOf(it.r.index.seek(key)), true
}

// SpanLT returns the Span that may have the last user key that is less than key. Its Lower
// is less than key, unless the file has no such key. ok is false for an empty file.
func (it *Iterator) SpanLT(key []byte) (s Span, ok bool) {
	all := it.r.index.groups
	if len(all) == 0 {
		return Span{}, false
	}
	if it.o.Upper != nil && bytes.Compare(key, it.o.Upper) > 0 {
		key = it.o.Upper
	}
	g := it.r.index.seek(key)
	for g > 0 && bytes.Compare(all[g].separator, key) >= 0 {
		g--
	}
	return it.spanOf(g), true
}

// SpanAfter returns the Span after s, or ok false if s ends at the end of the file or
// at the bound of the iterator.
func (it *Iterator) SpanAfter(s *Span) (next Span, ok bool) {
	all := it.r.index.groups
	if s.end == len(all) || it.o.Upper != nil && bytes.Compare(all[s.end].separator, it.o.Upper) >= 0 {
		return Span{}, false
	}
	return it.spanOf(s.end), true
}

// spanOf returns the Span of group g.
func (it *Iterator) spanOf(g int) Span {
	all := it.r.index.groups
	s := Span{first: g, end: g + 1}
	for all[s.first].continues {
		s.first--
	}
	for s.end < len(all) && all[s.end].continues {
		s.end++
	}
	for i := s.first; i < s.end; i++ {
		s.Rows += all[i].rows
	}
	if s.Lower = all[s.first].separator; s.first == 0 {
		s.Lower = userKey(it.r.index.smallest)
	}
	if bytes.Compare(s.Lower, it.o.Lower) < 0 {
		s.Lower = it.o.Lower
	}
	if s.Upper = it.o.Upper; s.end < len(all) && (s.Upper == nil || bytes.Compare(all[s.end].separator, s.Upper) < 0) {
		s.Upper = all[s.end].separator
	}
	return s
}

// Excludes reports whether the bounds of the groups of s exclude that a row satisfies
// IterOptions.Prune.
func (it *Iterator) Excludes(s *Span) bool {
	if it.pruner == nil {
		return false
	}
	if it.judged == s.first {
		return it.excluded
	}
	it.judged, it.excluded = s.first, true
	for g := s.first; g < s.end && it.excluded; g++ {
		it.excluded = it.pruner.None(g)
	}
	return it.excluded
}

var errShared = errors.New("sstable: groups that share a user key cannot be selected from")

// Select selects the rows of s, which is Single, that satisfy the program of sel, or all
// rows if sel is nil, and whose user keys are in [lower, upper), within the bounds of s.
// It considers the versions that the snapshot sees, and never selects a tombstone.
// NextSelected and PrevSelected then move from one selected row to the next. Select
// returns how many rows are selected, and how many it has looked at: those of the window, or with
// sel all of the group at the first call for s, and then none. byRows says that the caller does
// not try NextSelectedColumns. An Iterator must always get the same sel. After an
// error the iterator has no position; another Select or Seek meets the error again.
func (it *Iterator) Select(s *Span, lower, upper []byte, sel *Selector, byRows bool) (selected, examined int, err error) {
	it.valid, it.viewed, it.keyed = false, false, false
	it.selected = predicate.Bits{}
	if err := it.Err(); err != nil {
		return 0, 0, err
	}
	if !s.Single() {
		return 0, 0, errShared
	}
	if sel != nil {
		return it.selectMatches(s, lower, upper, sel)
	}
	uses := uint32(0)
	if byRows {
		uses = scanUses
	}
	if !it.loadFor(s.first, uses) {
		return 0, 0, it.err
	}
	from, to := it.first, it.limit
	if bytes.Compare(lower, s.Lower) > 0 {
		from, _ = it.h.Seek(lower)
	}
	if s.Upper == nil || bytes.Compare(upper, s.Upper) < 0 {
		to, _ = it.h.Seek(upper)
	}
	it.h.Visible(from, to, it.o.Snapshot, &it.selected)
	selected = it.selected.Len()
	return selected, selected, nil
}

// selectMatches is the rest of Select for a program.
func (it *Iterator) selectMatches(s *Span, lower, upper []byte, sel *Selector) (selected, examined int, err error) {
	if it.matched != s.first {
		it.matchChunks(s.first, sel)
	}
	if it.matched != s.first || it.found > 0 {
		if !it.loadFor(s.first, 0) {
			return 0, 0, it.err
		}
		if err := it.match(sel); err != nil {
			return 0, 0, err
		}
	}
	if it.counted != s.first {
		it.counted, examined = s.first, it.seen
	}
	if it.found == 0 {
		return 0, examined, nil
	}
	from, to := it.first, it.limit
	if bytes.Compare(lower, s.Lower) > 0 {
		from = it.matchGE(lower)
	}
	if s.Upper == nil || bytes.Compare(upper, s.Upper) < 0 {
		to = it.matchGE(upper)
	}
	it.selected, selected = it.matches.Within(from, to)
	return selected, examined, nil
}

// Matches returns how many rows of the group of the last Select satisfy its program, and how many
// rows it has looked at there.
func (it *Iterator) Matches() (found, seen int) { return it.found, it.seen }

// cut is where windows that share a group cut its matches.
type cut struct {
	group int    // -1 if the other fields mean nothing
	asked []byte // the last key
	row   int    // the first row with a match whose key is not less than asked, or the limit
	key   []byte // of row
	buf   []byte
}

// fewMatches is the greatest number of matches in a group whose keys matchGE compares.
const fewMatches = 8

// matchGE returns a row that is not behind the first match in the current group whose user key is
// not less than key, and behind all matches before it. With few matches it compares their keys,
// from the last result on: several windows share a group, and one ends where the next one begins.
func (it *Iterator) matchGE(key []byte) int {
	if it.found > fewMatches {
		row, _ := it.h.Seek(key)
		return row
	}
	c := &it.cut
	if c.group != it.g {
		c.group, c.asked = it.g, c.asked[:0]
		it.setCut(it.matches.After(-1))
	}
	for bytes.Compare(key, c.asked) < 0 { // in reverse
		before := it.matches.Before(c.row)
		if before < 0 {
			break
		}
		c.buf = it.h.AppendKey(c.buf[:0], before)
		if bytes.Compare(c.buf, key) < 0 {
			break
		}
		it.setCut(before)
	}
	for c.row < it.limit && bytes.Compare(c.key, key) < 0 {
		it.setCut(it.matches.After(c.row))
	}
	c.asked = append(c.asked[:0], key...)
	return c.row
}

// setCut makes row, which has a match, the row of cut, or the limit if row is negative.
func (it *Iterator) setCut(row int) {
	if it.cut.row = row; row < 0 {
		it.cut.row = it.limit
		return
	}
	it.cut.key = it.h.AppendKey(it.cut.key[:0], row)
}

// match sets matches for the current group, if the last call was for another one: several
// windows share a group of overlapping files, and to select from all of its rows at once takes
// two thirds of the time (bench, runs=8-overlapping/filter=Double).
func (it *Iterator) match(sel *Selector) error {
	if it.matched == it.g {
		return nil
	}
	it.matched, it.matches = it.g, predicate.Bits{}
	it.h.Visible(it.first, it.limit, it.o.Snapshot, &it.matches)
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

// NextSelected moves to the next selected row, the first one after Select.
func (it *Iterator) NextSelected() bool {
	at := -1
	if it.valid {
		at = it.row
	}
	return it.moveTo(it.selected.After(at))
}

// PrevSelected moves to the previous selected row, the last one after Select.
func (it *Iterator) PrevSelected() bool {
	at := predicate.MaxRows
	if it.valid {
		at = it.row
	}
	return it.moveTo(it.selected.Before(at))
}

// NextSelectedRow moves as NextSelected, or with reverse as PrevSelected, and returns the
// row, nil beyond the selected rows. It is valid until the iterator moves.
func (it *Iterator) NextSelectedRow(reverse bool) codec.ShapedRow {
	ok := false
	if reverse {
		ok = it.PrevSelected()
	} else {
		ok = it.NextSelected()
	}
	if !ok {
		return nil
	}
	it.viewed = true
	it.view.Set(it.row)
	return &it.view.Row
}

// Columns are rows of an Iterator by columns.
type Columns = rowgroup.Columns

// NextSelectedColumns moves over some selected rows, at most most, as NextSelected does, or
// with reverse as PrevSelected, and returns them. They are valid until the iterator moves.
// It returns nil if no row is left, or if the next ones can only be read one by one: left
// says which.
func (it *Iterator) NextSelectedColumns(reverse bool, most int) (c *Columns, left bool) {
	first := -1
	if it.valid {
		first = it.row
	}
	if !reverse {
		first = it.selected.After(first)
	} else {
		if !it.valid {
			first = predicate.MaxRows
		}
		first = it.selected.Before(first)
	}
	if first < 0 {
		return nil, false
	}
	last := it.view.Columns(&it.columns, &it.selected, first, most, reverse)
	if last < 0 {
		return nil, true
	}
	it.moveTo(last)
	return &it.columns, true
}

// NextColumns returns rows from the current entry on, or with reverse back from it, and moves to
// the last of them. It returns nil without a move if the current row can only be read alone. The
// rows are valid until the iterator moves. most is the greatest number of rows; it is at most 1
// more than Ahead returns. The current entry must not be a tombstone.
func (it *Iterator) NextColumns(reverse bool, most int) *Columns {
	first := it.row
	var rows predicate.Bits // those beyond a tombstone are not used: it has no shape
	if reverse {
		rows.AddRange(first-most+1, first+1)
	} else {
		rows.AddRange(first, first+most)
	}
	last := it.view.Columns(&it.columns, &rows, first, most, reverse)
	if last < 0 {
		return nil
	}
	it.moveTo(last)
	return &it.columns
}

// CutColumns keeps the first n rows of those that NextColumns or NextSelectedColumns returned
// last, and moves to the last of them.
func (it *Iterator) CutColumns(n int) { it.moveTo(it.columns.Cut(n)) }

// moveTo moves to a row of the current group, or beyond the selected rows if it is
// negative.
func (it *Iterator) moveTo(row int) bool {
	it.viewed, it.keyed, it.valid = false, false, row >= 0
	if !it.valid {
		it.selected = predicate.Bits{}
		return false
	}
	it.row = row
	return true
}

// Has reports whether the file has a version of a user key of s that the snapshot sees.
// keyHash is codec.KeyHash(user). If the group of the key has to be read, that ends the
// use of rows of another group.
func (it *Iterator) Has(s *Span, user []byte, keyHash uint64) (bool, error) {
	if !bloom.Has(it.r.filter, keyHash) {
		return false, nil
	}
	if !s.Single() {
		return false, errShared
	}
	if it.g != s.first {
		it.valid = false
		if !it.loadFor(s.first, 0) {
			return false, it.err
		}
	}
	i, equal := it.h.Seek(user)
	for equal && it.h.Sequence(i) > it.o.Snapshot {
		i++
		equal = i < it.h.Rows() && it.h.Same(i)
	}
	return equal, nil
}
