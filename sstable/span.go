package sstable

import (
	"bytes"
	"errors"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/bloom"
	"github.com/tablerock-db/tablerock/sstable/internal/selection"
)

// Span is a range of keys of a file as its index knows it: one row group, or several that
// share a user key, or those of Extend. All versions of a user key are in one Span.
type Span struct {
	// Lower and Upper bound the user keys to [Lower, Upper), within the bounds of the
	// iterator. A nil Upper is open. Both are valid as long as the iterator.
	Lower, Upper []byte
	Rows         int // of the groups, also those beyond the bounds
	first, end   int // groups
	extended     bool
}

// Selectable reports whether s can be selected from: no two of its groups share a user key.
func (s *Span) Selectable() bool { return s.extended || s.end == s.first+1 }

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
	if len(it.r.index.Groups) == 0 {
		return Span{}, false
	}
	if bytes.Compare(key, it.o.Lower) < 0 {
		key = it.o.Lower
	}
	return it.spanOf(it.r.index.Seek(key)), true
}

// SpanLT returns the Span that may have the last user key that is less than key. Its Lower
// is less than key, unless the file has no such key. ok is false for an empty file.
func (it *Iterator) SpanLT(key []byte) (s Span, ok bool) {
	all := it.r.index.Groups
	if len(all) == 0 {
		return Span{}, false
	}
	if it.o.Upper != nil && bytes.Compare(key, it.o.Upper) > 0 {
		key = it.o.Upper
	}
	g := it.r.index.Seek(key)
	for g > 0 && bytes.Compare(all[g].Separator, key) >= 0 {
		g--
	}
	return it.spanOf(g), true
}

// SpanAfter returns the Span after s, or ok false if s ends at the end of the file or
// at the bound of the iterator.
func (it *Iterator) SpanAfter(s *Span) (next Span, ok bool) {
	all := it.r.index.Groups
	if s.end == len(all) || it.o.Upper != nil && bytes.Compare(all[s.end].Separator, it.o.Upper) >= 0 {
		return Span{}, false
	}
	return it.spanOf(s.end), true
}

// spanOf returns the Span of group g.
func (it *Iterator) spanOf(g int) Span {
	all := it.r.index.Groups
	s := Span{first: g, end: g + 1}
	for all[s.first].Continues {
		s.first--
	}
	for s.end < len(all) && all[s.end].Continues {
		s.end++
	}
	for i := s.first; i < s.end; i++ {
		s.Rows += all[i].Rows
	}
	if s.Lower = all[s.first].Separator; s.first == 0 {
		s.Lower = codec.UserKey(it.r.index.Smallest)
	}
	if bytes.Compare(s.Lower, it.o.Lower) < 0 {
		s.Lower = it.o.Lower
	}
	if s.Upper = it.o.Upper; s.end < len(all) && (s.Upper == nil || bytes.Compare(all[s.end].Separator, s.Upper) < 0) {
		s.Upper = all[s.end].Separator
	}
	return s
}

// maxExtended is the most groups of a Span of Extend.
const maxExtended = 64

// Extend adds the groups after s, or with reverse before it, to s, which must be Selectable. It stops
// at the key to, at the bounds of the iterator, at a group that shares a user key with a neighbor,
// and when s would have more than rows rows. It reports whether s has more than one group.
func (it *Iterator) Extend(s *Span, reverse bool, to []byte, rows int) bool {
	all := it.r.index.Groups
	alone := func(g int) bool { // g is not the last group
		return !all[g].Continues && !all[g+1].Continues && s.Rows+all[g].Rows <= rows
	}
	if reverse {
		if bytes.Compare(to, it.o.Lower) < 0 {
			to = it.o.Lower
		}
		for g := s.first - 1; g > 0 && s.end-g <= maxExtended && alone(g) && bytes.Compare(all[g].Separator, to) >= 0; g-- {
			s.first, s.Lower, s.extended = g, all[g].Separator, true
			s.Rows += all[g].Rows
		}
		return s.extended
	}
	if it.o.Upper != nil && bytes.Compare(it.o.Upper, to) < 0 {
		to = it.o.Upper
	}
	for g := s.end; g+1 < len(all) && g-s.first < maxExtended && alone(g) && bytes.Compare(all[g+1].Separator, to) <= 0; g++ {
		s.end, s.Upper, s.extended = g+1, all[g+1].Separator, true
		s.Rows += all[g].Rows
	}
	return s.extended
}

// Excludes reports whether the bounds of the groups of s exclude that a row satisfies IterOptions.Prune.
func (it *Iterator) Excludes(s *Span) bool { return it.excludes(s.first, s.end) }

func (it *Iterator) excludes(first, end int) bool {
	if it.pruner == nil {
		return false
	}
	if it.judged == [2]int{first, end} {
		return it.excluded
	}
	it.judged, it.excluded = [2]int{first, end}, true
	for g := first; g < end && it.excluded; g++ {
		it.excluded = it.pruner.None(g)
	}
	return it.excluded
}

var errSeveral = errors.New("sstable: the span has several groups")

// Window is the keys of a Span that Select selects from.
type Window struct {
	Lower, Upper []byte // bound the user keys to [Lower, Upper), within the bounds of the Span
	// End is the upper bound of a range of keys that this window and those after it are in, with
	// Reverse the lower one. Rows beyond it are not looked at. Nil is open.
	End     []byte
	Reverse bool // the last keys first
	ByRows  bool // the caller does not try NextSelectedColumns
}

// Select selects the rows of w in s, which is Selectable, that satisfy the program of sel, or all
// rows if sel is nil. It considers the versions that the snapshot sees, and never selects a
// tombstone. NextSelected and PrevSelected then move from one selected row to the next.
//
// Select selects from the first groups of s, up to one that has such rows, or whose head had to be
// read; SelectNext continues behind it while More reports true. Both return how many rows are
// selected, and how many were looked at: those of w, or with sel all of each group from w to w.End at
// the first call for it, and then none. With sel the windows of a range come in their order. Only with
// sel a Span may be extended; the groups of it that Excludes would exclude are not looked at. An
// Iterator must always get the same sel. After an error the iterator has no position; another Select
// or Seek meets the error again. The Iterator uses s and w until the next Select, and w.End longer.
func (it *Iterator) Select(s *Span, w *Window, sel *Selector) (selected, examined int, err error) {
	it.valid, it.viewed, it.keyed = false, false, false
	it.selected = predicate.Bits{}
	if err := it.Err(); err != nil {
		return 0, 0, err
	}
	if !s.Selectable() {
		return 0, 0, errSeveral
	}
	it.span, it.window, it.begin, it.end, it.group, it.none = s, w, s.first, s.end, s.first, false
	switch {
	case s.extended:
		it.narrow()
		if it.group = it.begin; w.Reverse {
			it.group = it.end - 1
		}
		return it.selectFrom(sel)
	case sel != nil:
		return it.selectMatches(s.first, sel)
	}
	uses := uint32(0)
	if w.ByRows {
		uses = scanUses
	}
	if !it.loadFor(s.first, uses) {
		return 0, 0, it.err
	}
	from, to := it.first, it.limit
	if bytes.Compare(w.Lower, s.Lower) > 0 {
		from, _ = it.h.Seek(w.Lower)
	}
	if s.Upper == nil || bytes.Compare(w.Upper, s.Upper) < 0 {
		to, _ = it.h.Seek(w.Upper)
	}
	it.h.Visible(from, to, it.o.Snapshot, &it.selected)
	selected = it.selected.Len()
	return selected, selected, nil
}

// narrow leaves out the groups of span before and behind the window.
func (it *Iterator) narrow() {
	x, s, w := &it.r.index, it.span, it.window
	if bytes.Compare(w.Lower, s.Lower) > 0 {
		it.begin = max(it.begin, x.Seek(w.Lower))
	}
	if s.Upper == nil || bytes.Compare(w.Upper, s.Upper) < 0 {
		it.end = min(it.end, x.Seek(w.Upper)+1)
	}
}

// SelectNext continues Select when the selected rows have been passed. More must report true.
func (it *Iterator) SelectNext(sel *Selector) (selected, examined int, err error) {
	it.valid, it.viewed, it.keyed = false, false, false
	it.selected = predicate.Bits{}
	it.nextGroup()
	return it.selectFrom(sel)
}

// More reports whether SelectNext can continue Select.
func (it *Iterator) More() bool {
	if it.window.Reverse {
		return it.group > it.begin
	}
	return it.group+1 < it.end
}

// nextGroup moves group to the next one in the window.
func (it *Iterator) nextGroup() {
	if it.window.Reverse {
		it.group--
	} else {
		it.group++
	}
}

// SelectedFrom returns the key in the window from which rows may be selected that have not been
// passed, with Reverse the key below which they are: where the group of Select or SelectNext begins,
// or where it ends if no row of it is selected.
func (it *Iterator) SelectedFrom() []byte {
	at := it.group // the separator that is asked for
	if it.window.Reverse != it.none {
		at++
	}
	switch {
	case at <= it.begin:
		return it.window.Lower
	case at >= it.end:
		return it.window.Upper
	}
	return it.r.index.Groups[at].Separator
}

// selectFrom selects from group, or from the next ones as long as their heads need not be read.
func (it *Iterator) selectFrom(sel *Selector) (selected, examined int, err error) {
	for it.none = false; ; it.nextGroup() {
		if !it.excludes(it.group, it.group+1) {
			n, looked, err := it.selectMatches(it.group, sel)
			examined += looked
			if n > 0 || err != nil {
				return n, examined, err
			}
		}
		if it.g == it.group || !it.More() {
			it.none = true
			return 0, examined, nil
		}
	}
}

// NextSelected moves to the next selected row, the first one after Select.
func (it *Iterator) NextSelected() bool { return it.moveTo(it.nextSelected(false)) }

// PrevSelected moves to the previous selected row, the last one after Select.
func (it *Iterator) PrevSelected() bool { return it.moveTo(it.nextSelected(true)) }

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

// NextSelectedColumns moves over some selected rows, at most most, as NextSelected does, or
// with reverse as PrevSelected, and appends them to c, whose rows, if it has any, Keep has kept. It
// returns 0 without a move if no row is left, or if the next ones can only be read one by one or do
// not have the shape of those in c: left says which.
func (it *Iterator) NextSelectedColumns(c *Columns, reverse bool, most int) (n int, left bool) {
	first := it.nextSelected(reverse)
	if first < 0 {
		return 0, false
	}
	n = -c.Len()
	last := it.view.Columns(&c.Columns, &it.selected, first, most, reverse)
	if last < 0 {
		return 0, true
	}
	it.moveTo(last)
	return n + c.Len(), true
}

// Left reports whether a selected row is left, behind the current one or with reverse before it.
func (it *Iterator) Left(reverse bool) bool { return it.nextSelected(reverse) >= 0 }

// nextSelected returns the row that NextSelected or PrevSelected moves to, negative if there is none.
func (it *Iterator) nextSelected(reverse bool) int {
	switch {
	case !reverse && it.valid:
		return it.selected.After(it.row)
	case !reverse:
		return it.selected.After(-1)
	case it.valid:
		return it.selected.Before(it.row)
	}
	return it.selected.Before(predicate.MaxRows)
}

// NextColumns appends rows from the current entry on, or with reverse back from it, to c, which is
// empty, and moves to the last of them. It appends none, without a move, if the current row can only
// be read alone. most is the greatest number of rows; it is at most 1 more than Ahead returns. The
// current entry must not be a tombstone.
func (it *Iterator) NextColumns(c *Columns, reverse bool, most int) {
	first := it.row
	var rows predicate.Bits // those beyond a tombstone are not used: it has no shape
	if reverse {
		rows.AddRange(first-most+1, first+1)
	} else {
		rows.AddRange(first, first+most)
	}
	if last := it.view.Columns(&c.Columns, &rows, first, most, reverse); last >= 0 {
		it.moveTo(last)
	}
}

// CutColumns keeps the first n rows of c, which NextColumns or NextSelectedColumns has appended at
// once, and moves to the last of them.
func (it *Iterator) CutColumns(c *Columns, n int) { it.moveTo(c.Cut(n)) }

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
	if s.end != s.first+1 {
		return false, errSeveral
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
