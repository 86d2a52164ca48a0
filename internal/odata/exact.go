package odata

import (
	"strconv"

	"github.com/tablerock-db/tablerock/edm"
)

// checkExact returns an error if m is an integer without an annotation and v, its Double, is
// another number.
func (p *parser) checkExact(m *member, v edm.Value) error {
	if m.typed || m.value.kind != tokenInteger || v.Type() != edm.TypeDouble {
		return nil
	}
	f, _ := v.Double()
	text := p.src[m.value.start:m.value.end]
	nearest := strconv.FormatFloat(f, 'f', 0, 64) // all digits
	if nearest == string(text) {
		return nil
	}
	name := strconv.Quote(shorten([]byte(m.name)) + annotation)
	cure := "add " + name + `: "Edm.Int64"`
	if _, ok := parseInteger(text); !ok {
		cure = "write it as a string, or add " + name + `: "Edm.Double" to round it`
	}
	return p.newError(m, shorten(text)+" without a type is an Edm.Double, which is only near it: "+shorten([]byte(nearest))+"; "+cure)
}
