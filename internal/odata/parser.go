package odata

import (
	"strings"

	"github.com/tablerock-db/tablerock/edm"
)

// Parser parses entities like the function ParseEntity, but reuses its memory. An
// entity is valid until Reset. It shares the memory of its JSON, which must not
// change until then. Names and keys stay valid after Reset. The zero Parser is ready
// for use. A Parser is not safe for concurrent use.
type Parser struct{ p parser }

// ParseEntity parses one entity from its JSON. Every error is an *Error.
func (p *Parser) ParseEntity(src []byte, o ParseOptions) (edm.Entity, error) {
	var e edm.Entity
	err := p.ParseInto(&e, src, o)
	return e, err
}

// ParseInto is ParseEntity into the Properties and, without IgnoreKeys, the Key of e. The
// other fields of e stay as they are.
func (p *Parser) ParseInto(e *edm.Entity, src []byte, o ParseOptions) error {
	p.p.memory.reuse = true
	return p.p.parse(e, src, o)
}

// Reset invalidates all entities parsed so far and reuses their memory.
func (p *Parser) Reset() {
	const keepProperties, keepBytes = 2048, 64 << 10 // release larger slices
	m := &p.p.memory
	clear(m.properties)
	m.properties, m.bytes = m.properties[:0], m.bytes[:0]
	if cap(m.properties) > keepProperties {
		m.properties = nil
	}
	if cap(m.bytes) > keepBytes {
		m.bytes = nil
	}
}

// memory allocates the memory of entities from its slices. A new slice replaces a
// full one; the entities keep the old one alive.
type memory struct {
	reuse      bool // entities share the slices
	properties edm.Properties
	bytes      []byte
	keys       strings.Builder
}

// reserve ensures capacity for the properties of an entity and for n bytes.
func (m *memory) reserve(properties, n int) {
	if cap(m.properties)-len(m.properties) < properties {
		m.properties = make(edm.Properties, 0, m.grown(cap(m.properties), properties))
	}
	if cap(m.bytes)-len(m.bytes) < n {
		m.bytes = make([]byte, 0, m.grown(cap(m.bytes), n))
	}
}

// grown returns the capacity of the slice that replaces one of capacity before and
// receives n elements.
func (m *memory) grown(before, n int) int {
	if !m.reuse {
		return n
	}
	return max(2*before, n)
}

// text returns b as a string. Strings share chunks of memory that are never reused.
func (m *memory) text(b []byte) string {
	const keyBytes = 2048
	if !m.reuse || len(b) > keyBytes/4 {
		return string(b)
	}
	if m.keys.Cap()-m.keys.Len() < len(b) {
		m.keys = strings.Builder{}
		m.keys.Grow(keyBytes)
	}
	from := m.keys.Len()
	m.keys.Write(b)
	return m.keys.String()[from:]
}
