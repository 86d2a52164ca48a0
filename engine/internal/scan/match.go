package scan

import (
	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// matcher evaluates a filter for rows. It resolves names once for each shape.
type matcher struct {
	program  *predicate.Program // nil matches all
	bindings map[*codec.Shape]*predicate.Binding
	unused   []*predicate.Binding // to bind to other shapes
	shape    *codec.Shape
	last     *predicate.Binding // of shape
}

// maxBindings limits the bindings of a query over entities of many shapes.
const maxBindings = 64

// init prepares for rows whose keys are in the ranges of e.
func (m *matcher) init(e *filter.Expr) { m.program = predicate.Residual(e) }

// forBounds returns the part of the condition that the bounds of groups can exclude, nil
// if there is none.
func (m *matcher) forBounds() *predicate.Program {
	if m.program == nil {
		return nil
	}
	return m.program.ForBounds()
}

func (m *matcher) matches(row codec.ShapedRow) bool {
	if m.program == nil {
		return true
	}
	if shape := row.Shape(); shape != m.shape || m.last == nil {
		m.bind(shape)
	}
	return m.last.Match(row)
}

func (m *matcher) bind(shape *codec.Shape) {
	b := m.bindings[shape]
	if b == nil {
		if m.bindings == nil {
			m.bindings = make(map[*codec.Shape]*predicate.Binding)
		}
		if len(m.bindings) == maxBindings {
			for _, old := range m.bindings {
				m.unused = append(m.unused, old)
			}
			clear(m.bindings)
		}
		if n := len(m.unused); n > 0 {
			b, m.unused = m.unused[n-1], m.unused[:n-1]
			b.Rebind(shape.Index)
		} else {
			b = m.program.Bind(shape.Index)
		}
		m.bindings[shape] = b
	}
	m.shape, m.last = shape, b
}
