package edm

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

const (
	typeSuffix   = "@odata.type" // of members that give the type of a property
	textInfinity = "Infinity"
)

// MarshalJSON returns e as the JSON object of the Table protocol: PartitionKey,
// RowKey, Timestamp unless it is 0, then the properties as
// [Properties.MarshalJSON] writes them. It fails with an *Error if the key, the
// Timestamp or a property is invalid by itself.
func (e Entity) MarshalJSON() ([]byte, error) {
	if err := CheckKey(e.Key); err != nil {
		return nil, err
	}
	dst := appendMember([]byte{'{'}, PartitionKeyName, e.Key.Partition)
	dst = appendMember(dst, RowKeyName, e.Key.Row)
	if !e.Timestamp.Valid() {
		return nil, rangeError(TimestampName, int64(e.Timestamp))
	}
	if e.Timestamp != 0 {
		dst = appendMember(dst, TimestampName, e.Timestamp.String())
	}
	return appendProperties(dst, e.Properties)
}

// MarshalJSON returns p as a JSON object in the form of the Table protocol. A
// member "Name@odata.type" gives the type of an Int64, DateTime, Guid, Binary, NaN
// or infinity before the value, which is a string. An Int32 is an integer, any
// other Double a number with a decimal point or an exponent. A null is omitted,
// and the bits of a NaN are lost. MarshalJSON fails with the *Error of
// [CheckProperties].
func (p Properties) MarshalJSON() ([]byte, error) { return appendProperties([]byte{'{'}, p) }

// appendProperties appends p to an object, and the end of the object.
func appendProperties(dst []byte, p Properties) ([]byte, error) {
	if err := CheckProperties(p); err != nil {
		return nil, err
	}
	for i := range p {
		v := p[i].Value
		if v.IsNull() {
			continue
		}
		if text, plain := jsonNumber(v); plain {
			dst = append(append(appendName(dst, p[i].Name), ':'), text...)
			continue
		}
		if v.Type() != TypeString {
			dst = appendMember(dst, p[i].Name+typeSuffix, v.Type().String())
		}
		dst = appendMember(dst, p[i].Name, jsonText(v))
	}
	return append(dst, '}'), nil
}

// jsonNumber returns the JSON of a value whose type the JSON shows without an
// annotation, strings excepted.
func jsonNumber(v Value) (text string, plain bool) {
	switch v.Type() {
	case TypeBoolean, TypeInt32:
		return v.String(), true
	case TypeDouble:
		if f := math.Float64frombits(v.word); math.IsNaN(f) || math.IsInf(f, 0) {
			return "", false
		}
		text = v.String()
		if !bytes.ContainsAny([]byte(text), ".e") {
			text += ".0"
		}
		return text, true
	}
	return "", false
}

// jsonText returns the text of a value that JSON holds as a string.
func jsonText(v Value) string {
	switch f, _ := v.Double(); {
	case math.IsInf(f, 1):
		return textInfinity
	case math.IsInf(f, -1):
		return "-" + textInfinity
	}
	return v.String()
}

func appendMember(dst []byte, name, text string) []byte {
	return appendString(append(appendName(dst, name), ':'), text)
}

// appendName appends the name of a member, after a comma if it is not the first.
func appendName(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return appendString(dst, name)
}

// appendString appends s, which is valid UTF-8, as a JSON string.
func appendString(dst []byte, s string) []byte {
	b := bytes.NewBuffer(dst)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // every string has a JSON form
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// UnmarshalJSON sets e to the entity of a JSON object of the Table protocol. The
// object must have both keys. See [Properties.UnmarshalJSON] for the other
// members. UnmarshalJSON does not check the rules of the data model; call
// [CheckEntity]. errors.Is finds ErrInvalid in each of its errors.
func (e *Entity) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	o, err := parseObject(data)
	if err != nil {
		return err
	}
	var got Entity
	if got.Key.Partition, err = o.key(PartitionKeyName); err != nil {
		return err
	}
	if got.Key.Row, err = o.key(RowKeyName); err != nil {
		return err
	}
	if got.Timestamp, err = o.timestamp(); err != nil {
		return err
	}
	if got.Properties, err = o.properties(); err != nil {
		return err
	}
	*e = got
	return nil
}

// UnmarshalJSON sets p to the properties in a JSON object of the Table protocol,
// in their order. A member "Name@odata.type", before or after the value, gives
// the type. An annotated string can hold a number or a Boolean. Without an
// annotation, a string is a String, an integer an Int32, or a Double if it does
// not fit, any other number a Double. UnmarshalJSON ignores null, metadata such as
// "odata.etag", PartitionKey, RowKey and Timestamp. It does not check the rules of
// the data model; call [CheckProperties]. errors.Is finds ErrInvalid in each of
// its errors.
func (p *Properties) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	o, err := parseObject(data)
	if err != nil {
		return err
	}
	got, err := o.properties()
	if err == nil {
		*p = got
	}
	return err
}

// jsonError is an error in the JSON of an entity.
type jsonError struct {
	member string // "" for the object as a whole
	err    error
}

func (e *jsonError) Error() string {
	if e.member == "" {
		return "JSON of an entity: " + e.err.Error()
	}
	return fmt.Sprintf("member %s: %v", quote(e.member), e.err)
}

func (e *jsonError) Unwrap() error { return e.err }

func (e *jsonError) Is(target error) bool { return target == ErrInvalid }

// property converts the JSON value of m.
func (m *jsonMember) property() (Value, error) {
	if m.typed && m.typ == 0 {
		return Value{}, m.failf("unknown type %s", quote(m.typeText))
	}
	switch v := m.value.(type) {
	case string:
		if !m.typed {
			return String(v), nil
		}
		return m.parseAs(m.typ, v)
	case bool:
		if !m.typed || m.typ == TypeBoolean {
			return Boolean(v), nil
		}
	case json.Number:
		return m.parseNumber(v.String())
	}
	return Value{}, m.failf("want %s", jsonForms[m.typ])
}

// jsonForms names what the JSON of a type holds.
var jsonForms = [...]string{
	TypeString:   "a string",
	TypeBinary:   "a string of base64 with padding",
	TypeBoolean:  "true or false",
	TypeInt32:    "a whole number from -2147483648 to 2147483647",
	TypeInt64:    "a whole number of 64 bits, best as a string",
	TypeDouble:   `a number, "NaN", "Infinity" or "-Infinity"`,
	TypeDateTime: "a string YYYY-MM-DDThh:mm:ss, a fraction or none, then Z, an offset as +hh:mm, or nothing for UTC",
	TypeGuid:     "a string xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
}

func (m *jsonMember) failf(format string, args ...any) error {
	return &jsonError{m.name, fmt.Errorf(format, args...)}
}

// parseNumber converts the text of a JSON number.
func (m *jsonMember) parseNumber(text string) (Value, error) {
	whole := !bytes.ContainsAny([]byte(text), ".eE")
	switch {
	case !m.typed && whole:
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			return Int32(int32(n)), nil
		}
		return m.parseAs(TypeDouble, text)
	case !m.typed, m.typ == TypeDouble:
		return m.parseAs(TypeDouble, text)
	case whole && (m.typ == TypeInt32 || m.typ == TypeInt64):
		return m.parseAs(m.typ, text)
	}
	return Value{}, m.failf("want %s", jsonForms[m.typ])
}

// parseAs converts the text of a value of type t.
func (m *jsonMember) parseAs(t Type, text string) (Value, error) {
	v, err := parseText(t, text)
	if errors.Is(err, ErrInvalid) { // a DateTime out of range
		return Value{}, &jsonError{m.name, err}
	}
	if err != nil {
		return Value{}, m.failf("%s: want %s", quote(text), jsonForms[t])
	}
	return v, nil
}

var errText = errors.New("invalid text")

// parseText converts the text of a value of type t.
func parseText(t Type, text string) (Value, error) {
	switch t {
	case TypeString:
		return String(text), nil
	case TypeBinary:
		b, err := base64.StdEncoding.Strict().DecodeString(text)
		return Binary(b), err
	case TypeBoolean:
		return parseBool(text)
	case TypeInt32, TypeInt64:
		if text != "" && text[0] == '+' {
			return Value{}, errText
		}
		bits := 64
		if t == TypeInt32 {
			bits = 32
		}
		n, err := strconv.ParseInt(text, 10, bits)
		return Fixed(t, uint64(n)), err
	case TypeDouble:
		f, err := parseDouble(text)
		return Double(f), err
	case TypeDateTime:
		ticks, err := ParseTicks(text)
		return DateTime(ticks), err
	case TypeGuid:
		g, err := ParseGUID(text)
		return Guid(g), err
	}
	return Value{}, errText
}

// parseBool reads true and false in any case of ASCII.
func parseBool(text string) (Value, error) {
	switch string(bytes.ToLower([]byte(text))) {
	case "true":
		return Boolean(true), nil
	case "false":
		return Boolean(false), nil
	}
	return Value{}, errText
}

// parseDouble reads a decimal number, NaN, Infinity or -Infinity.
func parseDouble(text string) (float64, error) {
	switch text {
	case "NaN":
		return math.NaN(), nil
	case textInfinity:
		return math.Inf(1), nil
	case "-" + textInfinity:
		return math.Inf(-1), nil
	}
	for i := range len(text) { // ParseFloat reads hexadecimal, underscores and other words too
		if c := text[i]; !isDigit(c) && c != '.' && c != '-' && c != '+' && c|0x20 != 'e' {
			return 0, errText
		}
	}
	return strconv.ParseFloat(text, 64)
}
