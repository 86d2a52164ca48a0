package scan

import (
	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// rowSize measures rows for store.Query.BudgetBytes. It looks at a shape once, not for each
// row.
type rowSize struct {
	shape    *codec.Shape
	fixed    int   // bytes of a row without its Strings and Binaries
	variable []int // the returned Strings and Binaries, as indexes in shape

	// Memory of Cursor.fit. values points into blocks, so it ends with the query.
	bytes  []int
	values [][]byte
}

// rowOverhead is the least size of a row.
const rowOverhead = 8

// of returns the size of row, whose values are loaded. selected has an element for each
// property of its shape; nil selects all.
func (s *rowSize) of(row codec.ShapedRow, selected []bool) int {
	s.set(row.Shape(), selected)
	n := s.fixed
	for _, i := range s.variable {
		_, v := row.At(i)
		n += len(v.Bytes())
	}
	return n
}

// set prepares s for rows of a shape.
func (s *rowSize) set(shape *codec.Shape, selected []bool) {
	if shape == s.shape {
		return
	}
	s.shape, s.fixed, s.variable = shape, rowOverhead, s.variable[:0]
	for i := range shape.Len() {
		if selected != nil && !selected[i] {
			continue
		}
		s.fixed += len(shape.Name(i)) + 8
		switch shape.Type(i) {
		case edm.TypeString, edm.TypeBinary:
			s.variable = append(s.variable, i)
		}
	}
}

// sizeOf returns the size of row, which load has loaded.
func (c *Cursor) sizeOf(row codec.ShapedRow) int {
	if c.q.Select == nil {
		return c.size.of(row, nil)
	}
	return c.size.of(row, c.project.selected)
}
