package odata

import (
	"bytes"
	"strconv"

	"github.com/tablerock-db/tablerock/edm"
)

// ParseExact is ParseValue, but refuses a DateTime that has other digits than zeros behind the
// seventh of its fraction, which ParseValue cuts.
func ParseExact(t edm.Type, text []byte) (edm.Value, error) {
	v, err := ParseValue(t, text)
	if err == nil {
		err = checkDigits(t, text)
	}
	return v, err
}

// checkDigits returns an error if the value of type t that text is has lost digits of a time.
func checkDigits(t edm.Type, text []byte) error {
	const before, kept = len("YYYY-MM-DDThh:mm:ss."), 7
	if t != edm.TypeDateTime || len(text) <= before+kept {
		return nil
	}
	fraction := text[before:]
	if end := bytes.IndexFunc(fraction, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		fraction = fraction[:end]
	}
	if len(bytes.TrimRight(fraction, "0")) > kept {
		return &textError{t: t, got: quote(text), digits: true}
	}
	return nil
}

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
