package edm

import (
	"bytes"
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Unmarshal sets the fields of the struct that v points to, which it copies from r.
// See [Marshal] for the tags and the types of fields. Names of properties are
// compared exactly.
//
// A field whose property r does not have keeps its content, so v can hold defaults;
// give a zero struct, unless you want them. Properties without a field are ignored,
// or collected in the field with the option rest, which is set to nil if there is
// none. A struct need not have fields for the keys.
//
// A pointer is set to a new value, an embedded pointer only if it is nil and a field
// of its struct is set. Times are in UTC.
//
// An Int32 or Int64 fits any field of an integer type that can hold it, and an Int32
// a float. A Double that a float32 does not hold exactly is rounded, and fails if it
// is too large. A Binary fits a [n]byte of its length. All other differences between
// the type of a property and that of its field are an error: Unmarshal fails with a
// [*FieldError] for the first such property, in an error that names the entity. It
// may have set other fields.
func Unmarshal(r Row, v any) error {
	root := reflect.ValueOf(v)
	if root.Kind() == reflect.Pointer {
		root = root.Elem()
	}
	if root.Kind() != reflect.Struct || !root.CanSet() {
		return fmt.Errorf("unmarshal into %T: want a pointer to a struct, not nil", v)
	}
	s := structTypeOf(reflect.TypeOf(v))
	if s.err != nil {
		return s.err
	}
	d := decoder{s: s, root: root}
	err := d.setKey(r)
	if err == nil {
		err = d.setProperties(r)
	}
	if err != nil {
		k := r.Key()
		return fmt.Errorf("entity with PartitionKey %s and RowKey %s: %w", quote(k.Partition), quote(k.Row), err)
	}
	return nil
}

// decoder sets the fields of one struct.
type decoder struct {
	s     *structType
	root  reflect.Value
	texts strings.Builder // short texts that share memory
}

// setKey sets the keys, the Timestamp and the ETag.
func (d *decoder) setKey(r Row) error {
	s := d.s
	if s.partition != nil || s.row != nil {
		k := r.Key()
		if err := d.setText(s.partition, k.Partition); err != nil {
			return err
		}
		if err := d.setText(s.row, k.Row); err != nil {
			return err
		}
	}
	t := r.Timestamp()
	switch f := s.timestamp; {
	case f == nil:
	case t == 0:
		d.field(f).SetZero() // the entity was not stored
	case f.convert == convertTicks:
		d.field(f).SetInt(int64(t))
	default:
		*d.field(f).Addr().Interface().(*time.Time) = t.Time()
	}
	switch {
	case s.etag == nil:
		return nil
	case t == 0:
		return d.setText(s.etag, "")
	}
	return d.setText(s.etag, string(t.ETag()))
}

// setText sets f, which can be nil, to a key or an ETag.
func (d *decoder) setText(f *field, text string) error {
	if f == nil {
		return nil
	}
	v := d.field(f)
	if f.convert == convertString {
		v.SetString(text)
		return nil
	}
	return f.wrap(v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)))
}

func (d *decoder) setProperties(r Row) error {
	s := d.s
	var rest Properties
	last := -1
	for i := range r.Len() {
		name, value := r.At(i)
		at := s.find(name, last)
		switch {
		case value.IsNull():
		case at >= 0:
			last = at
			f := &s.fields[at]
			if err := d.set(f, d.field(f), value); err != nil {
				return f.wrap(err)
			}
		case s.rest != nil:
			rest = append(rest, Property{name, value.Clone()})
		}
	}
	if s.rest == nil {
		return nil
	}
	if _, ok := s.rest.of(d.root); ok || rest != nil {
		*d.field(s.rest).Addr().Interface().(*Properties) = rest
	}
	return nil
}

// find returns the field of the property called name, -1 if there is none. The
// property before it has the field last, -1 for the first property. Properties are
// in the order of the struct after an insert and in the order of names after any
// other write, so the field is nearly always the next one in one of them.
func (s *structType) find(name string, last int) int {
	next := s.first
	if last >= 0 {
		next = s.fields[last].next
	}
	if last+1 < len(s.fields) && s.fields[last+1].name == name {
		return last + 1
	}
	if next >= 0 && next < len(s.fields) && s.fields[next].name == name {
		return next
	}
	if i, ok := s.byName[name]; ok {
		return i
	}
	return -1
}

// field returns f in the struct. It allocates the embedded pointers that are nil.
func (d *decoder) field(f *field) reflect.Value {
	if f.only >= 0 {
		return d.root.Field(f.only)
	}
	return d.embeddedField(f)
}

func (d *decoder) embeddedField(f *field) reflect.Value {
	v := d.root.Field(f.index[0])
	for _, i := range f.index[1:] {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}

// set sets v, which is f in the struct or what it points to. Its parameters fit into
// registers.
func (d *decoder) set(f *field, v reflect.Value, value Value) error {
	ok := false
	switch f.convert {
	case convertBool:
		var b bool
		if b, ok = value.Bool(); ok {
			v.SetBool(b)
		}
	case convertInt:
		var n int64
		if n, ok = value.Int64(); ok {
			if v.OverflowInt(n) {
				return errOverflow(value)
			}
			v.SetInt(n)
		}
	case convertUint:
		var n int64
		if n, ok = value.Int64(); ok {
			if n < 0 || v.OverflowUint(uint64(n)) {
				return errOverflow(value)
			}
			v.SetUint(uint64(n))
		}
	case convertFloat:
		var x float64
		if x, ok = value.Double(); ok {
			if v.OverflowFloat(x) {
				return errOverflow(value)
			}
			v.SetFloat(x)
		}
	case convertString:
		if ok = value.Type() == TypeString; ok {
			v.SetString(d.text(value.Bytes()))
		}
	case convertTime:
		var t Ticks
		if t, ok = value.DateTime(); ok {
			*v.Addr().Interface().(*time.Time) = t.Time()
		}
	case convertTicks:
		var t Ticks
		if t, ok = value.DateTime(); ok {
			v.SetInt(int64(t))
		}
	case convertPointer:
		p := reflect.New(f.pointed.goType)
		err := d.set(f.pointed, p.Elem(), value)
		if err == nil {
			v.Set(p)
		}
		return err
	default:
		return f.setBytes(v, value)
	}
	if !ok {
		return errOtherType(value)
	}
	return nil
}

// setBytes sets v by a conversion that needs the bytes of value.
func (f *field) setBytes(v reflect.Value, value Value) error {
	switch {
	case f.convert == convertValue:
		*v.Addr().Interface().(*Value) = value.Clone()
		return nil
	case value.Type() != f.edm:
		return errOtherType(value)
	case f.convert == convertText:
		// A copy, since UnmarshalText may change what it gets, and the value shares the memory of the row.
		return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(bytes.Clone(value.Bytes()))
	case f.convert == convertBytes:
		b := make([]byte, len(value.Bytes()))
		copy(b, value.Bytes())
		v.SetBytes(b)
		return nil
	case len(value.Bytes()) != v.Len():
		return fmt.Errorf("the property has %d bytes", len(value.Bytes()))
	}
	copy(v.Bytes(), value.Bytes())
	return nil
}

func errOtherType(value Value) error { return fmt.Errorf("the property has the type %v", value.Type()) }

func errOverflow(value Value) error { return fmt.Errorf("the field cannot hold %v", value) }

const (
	// Texts of up to sharedText bytes share an allocation. A field that is kept longer
	// than the struct keeps at most maxTexts bytes.
	sharedText = 32
	maxTexts   = 128
)

// text returns a copy of b.
func (d *decoder) text(b []byte) string {
	if len(b) > sharedText || d.s.texts == 0 {
		return string(b)
	}
	if d.texts.Cap()-d.texts.Len() < len(b) {
		d.texts.Reset()
		d.texts.Grow(d.s.texts)
	}
	d.texts.Write(b)
	all := d.texts.String()
	return all[len(all)-len(b):]
}
