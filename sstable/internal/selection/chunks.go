package selection

import (
	"slices"

	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/columnchunk"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// Columns returns the properties whose columns SelectFrom needs, nil if it cannot be used.
func (s *Selector) Columns() []string { return s.program.Columns() }

// SelectFrom is Select for a group of which columns has those of Columns, each for all rows. It
// reports false if they do not suffice; then set is undefined.
func (s *Selector) SelectFrom(columns []columnchunk.Column, set *predicate.Bits) bool {
	s.columns, s.lacks = columns, false
	s.program.Select((*fromColumns)(s), set)
	return !s.lacks
}

// fromColumns implements predicate.Rows for SelectFrom.
type fromColumns Selector

// Keep implements predicate.Rows.
func (s *fromColumns) Keep(t *predicate.Term, set *predicate.Bits) {
	c := &s.columns[s.program.Column(t)]
	if c.Some != nil {
		set.AndBytes(c.Some)
	}
	switch {
	case c.Absent:
		*set = predicate.Bits{}
	case c.Type == 0:
		s.lacks = true
	case c.Kind == rowgroup.Heap && t.Test(c.Type).Kind != predicate.Always && t.Test(c.Type).Kind != predicate.Never:
		if !t.Test(c.Type).KeepPrefixes(&predicate.Prefixes{Common: c.Common, Words: c.Words}, c.Rows, set) {
			s.lacks = true
		}
	case !keepValues(t.Test(c.Type), values{c.Kind, c.Words, c.Booleans, c}, c.Rows, set):
		s.lacks = true
	}
}

// Capture says when Select keeps the values of a column of the kind rowgroup.Heap for Texts.
type Capture uint8

// The values of Capture.
const (
	CaptureNone Capture = iota
	CaptureRead         // if it reads them in all rows of the group
	CaptureAll          // and it reads all for an equality too, not only those of the right length
)

// SetCapture sets when the next calls of Select keep the values of a column, an index in
// Columns.
func (s *Selector) SetCapture(column int, how Capture) {
	if column < len(s.texts) {
		s.texts[column].how = how
	}
}

// Texts returns the values of a column, an index in Columns, that the last Select captured, or
// nil. They are valid until the next Select.
func (s *Selector) Texts(column int) columnchunk.Texts {
	if column < len(s.texts) && s.texts[column].done {
		return s.texts[column].texts
	}
	return nil
}

// captured are the values of a column.
type captured struct {
	how   Capture
	texts columnchunk.Texts
	done  bool
}

func (c *captured) begin(rows int) {
	n := rows * predicate.MaxPrefix
	c.texts = slices.Grow(c.texts[:0], n)[:n]
	clear(c.texts)
}

func (c *captured) add(data []byte, list []predicate.Text) {
	for i := range list {
		x := &list[i]
		copy(c.texts[x.Row*predicate.MaxPrefix:][:predicate.MaxPrefix], data[x.From:x.To])
	}
}
