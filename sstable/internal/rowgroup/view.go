package rowgroup

import "github.com/tablerock-db/tablerock/internal/predicate"

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

// Sections returns the number of shapes, or of parts of the group with one shape each.
func (h *Head) Sections() int { return len(h.sections) }

// Section returns a number for the shape of a row, 0 for a tombstone.
func (h *Head) Section(row int) int { return int(h.sectionOf.at(h.data, row)) }

// Head returns the head that r is attached to.
func (r *Row) Head() *Head { return r.h }

// Timestamps returns the Timestamps of all rows.
func (h *Head) Timestamps() predicate.Words { return h.times.words(h.data) }

func (v *vector) words(data []byte) predicate.Words {
	return predicate.Words{Data: data, Base: v.base, Mask: v.mask, Off: int(v.off), Step: int(v.step)}
}

// Column is the values of a property in all rows of a Uniform group.
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

// Column returns the column of property i.
func (h *Head) Column(i int) Column {
	s := &h.sections[h.sectionOf.base-1]
	if s.mode != modeColumns {
		return Column{}
	}
	c := Column{h: h, c: &s.columns[i]}
	switch c.c.encoding {
	case encodingWord:
		c.Kind, c.Words = Words, c.c.a.words(h.data)
	case encodingBits:
		c.Kind, c.Booleans = Booleans, h.data[c.c.bytes:][:(h.rows+7)/8]
	case encodingDict:
		c.Kind, c.Words = Codes, c.c.a.words(h.data)
	case encodingHeap, encodingHeapLast:
		if len(h.ValueBlocks) == 0 {
			c.Kind = Heap
		}
	}
	return c
}

// Entries returns the number of entries of a column of the kind Codes.
func (c *Column) Entries() int { return int(c.c.bytes-c.c.dict) / 2 }

// Entry returns an entry, which a code is the index of.
func (c *Column) Entry(code int) []byte { return c.c.entry(c.h.data, code) }

// Len returns the length of a value of a column of the kind Heap.
func (c *Column) Len(row int) int {
	var from, to uint64
	if c.c.prev >= 0 {
		from = c.h.sections[c.h.sectionOf.base-1].columns[c.c.prev].a.at(c.h.data, row)
	}
	if c.c.encoding == encodingHeap {
		to = c.c.a.at(c.h.data, row)
	} else {
		to = c.h.heapOffsets.at(c.h.data, row+1) - c.h.heapOffsets.at(c.h.data, row)
	}
	return int(to - from)
}
