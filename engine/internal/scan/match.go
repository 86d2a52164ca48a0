package scan

import (
	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// matcher holds rows against a filter. Names are resolved once for each shape.
type matcher struct {
	program  *predicate.Program // nil keeps all
	bindings map[*codec.Shape]*predicate.Binding
	shape    *codec.Shape
	last     *predicate.Binding // of shape
}

// maxBindings bounds what a query over entities of ever new shapes remembers.
const maxBindings = 64

// init prepares for rows whose keys lie in e's ranges.
func (m *matcher) init(e *filter.Expr) { m.program = predicate.Residual(e) }

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
		if m.bindings == nil || len(m.bindings) == maxBindings {
			m.bindings = make(map[*codec.Shape]*predicate.Binding)
		}
		b = m.program.Bind(shape.Index)
		m.bindings[shape] = b
	}
	m.shape, m.last = shape, b
}
