// Package selection selects rows of a row group by a program: from columns where the values
// are in the head of the group, else one row after the other.
package selection

import (
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// Selector selects rows by a program. It is not safe for concurrent use.
type Selector struct {
	program *predicate.Program
	matcher *predicate.Matcher

	// During Select.
	row     *rowgroup.Row
	head    *rowgroup.Head
	binding *predicate.Binding // to the shape of the rows that are selected from

	rows  predicate.Bits   // of the shape of binding; here, because a local one is allocated for each call
	texts []predicate.Text // scratch
}

// New returns a Selector for a program.
func New(p *predicate.Program) *Selector {
	return &Selector{program: p, matcher: predicate.NewMatcher(p)}
}

// maxSections limits the shapes of a group whose rows are selected shape by shape: each
// takes a pass over the rows.
const maxSections = 4

// Select removes from set, rows of the group that row is attached to, the rows that do not
// satisfy the program. Tombstones must not be in set. The error is that of a value that
// cannot be read; then set is undefined.
func (s *Selector) Select(row *rowgroup.Row, set *predicate.Bits) error {
	s.row, s.head = row, row.Head()
	if s.head.Sections() > maxSections {
		for at := set.After(-1); at >= 0; at = set.After(at) {
			if row.Set(at); !s.matcher.Match(row.Shape(), row) {
				set.Remove(at)
			}
		}
		return row.Err()
	}
	rest := *set
	*set = predicate.Bits{}
	for first := rest.After(-1); first >= 0; first = rest.After(-1) {
		row.Set(first)
		s.binding = s.matcher.Bind(row.Shape())
		s.rows = rest
		if !s.head.Uniform() {
			section := s.head.Section(first)
			for at := rest.After(first); at >= 0; at = rest.After(at) {
				if s.head.Section(at) != section {
					s.rows.Remove(at)
				}
			}
		}
		rest.AndNot(&s.rows)
		s.program.Select(s, &s.rows)
		set.Or(&s.rows)
	}
	return row.Err()
}

// denseShare is the share of the rows of a group, one in so many, from which on a
// comparison of all of them costs less than one row by row.
const denseShare = 8

// Keep implements predicate.Rows for rows of the shape of binding.
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
	case property >= 0 && dense && s.head.Uniform():
		s.row.Set(set.After(-1))
		if s.keepColumn(t.Test(s.row.Shape().Type(property)), property, set) {
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
func (s *Selector) keepColumn(t *predicate.Test, property int, set *predicate.Bits) bool {
	switch t.Kind {
	case predicate.Always:
		return true
	case predicate.Never:
		*set = predicate.Bits{}
		return true
	}
	c := s.head.Column(property)
	switch c.Kind {
	case rowgroup.Words:
		t.KeepWords(&c.Words, s.head.Rows(), set)
		return true
	case rowgroup.Booleans:
		t.KeepBooleans(c.Booleans, s.head.Rows(), set)
		return true
	case rowgroup.Codes:
		var match predicate.Bits
		for code := range c.Entries() {
			if t.Bytes(c.Entry(code)) {
				match.Add(code)
			}
		}
		c.Words.KeepCodes(&match, s.head.Rows(), set)
		return true
	case rowgroup.Heap:
		s.keepTexts(t, &c, set)
		return true
	case rowgroup.ByRow:
	}
	return false
}

// keepTexts is keepColumn for Strings or Binaries in the heap.
func (s *Selector) keepTexts(t *predicate.Test, c *rowgroup.Column, set *predicate.Bits) {
	if n, ok := t.Length(); ok {
		c.KeepLength(n, set)
	}
	rest := *set
	*set = predicate.Bits{}
	for at := rest.After(-1); at >= 0; {
		var data []byte
		data, s.texts, at = s.row.Texts(c, &rest, at, s.texts)
		t.AddTexts(data, s.texts, set)
	}
}
