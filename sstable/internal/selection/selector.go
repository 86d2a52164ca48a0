// Package selection selects rows of a row group by a program: from columns where the values
// are in the head of the group, else one row after the other.
package selection

import (
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/columnchunk"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// Selector selects rows by a program. It is not safe for concurrent use.
type Selector struct {
	program *predicate.Program
	matcher *predicate.Matcher

	// During Select.
	row     *rowgroup.Row
	head    *rowgroup.Head
	binding *predicate.Binding // to the shape of a Uniform group

	list []predicate.Text // scratch
	// column is here, because a local one is allocated for each call.
	column rowgroup.Column

	texts    []captured             // by Program.Column
	gathered []columnchunk.Gathered // by Program.Column; nil before the first group of several shapes
	gathers  bool                   // gathered is used

	// During SelectFrom.
	columns []columnchunk.Column
	lacks   bool // columns do not suffice
}

// New returns a Selector for a program.
func New(p *predicate.Program) *Selector {
	return &Selector{program: p, matcher: predicate.NewMatcher(p), texts: make([]captured, len(p.Names()))}
}

// Select removes from set, rows of the group that row is attached to, the rows that do not
// satisfy the program. Tombstones must not be in set. The error is that of a value that
// cannot be read; then set is undefined.
func (s *Selector) Select(row *rowgroup.Row, set *predicate.Bits) error {
	s.row, s.head = row, row.Head()
	for i := range s.texts {
		s.texts[i].done = false
	}
	if !s.head.Uniform() {
		return s.selectMixed(set)
	}
	if first := set.After(-1); first >= 0 {
		row.Set(first)
		s.binding = s.matcher.Bind(row.Shape())
		s.program.Select(s, set)
	}
	return row.Err()
}

// denseShare is the share of the rows of a group, one in so many, from which on a
// comparison of all of them costs less than one row by row.
const denseShare = 8

// Keep implements predicate.Rows for a Uniform group.
func (s *Selector) Keep(t *predicate.Term, set *predicate.Bits) {
	property := s.binding.Property(t)
	dense := set.Len() > s.head.Rows()/denseShare
	switch {
	case property == predicate.Absent:
		*set = predicate.Bits{}
		return
	case property == predicate.Timestamp && dense:
		w := s.head.Timestamps()
		t.Test(edm.TypeDateTime).KeepWords(&w, s.head.Rows(), set)
		return
	case property >= 0 && dense:
		s.row.Set(set.After(-1))
		if s.keepColumn(t, property, set) {
			return
		}
	}
	for at := set.After(-1); at >= 0; at = set.After(at) {
		if s.row.Set(at); !s.binding.Test(t, s.row) {
			set.Remove(at)
		}
	}
}

// keepColumn is Keep for a column of all rows of the group. It reports false if the rest of
// set must be tested row by row.
func (s *Selector) keepColumn(term *predicate.Term, property int, set *predicate.Bits) bool {
	s.column = s.head.Column(property)
	c, t := &s.column, term.Test(s.row.Shape().Type(property))
	if c.Kind == rowgroup.Heap && t.Kind != predicate.Always && t.Kind != predicate.Never {
		s.keepTexts(t, c, &s.texts[s.program.Column(term)], set)
		return true
	}
	return keepValues(t, values{c.Kind, c.Words, c.Booleans, c}, s.head.Rows(), set)
}

// values are the values of a property in all rows of a group, as rowgroup.Column has them.
type values struct {
	kind     rowgroup.ColumnKind
	words    predicate.Words
	booleans []byte
	entries  interface {
		Entries() int
		Entry(code int) []byte
	}
}

// keepValues removes from set the rows, less than n, that do not satisfy t. It reports false
// without a change if v does not have the values.
func keepValues(t *predicate.Test, v values, n int, set *predicate.Bits) bool {
	switch t.Kind {
	case predicate.Always:
		return true
	case predicate.Never:
		*set = predicate.Bits{}
		return true
	}
	switch v.kind {
	case rowgroup.Words:
		t.KeepWords(&v.words, n, set)
	case rowgroup.Booleans:
		t.KeepBooleans(v.booleans, n, set)
	case rowgroup.Codes:
		var match predicate.Bits
		for code := range v.entries.Entries() {
			if t.Bytes(v.entries.Entry(code)) {
				match.Add(code)
			}
		}
		v.words.KeepCodes(&match, n, set)
	default:
		return false
	}
	return true
}

// keepTexts is keepColumn for Strings or Binaries in the heap.
func (s *Selector) keepTexts(t *predicate.Test, c *rowgroup.Column, into *captured, set *predicate.Bits) {
	rows := s.head.Rows()
	all := into.how != CaptureNone && !into.done && set.Len() == rows
	if n, ok := t.Length(); ok && (!all || into.how != CaptureAll) {
		c.KeepLength(n, set)
		all = false
	}
	if all {
		into.begin(rows)
	}
	rest := *set
	*set = predicate.Bits{}
	for at := rest.After(-1); at >= 0; {
		var data []byte
		data, s.list, at = s.row.Texts(c, &rest, at, s.list)
		t.AddTexts(data, s.list, set)
		if all {
			into.add(data, s.list)
		}
	}
	into.done = into.done || all && s.row.Err() == nil
}
