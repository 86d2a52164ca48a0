package rowgroup

import (
	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// Visible adds to set the rows from to to-1 that are the newest version of their key with a
// sequence number of at most snap, tombstones excluded. Row from is the newest version of
// its key.
func (h *Head) Visible(from, to int, snap uint64, set *predicate.Bits) {
	if h.Uniform() && !h.versions && h.MaxSeq <= snap {
		if h.sectionOf.base != 0 {
			set.AddRange(from, to)
		}
		return
	}
	found := false
	for row := from; row < to; row++ {
		if row > from && found && h.Same(row) {
			continue
		}
		if found = h.Sequence(row) <= snap; found && !h.Tombstone(row) {
			set.Add(row)
		}
	}
}

// Uniform reports whether all rows have one shape, or all are tombstones.
func (h *Head) Uniform() bool { return h.sectionOf.step == 0 }

// Tombstones reports whether a row is a tombstone.
func (h *Head) Tombstones() bool {
	if h.Uniform() {
		return h.Tombstone(0)
	}
	for row := range h.rows {
		if h.Tombstone(row) {
			return true
		}
	}
	return false
}

// Sections returns the number of shapes, or of parts of the group with one shape each.
func (h *Head) Sections() int { return len(h.sections) }

// Section returns a number for the shape of a row, 0 for a tombstone.
func (h *Head) Section(row int) int { return int(h.sectionOf.at(h.data, row)) }

// SectionShape returns the shape of a section, from 1.
func (h *Head) SectionShape(section int) *codec.Shape {
	s := &h.sections[section-1]
	if s.shape == nil {
		return h.shapes.At(int(s.id))
	}
	return s.shape
}

// Head returns the head that r is attached to.
func (r *Row) Head() *Head { return r.h }

// Timestamps returns the Timestamps of all rows.
func (h *Head) Timestamps() predicate.Words { return h.times.words(h.data) }

func (v *vector) words(data []byte) predicate.Words {
	return predicate.Words{Data: data, Base: v.base, Mask: v.mask, Off: int(v.off), Step: int(v.step)}
}

// Column is the values of a property in all rows of a section, by their ordinals. In a Uniform
// group these are the rows of the group.
type Column struct {
	Kind     ColumnKind
	Words    predicate.Words // of the kind Words, and the codes of the kind Codes
	Booleans []byte          // of the kind Booleans, the least significant bits first
	h        *Head
	c        *column
}

// ColumnKind is how the values of a Column are stored.
type ColumnKind uint8

// The kinds of Column.
const (
	ByRow    ColumnKind = iota // only Row.At returns the values
	Words                      // numbers
	Booleans                   // bits
	Codes                      // codes of entries
	Heap                       // Strings or Binaries outside the head, whose lengths are known
)

// Column returns the column of property i in a Uniform group.
func (h *Head) Column(i int) Column { return h.SectionColumn(int(h.sectionOf.base), i) }

// SectionColumn returns the column of property i in a section, from 1. It has the kind Heap in a
// Uniform group alone.
func (h *Head) SectionColumn(section, i int) Column {
	s := &h.sections[section-1]
	if s.mode != modeColumns {
		return Column{}
	}
	c := Column{h: h, c: &s.columns[i]}
	switch c.c.encoding {
	case encodingWord:
		c.Kind, c.Words = Words, c.c.a.words(h.data)
	case encodingBits:
		c.Kind, c.Booleans = Booleans, h.data[c.c.a.off:][:(s.rows+7)/8]
	case encodingDict:
		c.Kind, c.Words = Codes, c.c.a.words(h.data)
	case encodingHeap, encodingHeapLast:
		if len(h.ValueBlocks) == 0 && h.Uniform() {
			c.Kind = Heap
		}
	}
	return c
}

// Entries returns the number of entries of a column of the kind Codes.
func (c *Column) Entries() int { return int(c.c.bytes-c.c.dict) / 2 }

// Entry returns an entry, which a code is the index of.
func (c *Column) Entry(code int) []byte { return c.c.entry(c.h.data, code) }

// KeepLength removes from set the rows whose value in a column of the kind Heap has not n
// bytes. It does not read the values.
func (c *Column) KeepLength(n int, set *predicate.Bits) {
	h := c.h
	var none vector // of zeros
	to, from, before := c.c.a, none, none
	if c.c.prev >= 0 {
		from = h.sections[h.sectionOf.base-1].columns[c.c.prev].a
	}
	if c.c.encoding == encodingHeapLast {
		before = from
		to, from = h.heapOffsets, h.heapOffsets
		to.off += to.step
	}
	for i := 0; 64*i < h.rows; i++ {
		if set[i] == 0 {
			continue
		}
		var other uint64
		for j := range min(h.rows-64*i, 64) {
			row := 64*i + j
			x := to.at(h.data, row) - from.at(h.data, row) - before.at(h.data, row) - uint64(n)
			// Without a branch: whether a length matches is hard to predict.
			other |= (x | -x) >> 63 << (j & 63)
		}
		set[i] &^= other
	}
}

// Texts returns the values of a column of the kind Heap in the rows of set that are in the
// same heap unit as row first and not before it: the bytes of the unit, and where each value
// is in them. next is the first row of set after the unit, -1 if there is none or the unit
// cannot be read, as Err then says. The list has the memory of dst, and the bytes are valid
// until r moves.
func (r *Row) Texts(c *Column, set *predicate.Bits, first int, dst []predicate.Text) (data []byte, list []predicate.Text, next int) {
	h := r.h
	r.Set(first)
	if r.LoadHeap() != nil {
		return nil, dst[:0], -1
	}
	base, end := 0, h.rows
	if u := r.heapUnit; u != nil {
		base, end, data = u.base, u.End, r.raw
	}
	list = dst[:0]
	var before *vector // the end of the value before
	if c.c.prev >= 0 {
		before = &r.columns[c.c.prev].a
	}
	for next = first; next >= 0 && next < end; next = set.After(next) {
		start := int(h.heapOffsets.at(h.data, next)) - base
		x := predicate.Text{Row: next, From: start}
		if before != nil {
			x.From += int(before.at(h.data, next))
		}
		if c.c.encoding == encodingHeap {
			x.To = start + int(c.c.a.at(h.data, next))
		} else {
			x.To = int(h.heapOffsets.at(h.data, next+1)) - base
		}
		list = append(list, x)
	}
	return data, list, next
}
