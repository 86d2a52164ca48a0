package edm

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonMember is a name in a JSON object, with the value and the annotation that
// have this name.
type jsonMember struct {
	name     string
	value    any // a string, bool or json.Number, nil if null or absent
	found    bool
	typ      Type // the annotated type, 0 if there is none or it is unknown
	typed    bool
	typeText string
}

// jsonObject is the JSON object of an entity.
type jsonObject struct {
	members []jsonMember
	index   map[string]int
}

// parseObject parses the JSON object of an entity. Its error is a *jsonError.
func parseObject(data []byte) (*jsonObject, error) {
	if err := checkText(data); err != nil {
		return nil, &jsonError{"", err}
	}
	o := &jsonObject{index: map[string]int{}}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil {
		return nil, &jsonError{"", err}
	} else if t != json.Delim('{') {
		return nil, &jsonError{"", errors.New("want an object")}
	}
	for dec.More() {
		if err := o.parseMember(dec); err != nil {
			return nil, err
		}
	}
	if _, err := dec.Token(); err != nil { // the end of the object
		return nil, &jsonError{"", err}
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, &jsonError{"", errors.New("text after the object")}
	}
	return o, nil
}

// checkText refuses text that package json would replace by U+FFFD: bytes that are
// not UTF-8, and escapes of half a surrogate pair.
func checkText(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("text that is not UTF-8")
	}
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		r := escapedUnit(data[i:])
		switch {
		case !utf16.IsSurrogate(r):
			i++
		case utf16.DecodeRune(r, escapedUnit(data[min(i+6, len(data)):])) == utf8.RuneError:
			return errors.New("half of a surrogate pair")
		default:
			i += 11
		}
	}
	return nil
}

// escapedUnit returns the code unit of the escape \uXXXX that b begins with, or 0.
func escapedUnit(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// parseMember parses the next member.
func (o *jsonObject) parseMember(dec *json.Decoder) error {
	t, err := dec.Token()
	if err != nil {
		return &jsonError{"", err}
	}
	name, isType := strings.CutSuffix(t.(string), typeSuffix)
	isType = isType && name != ""
	if !isType {
		name = t.(string)
	}
	i, ok := o.index[name]
	if !ok {
		i = len(o.members)
		o.index[name] = i
		o.members = append(o.members, jsonMember{name: name})
	}
	m := &o.members[i]
	if isType && m.typed || !isType && m.found {
		return m.failf("given more than once")
	}
	if isType {
		return m.parseType(dec)
	}
	return m.parseValue(dec)
}

// parseType parses an annotation. An unknown type is an error only if m has a
// value.
func (m *jsonMember) parseType(dec *json.Decoder) error {
	t, err := dec.Token()
	if err != nil {
		return &jsonError{m.name, err}
	}
	text, ok := t.(string)
	if !ok {
		return m.failf(`the type of a property is a string such as "Edm.Int64"`)
	}
	m.typed, m.typeText = true, text
	m.typ, _ = parseType(text)
	return nil
}

// parseValue parses the value of m.
func (m *jsonMember) parseValue(dec *json.Decoder) error {
	m.found = true
	if isMetadata(m.name) {
		if err := dec.Decode(new(json.RawMessage)); err != nil {
			return &jsonError{m.name, err}
		}
		return nil
	}
	t, err := dec.Token()
	if err != nil {
		return &jsonError{m.name, err}
	}
	if _, ok := t.(json.Delim); ok {
		return m.failf("want a string, a number, true, false or null")
	}
	m.value = t
	return nil
}

// isMetadata reports whether a member is not a property, such as odata.etag or
// Name@odata.navigationLink.
func isMetadata(name string) bool {
	if _, after, ok := strings.Cut(name, "@"); ok {
		name = after
	}
	return strings.HasPrefix(name, "odata.")
}

// key returns the text of a key, which must be present.
func (o *jsonObject) key(name string) (string, error) {
	i, ok := o.index[name]
	if !ok || o.members[i].value == nil {
		return "", &jsonError{"", errors.New(name + " is missing")}
	}
	m := &o.members[i]
	text, ok := m.value.(string)
	if !ok || m.typed && m.typ != TypeString {
		return "", m.failf("a key is a string, without a type or of type Edm.String")
	}
	return text, nil
}

// timestamp returns the Timestamp, 0 if it is absent.
func (o *jsonObject) timestamp() (Ticks, error) {
	i, ok := o.index[TimestampName]
	if !ok || o.members[i].value == nil {
		return 0, nil
	}
	m := &o.members[i]
	text, ok := m.value.(string)
	if !ok || m.typed && m.typ != TypeDateTime {
		return 0, m.failf("want %s", jsonForms[TypeDateTime])
	}
	v, err := m.parseAs(TypeDateTime, text)
	return Ticks(v.word), err
}

// properties returns the properties, in the order of their first member.
func (o *jsonObject) properties() (Properties, error) {
	var p Properties
	for i := range o.members {
		m := &o.members[i]
		if m.value == nil || checkReserved(m.name) != nil {
			continue
		}
		v, err := m.property()
		if err != nil {
			return nil, err
		}
		p = append(p, Property{m.name, v})
	}
	return p, nil
}
