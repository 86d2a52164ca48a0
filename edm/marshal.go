package edm

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"
)

// Marshal returns the entity of v, a struct or a pointer to one. Each exported
// field is a property, except as its tag says:
//
//	Total   float64        `table:"OrderTotal"`      // the name of the property; without one, that of the field
//	Note    string         `table:",omitempty"`      // no property if the field is zero or an empty slice
//	Cache   *Cache         `table:"-"`               // no property
//	Region  string         `table:",pk"`             // the PartitionKey
//	ID      string         `table:",rk"`             // the RowKey
//	Changed time.Time      `table:",timestamp"`      // the Timestamp, or edm.Ticks
//	ETag    edm.ETag       `table:",etag"`           // the ETag; Marshal ignores it
//	Others  edm.Properties `table:",rest"`           // the properties without a field
//
// Fields called PartitionKey, RowKey and Timestamp need no tag. A struct that
// embeds [Key] has both keys.
//
// The type of the field, or the basic type that it is defined by, gives the type of
// the property:
//
//	bool                               Edm.Boolean
//	int8, int16, int32, uint8, uint16  Edm.Int32
//	int, int64, uint, uint32, uint64   Edm.Int64
//	float32, float64                   Edm.Double
//	string                             Edm.String
//	[]byte, [n]byte                    Edm.Binary
//	[16]byte, such as a UUID           Edm.Guid
//	time.Time, edm.Ticks               Edm.DateTime
//	edm.Value                          the type of the value
//
// A type that implements encoding.TextMarshaler and encoding.TextUnmarshaler, or
// whose pointer does, is an Edm.String, unless it is a time.Time or a [16]byte. A key
// is a string or such a type, also for a [16]byte. A field can be a pointer to any of
// these types. A nil pointer, a nil []byte and a null Value give no property.
//
// The fields of an embedded struct are fields of the struct that embeds it. If two
// have one name, a field hides a field that is embedded deeper, and at the same
// depth one without a name in its tag. Two fields of which neither hides the other
// are an error. A nil embedded pointer gives no properties.
//
// A time is truncated to 100 ns. The zero time.Time is before the first
// Edm.DateTime and therefore an error, unless omitempty omits it.
//
// The entity shares the memory of the []byte, Value and Properties of v. Marshal
// checks what its conversions need, and the names of fields; a store checks the
// other rules, as [CheckEntity] does. The error of a field is a [*FieldError].
func Marshal(v any) (Entity, error) {
	root := reflect.ValueOf(v)
	for range 2 { // generic code has the address of a pointer
		if root.Kind() == reflect.Pointer {
			root = root.Elem()
		}
	}
	if root.Kind() != reflect.Struct {
		return Entity{}, fmt.Errorf("marshal %T: want a struct or a pointer to one, not nil", v)
	}
	s := structTypeOf(reflect.TypeOf(v))
	if s.err != nil {
		return Entity{}, s.err
	}
	if s.partition == nil || s.row == nil {
		return Entity{}, fmt.Errorf("marshal %T: want a field with the tag `table:\",pk\"` and one with `table:\",rk\"`", v)
	}
	if s.addressable && !root.CanAddr() {
		addressable := reflect.New(root.Type()).Elem()
		addressable.Set(root)
		root = addressable
	}
	var e Entity
	var err error
	if e.Key.Partition, err = s.partition.marshalKey(root); err != nil {
		return Entity{}, err
	}
	if e.Key.Row, err = s.row.marshalKey(root); err != nil {
		return Entity{}, err
	}
	if e.Timestamp, err = s.marshalTimestamp(root); err != nil {
		return Entity{}, err
	}
	if e.Properties, err = s.marshalProperties(root); err != nil {
		return Entity{}, err
	}
	return e, nil
}

func (s *structType) marshalProperties(root reflect.Value) (Properties, error) {
	var rest Properties
	if s.rest != nil {
		if v, ok := s.rest.of(root); ok {
			rest = v.Interface().(Properties)
		}
	}
	if len(s.fields) == 0 {
		return slices.Clone(rest), nil
	}
	p := make(Properties, 0, len(s.fields)+len(rest))
	var texts []byte
	for i := range s.fields {
		f := &s.fields[i]
		v, ok := f.of(root)
		if !ok || f.omitEmpty && isEmpty(v) {
			continue
		}
		if f.convert == convertString {
			text := v.String()
			if cap(texts)-len(texts) < len(text) {
				texts = make([]byte, 0, max(len(text), s.texts))
			}
			start := len(texts)
			texts = append(texts, text...)
			p = append(p, Property{f.name, StringBytes(texts[start:len(texts):len(texts)])})
			continue
		}
		value, err := f.marshal(v)
		if err != nil {
			return nil, f.wrap(err)
		}
		if !value.IsNull() {
			p = append(p, Property{f.name, value})
		}
	}
	return append(p, rest...), nil
}

// of returns the field f of root. It returns false if f is in an embedded pointer
// that is nil.
func (f *field) of(root reflect.Value) (reflect.Value, bool) {
	if f.only >= 0 {
		return root.Field(f.only), true
	}
	return f.ofEmbedded(root)
}

func (f *field) ofEmbedded(root reflect.Value) (reflect.Value, bool) {
	v := root.Field(f.index[0])
	for _, i := range f.index[1:] {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return reflect.Value{}, false
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, true
}

func isEmpty(v reflect.Value) bool {
	if v.Kind() == reflect.Slice {
		return v.Len() == 0
	}
	if t, ok := reflect.TypeAssert[time.Time](v); ok {
		return t.IsZero()
	}
	return v.IsZero()
}

// marshal returns the value of v, which is the field or what it points to.
func (f *field) marshal(v reflect.Value) (Value, error) {
	switch f.convert {
	case convertBool:
		return Boolean(v.Bool()), nil
	case convertInt:
		return Fixed(f.edm, uint64(v.Int())), nil
	case convertUint:
		n := v.Uint()
		if n > math.MaxInt64 {
			return Value{}, rangeError(f.name, n)
		}
		return Fixed(f.edm, n), nil
	case convertFloat:
		return Double(v.Float()), nil
	case convertString:
		return String(v.String()), nil
	case convertBytes:
		if v.IsNil() {
			return Value{}, nil
		}
		return Binary(v.Bytes()), nil
	case convertArray:
		return ofBytes(f.edm, append([]byte(nil), v.Bytes()...)), nil
	case convertTime, convertTicks:
		t, err := f.marshalTime(v)
		return DateTime(t), err
	case convertValue:
		value, _ := reflect.TypeAssert[Value](v)
		return value, nil
	case convertText:
		text, err := v.Addr().Interface().(encoding.TextMarshaler).MarshalText()
		return StringBytes(bytes.Clone(text)), err // v can still use the memory
	case convertPointer:
		if v.IsNil() {
			return Value{}, nil
		}
		return f.pointed.marshal(v.Elem())
	}
	return Value{}, errConversion
}

// errConversion is a bug: compile accepts no such field.
var errConversion = errors.New("no conversion")

func rangeError(name string, got any) error {
	return &Error{RuleRange, name, 0, fmt.Sprint(got)}
}

func (f *field) marshalTime(v reflect.Value) (Ticks, error) {
	if f.convert == convertTicks {
		t := Ticks(v.Int())
		if !t.Valid() {
			return 0, rangeError(f.name, int64(t))
		}
		return t, nil
	}
	tm, _ := reflect.TypeAssert[time.Time](v)
	t := TicksOf(tm)
	switch {
	case t.Valid():
		return t, nil
	case tm.IsZero():
		return 0, fmt.Errorf("%w; the tag omitempty omits the zero time", rangeError(f.name, tm))
	}
	return 0, rangeError(f.name, tm)
}

// marshalTimestamp returns the Timestamp, 0 if the struct has none.
func (s *structType) marshalTimestamp(root reflect.Value) (Ticks, error) {
	if s.timestamp == nil {
		return 0, nil
	}
	v, ok := s.timestamp.of(root)
	if !ok || isEmpty(v) {
		return 0, nil
	}
	t, err := s.timestamp.marshalTime(v)
	return t, s.timestamp.wrap(err)
}

func (f *field) marshalKey(root reflect.Value) (string, error) {
	v, ok := f.of(root)
	if !ok {
		return "", f.wrap(errNilEmbedded)
	}
	if f.convert == convertString {
		return v.String(), nil
	}
	text, err := v.Addr().Interface().(encoding.TextMarshaler).MarshalText()
	return string(text), f.wrap(err)
}
