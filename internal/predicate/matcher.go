package predicate

import "github.com/tablerock-db/tablerock/edm"

// Shape is the names of the properties of rows. Shapes are compared as keys of a map.
type Shape interface {
	// Index returns the index of the property called name, as for Row.At, or a negative
	// number if the rows do not have it.
	Index(name string) int
}

// Matcher evaluates a Program for rows. It resolves names once for each shape. It is not
// safe for concurrent use.
type Matcher struct {
	program  *Program
	bindings map[Shape]*Binding // nil until there is a second shape
	unused   []*Binding         // to bind to other shapes
	shape    Shape
	last     *Binding // of shape
}

// maxBindings limits the bindings of a Matcher of rows of many shapes.
const maxBindings = 64

// NewMatcher returns a Matcher for a Program.
func NewMatcher(p *Program) *Matcher { return &Matcher{program: p} }

// Match reports whether row, which has a shape, satisfies the Program.
func (m *Matcher) Match(shape Shape, row edm.Row) bool { return m.Bind(shape).Match(row) }

// Bind returns the Program bound to rows of a shape, valid until the next call.
func (m *Matcher) Bind(shape Shape) *Binding {
	if shape == m.shape {
		return m.last
	}
	b := m.bindings[shape]
	if b == nil {
		if m.bindings == nil && m.last != nil {
			m.bindings = map[Shape]*Binding{m.shape: m.last}
		}
		if len(m.bindings) == maxBindings {
			for _, old := range m.bindings {
				m.unused = append(m.unused, old)
			}
			clear(m.bindings)
		}
		if n := len(m.unused); n > 0 {
			b, m.unused = m.unused[n-1], m.unused[:n-1]
			b.rebind(shape.Index)
		} else {
			b = m.program.Bind(shape.Index)
		}
		if m.bindings != nil {
			m.bindings[shape] = b
		}
	}
	m.shape, m.last = shape, b
	return b
}
