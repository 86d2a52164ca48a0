package odata

import (
	"strings"

	"github.com/tablerock-db/tablerock/edm"
)

// Parser reads entities as ParseEntity does, into memory that it uses again.
// What it returns is valid until Reset and shares the JSON it was read from,
// which must not change until then; names and keys are valid for ever. The zero
// Parser is ready for use, by one goroutine at a time.
type Parser struct{ p parser }

// ParseEntity reads one entity from its JSON. Any failure is an *Error.
func (p *Parser) ParseEntity(src []byte, o ParseOptions) (edm.Entity, error) {
	p.p.memory.again = true
	return p.p.parse(src, o)
}

// Reset takes back the memory of all entities read so far.
func (p *Parser) Reset() {
	const keepProperties, keepBytes = 2048, 64 << 10 // more is let go of
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

// memory is what entities are made of: pieces of its slices. A new slice takes
// the place of a full one, which stays with its pieces.
type memory struct {
	again      bool // for more than one entity
	properties edm.Properties
	bytes      []byte
	keys       strings.Builder
}

// reserve makes room for the properties of an entity, and for n bytes.
func (m *memory) reserve(properties, n int) {
	if cap(m.properties)-len(m.properties) < properties {
		m.properties = make(edm.Properties, 0, m.grown(cap(m.properties), properties))
	}
	if cap(m.bytes)-len(m.bytes) < n {
		m.bytes = make([]byte, 0, m.grown(cap(m.bytes), n))
	}
}

// grown returns how large a slice becomes that has to take n more.
func (m *memory) grown(before, n int) int {
	if !m.again {
		return n
	}
	return max(2*before, n)
}

// text returns b as a text. Its memory is never used again, but serves several
// texts.
func (m *memory) text(b []byte) string {
	const keyBytes = 2048
	if !m.again || len(b) > keyBytes/4 {
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
