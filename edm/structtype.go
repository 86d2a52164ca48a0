package edm

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// structType is how [Marshal] and [Unmarshal] convert one type of struct. It does
// not change.
type structType struct {
	fields []field        // the properties, in the order of the struct
	byName map[string]int // in fields
	first  int            // the field whose name is first in order
	// The other fields, nil if there is none.
	partition, row, timestamp, etag, rest *field
	// addressable is set if a field can only be read at an address.
	addressable bool
	texts       int   // bytes to allocate for short texts that share memory, 0 for one text
	err         error // the struct cannot be converted
}

// field is a field of a struct, or of a struct embedded in it.
type field struct {
	name      string // of the property, or a reserved name
	path      string // for errors, such as main.Order.Address.City
	goType    reflect.Type
	index     []int // of the field in the struct, after those of the structs that embed it
	only      int   // index[0] if it is the only one, or -1
	convert   conversion
	edm       Type   // the type of the property, 0 for a Value
	pointed   *field // like this field, for what goType points to; nil if it is no pointer
	omitEmpty bool
	tagged    bool // the tag gives the name
	next      int  // the field whose name follows in the order of names, -1 for the last
}

// conversion is a way to convert a field.
type conversion uint8

const (
	convertNone conversion = iota
	convertBool
	convertInt
	convertUint
	convertFloat
	convertString
	convertBytes
	convertArray // of bytes, also for a Guid
	convertTime
	convertTicks
	convertValue
	convertText // by encoding.TextMarshaler and encoding.TextUnmarshaler
	convertPointer
	convertRest // Properties
)

var (
	timeType       = reflect.TypeFor[time.Time]()
	ticksType      = reflect.TypeFor[Ticks]()
	valueType      = reflect.TypeFor[Value]()
	propertiesType = reflect.TypeFor[Properties]()
	marshalerType  = reflect.TypeFor[encoding.TextMarshaler]()
	unmarshalType  = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// Names of fields that are not properties. No property can have them.
const (
	etagName = "odata.etag"
	restName = ",rest"
)

// structTypes maps the types of structs, and of pointers to them, to their
// structType. Each map is never changed. The lookup in a sync.Map took 6 % of the CPU
// time of BenchmarkUnmarshal.
var structTypes atomic.Pointer[map[reflect.Type]*structType]

// structTypeOf returns the structType of t, a struct or pointers to one.
func structTypeOf(t reflect.Type) *structType {
	for {
		types := structTypes.Load()
		if types != nil {
			if s, ok := (*types)[t]; ok {
				return s
			}
		}
		more := map[reflect.Type]*structType{t: compile(t)}
		if types != nil {
			maps.Copy(more, *types)
		}
		if structTypes.CompareAndSwap(types, &more) {
			return more[t]
		}
	}
}

func compile(t reflect.Type) *structType {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	c := compiler{}
	err := c.collect(t, t.String(), nil)
	if err == nil {
		c.fields, err = dominant(c.fields)
	}
	if err != nil {
		return &structType{err: err}
	}
	s := &structType{byName: make(map[string]int)}
	texts := 0
	for i := range c.fields {
		f := &c.fields[i]
		s.addressable = s.addressable || f.convert == convertArray || f.convert == convertText
		switch f.name {
		case PartitionKeyName:
			s.partition = f
		case RowKeyName:
			s.row = f
		case TimestampName:
			s.timestamp = f
		case etagName:
			s.etag = f
		case restName:
			s.rest = f
		default:
			s.byName[f.name] = len(s.fields)
			s.fields = append(s.fields, *f)
			if f.convert == convertString {
				texts++
			}
		}
	}
	if texts > 1 {
		s.texts = min(texts*sharedText/2, maxTexts)
	}
	s.link()
	return s
}

// link sets first, and next of each field.
func (s *structType) link() {
	order := make([]int, len(s.fields))
	for i := range order {
		order[i] = i
		s.fields[i].next = -1
	}
	slices.SortFunc(order, func(a, b int) int { return Compare(s.fields[a].name, s.fields[b].name) })
	for i := 1; i < len(order); i++ {
		s.fields[order[i-1]].next = order[i]
	}
	if len(order) > 0 {
		s.first = order[0]
	}
}

// compiler collects the fields of a struct.
type compiler struct {
	fields []field
	outer  []reflect.Type // the structs that embed the struct at hand
}

// collect appends the fields of t and of the structs that it embeds.
func (c *compiler) collect(t reflect.Type, path string, index []int) error {
	if slices.Contains(c.outer, t) {
		return fmt.Errorf("type %v: it embeds itself", t)
	}
	c.outer = append(c.outer, t)
	defer func() { c.outer = c.outer[:len(c.outer)-1] }()
	for i := range t.NumField() {
		sf := t.Field(i)
		f := field{path: path + "." + sf.Name, goType: sf.Type, index: append(slices.Clone(index), i), only: i}
		if len(index) > 0 {
			f.only = -1
		}
		if err := c.add(f, sf); err != nil {
			return err
		}
	}
	return nil
}

// add appends f, which is sf, or the fields of the struct that f embeds.
func (c *compiler) add(f field, sf reflect.StructField) error {
	tag, tagged := sf.Tag.Lookup("table")
	if tag == "-" {
		return nil
	}
	if sf.Anonymous && tag == "" {
		if t := embedded(sf.Type); t != nil {
			if sf.Type.Kind() == reflect.Pointer && !sf.IsExported() {
				return f.errorf("a pointer to a struct that is not exported is embedded, and nothing can set it; embed the struct, or tag it \"-\"")
			}
			return c.collect(t, f.path, f.index)
		}
	}
	if !sf.IsExported() {
		switch {
		case tagged:
			return f.errorf("the field has a tag and is not exported")
		case sf.Anonymous && isStruct(sf.Type):
			return f.errorf("a struct that is not exported and has methods for text is embedded, which hides its fields; give the field a name, or the tag \"-\"")
		}
		return nil
	}
	if err := f.parseTag(sf.Name, tag); err != nil {
		return err
	}
	if err := f.findConversion(); err != nil {
		return err
	}
	c.fields = append(c.fields, f)
	return nil
}

// isStruct reports whether t is a struct or a pointer to one.
func isStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}

// embedded returns the struct whose fields an embedded field of type t promotes,
// nil if the field is a property by itself.
func embedded(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == timeType || t == valueType || implementsText(t) != neither {
		return nil
	}
	return t
}

// parseTag sets name, tagged and omitEmpty.
func (f *field) parseTag(goName, tag string) error {
	name, options, _ := strings.Cut(tag, ",")
	f.name, f.tagged = cmp.Or(name, goName), name != ""
	reserved := ""
	for option := range strings.SplitSeq(options, ",") {
		role := ""
		switch option {
		case "":
		case "omitempty":
			f.omitEmpty = true
		case "pk":
			role = PartitionKeyName
		case "rk":
			role = RowKeyName
		case "timestamp":
			role = TimestampName
		case "etag":
			role = etagName
		case "rest":
			role = restName
		default:
			return f.errorf("the tag has an unknown option %s; there are omitempty, pk, rk, timestamp, etag and rest", quote(option))
		}
		if role != "" && reserved != "" {
			return f.errorf("the tag has more than one of the options pk, rk, timestamp, etag and rest")
		}
		reserved = cmp.Or(reserved, role)
	}
	if reserved == "" {
		if !isReserved(f.name) {
			return f.wrap(checkPropertyName(f.name))
		}
		reserved = f.name // fields with these names need no option
	} else if name != "" && name != reserved {
		return f.errorf("the tag has the name %s and an option for a field that is not a property", quote(name))
	}
	if f.omitEmpty {
		return f.errorf("the tag has omitempty, which is for properties only")
	}
	f.name, f.tagged = reserved, true
	return nil
}

func isReserved(name string) bool {
	return name == PartitionKeyName || name == RowKeyName || name == TimestampName
}

// findConversion sets convert, edm and pointer.
func (f *field) findConversion() error {
	switch f.name {
	case PartitionKeyName, RowKeyName:
		return f.findKeyConversion()
	case TimestampName:
		if f.convert, f.edm = conversionOf(f.goType); f.convert == convertTime || f.convert == convertTicks {
			return nil
		}
		return f.errorf("the field of the Timestamp is a time.Time or edm.Ticks")
	case etagName:
		if f.convert = convertString; f.goType.Kind() == reflect.String {
			return nil
		}
		return f.errorf("the field of the ETag is an edm.ETag or a string")
	case restName:
		if f.convert = convertRest; f.goType == propertiesType {
			return nil
		}
		return f.errorf("the field of the remaining properties is edm.Properties")
	}
	t := f.goType
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if f.convert, f.edm = conversionOf(t); f.convert != convertNone {
		if t != f.goType {
			pointed := *f
			pointed.goType = t
			f.convert, f.pointed = convertPointer, &pointed
		}
		return nil
	}
	if implementsText(t) != neither {
		return f.errorf("the type implements only one of encoding.TextMarshaler and encoding.TextUnmarshaler")
	}
	return f.errorf("the type has no Edm type; tag the field \"-\", or implement encoding.TextMarshaler and encoding.TextUnmarshaler")
}

func (f *field) findKeyConversion() error {
	f.edm = TypeString
	switch {
	case implementsText(f.goType) == both:
		f.convert = convertText
	case f.goType.Kind() == reflect.String:
		f.convert = convertString
	default:
		return f.errorf("the field of a key is a string, or implements encoding.TextMarshaler and encoding.TextUnmarshaler; keys are ordered as text")
	}
	return nil
}

// conversionOf returns how a property of type t is converted, convertNone if t has
// no Edm type.
func conversionOf(t reflect.Type) (conversion, Type) {
	switch t {
	case timeType:
		return convertTime, TypeDateTime
	case ticksType:
		return convertTicks, TypeDateTime
	case valueType:
		return convertValue, 0
	}
	// Types for UUIDs also implement TextMarshaler.
	if t.Kind() == reflect.Array && t.Elem().Kind() == reflect.Uint8 && t.Len() == len(GUID{}) {
		return convertArray, TypeGuid
	}
	switch implementsText(t) {
	case both:
		return convertText, TypeString
	case one:
		return convertNone, 0
	}
	switch t.Kind() {
	case reflect.Bool:
		return convertBool, TypeBoolean
	case reflect.Int8, reflect.Int16, reflect.Int32:
		return convertInt, TypeInt32
	case reflect.Int, reflect.Int64:
		return convertInt, TypeInt64
	case reflect.Uint8, reflect.Uint16:
		return convertUint, TypeInt32
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		return convertUint, TypeInt64
	case reflect.Float32, reflect.Float64:
		return convertFloat, TypeDouble
	case reflect.String:
		return convertString, TypeString
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return convertBytes, TypeBinary
		}
	case reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return convertArray, TypeBinary
		}
	}
	return convertNone, 0
}

// How many of the two interfaces for text a type implements.
const (
	neither = iota
	one
	both
)

// implementsText counts the interfaces for text that t or a pointer to it
// implements.
func implementsText(t reflect.Type) (n int) {
	if t.Kind() == reflect.Interface {
		return neither // nothing says which type to read into
	}
	p := reflect.PointerTo(t)
	if p.Implements(marshalerType) {
		n++
	}
	if p.Implements(unmarshalType) {
		n++
	}
	return n
}

// dominant returns the fields that are not hidden. A field hides those of the same
// name that are embedded deeper, and at the same depth those that do not have the
// name from a tag. These are the rules of encoding/json, which however omits both
// of two fields if neither hides the other; that is an error here.
func dominant(fields []field) ([]field, error) {
	byName := make(map[string][]int)
	for i := range fields {
		byName[fields[i].name] = append(byName[fields[i].name], i)
	}
	precedence := func(a, b int) int {
		f, g := &fields[a], &fields[b]
		switch {
		case len(f.index) != len(g.index):
			return cmp.Compare(len(f.index), len(g.index))
		case f.tagged == g.tagged:
			return 0
		case f.tagged:
			return -1
		}
		return 1
	}
	var kept []field
	for i := range fields {
		same := slices.SortedStableFunc(slices.Values(byName[fields[i].name]), precedence)
		if len(same) > 1 && precedence(same[0], same[1]) == 0 {
			other := fields[same[1]].path
			return nil, fields[same[0]].errorf("it has the same name or option as %s; give one of them another, or the tag \"-\"", other)
		}
		if same[0] == i {
			kept = append(kept, fields[i])
		}
	}
	return kept, nil
}

// wrap returns err as a FieldError, nil if err is nil.
func (f *field) wrap(err error) error {
	if err == nil {
		return nil
	}
	return &FieldError{f.path, f.goType, f.edm, err}
}

func (f *field) errorf(format string, args ...any) error { return f.wrap(fmt.Errorf(format, args...)) }

// FieldError reports a field of a struct that cannot be converted. It is
// ErrInvalid.
type FieldError struct {
	Field string       // with the structs that it is in, such as main.Order.Total
	Go    reflect.Type // the type of the field
	Edm   Type         // the type that Marshal gives the property, 0 if there is none or it varies
	Err   error
}

// Error names the field, its types and the failure.
func (e *FieldError) Error() string {
	types := e.Go.String()
	if e.Edm != 0 {
		types += ", " + e.Edm.String()
	}
	return fmt.Sprintf("field %s (%s): %v", e.Field, types, e.Err)
}

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }

// Is reports whether target is ErrInvalid.
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

var errNilEmbedded = errors.New("the key is in an embedded pointer, which is nil")
