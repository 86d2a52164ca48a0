package edm

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Type is one of the eight types that a property can have. The numbers are part
// of the file format; 0 is not a type.
type Type uint8

// The types.
const (
	TypeString   Type = 1
	TypeBinary   Type = 2
	TypeBoolean  Type = 3
	TypeInt32    Type = 4
	TypeInt64    Type = 5
	TypeDouble   Type = 6
	TypeDateTime Type = 7
	TypeGuid     Type = 8
)

var typeNames = [...]string{
	TypeString:   "Edm.String",
	TypeBinary:   "Edm.Binary",
	TypeBoolean:  "Edm.Boolean",
	TypeInt32:    "Edm.Int32",
	TypeInt64:    "Edm.Int64",
	TypeDouble:   "Edm.Double",
	TypeDateTime: "Edm.DateTime",
	TypeGuid:     "Edm.Guid",
}

// Valid reports whether t is one of the eight types.
func (t Type) Valid() bool { return t >= TypeString && t <= TypeGuid }

// String returns the name of t in the protocol, such as "Edm.Int64".
func (t Type) String() string {
	if !t.Valid() {
		return "Edm.Type(" + strconv.Itoa(int(t)) + ")"
	}
	return typeNames[t]
}

// parseType returns the type with the name s in the protocol, such as
// "Edm.Int64".
func parseType(s string) (Type, bool) {
	for t := TypeString; t <= TypeGuid; t++ {
		if typeNames[t] == s {
			return t, true
		}
	}
	return 0, false
}

// GUID is a 128-bit identifier. Its bytes are in the order of its text.
type GUID [16]byte

// ParseGUID parses the form 8-4-4-4-12 of hexadecimal digits in either case.
func ParseGUID(s string) (GUID, error) {
	var g GUID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return g, errGUID
	}
	compact := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	if _, err := hex.Decode(g[:], []byte(compact)); err != nil {
		return GUID{}, errGUID
	}
	return g, nil
}

var errGUID = errors.New("a Guid has the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")

// String returns the lower-case form 8-4-4-4-12.
func (g GUID) String() string {
	dst := hex.AppendEncode(make([]byte, 0, 36), g[:4])
	for i := 4; i < 10; i += 2 {
		dst = hex.AppendEncode(append(dst, '-'), g[i:i+2])
	}
	return string(hex.AppendEncode(append(dst, '-'), g[10:]))
}

// MarshalText returns the text of g, so that a GUID can be a key of a struct.
func (g GUID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText sets g to the GUID that ParseGUID returns for text.
func (g *GUID) UnmarshalText(text []byte) (err error) {
	*g, err = ParseGUID(string(text))
	return err
}

// Value is a typed value. The zero Value has no type: it is null, which is never
// stored.
//
// A String, Binary or Guid refers to bytes, which it may share with the [Row] that
// it came from. [Value.Clone] makes a copy.
type Value struct {
	// If bytes is not empty, bytes is the content and word is the type.
	// Otherwise word is the content and the capacity of bytes is the type.
	//
	// A field for the type would make a fifth word. The compiler keeps structs of
	// up to four words in registers, and copies larger ones through memory:
	// BenchmarkValueLayout reads 12 values in 21 ns, and with a fifth word in
	// 110 ns.
	word  uint64
	bytes []byte
}

// typed is the array of the empty slices whose capacity is a type.
var typed [256]byte

// ofBytes returns a Value of type t that shares b.
func ofBytes(t Type, b []byte) Value {
	if len(b) == 0 {
		return Value{bytes: typed[:0:t]}
	}
	return Value{word: uint64(t), bytes: b}
}

// String returns a Value of type Edm.String with a copy of s, which must be valid
// UTF-8.
func String(s string) Value { return ofBytes(TypeString, []byte(s)) }

// StringBytes returns a Value of type Edm.String that shares b, which must be valid
// UTF-8. Do not change b while the Value is in use.
func StringBytes(b []byte) Value { return ofBytes(TypeString, b) }

// Binary returns a Value of type Edm.Binary that shares b. Do not change b while
// the Value is in use.
func Binary(b []byte) Value { return ofBytes(TypeBinary, b) }

// Boolean returns a Value of type Edm.Boolean.
func Boolean(b bool) Value {
	if b {
		return Fixed(TypeBoolean, 1)
	}
	return Fixed(TypeBoolean, 0)
}

// Int32 returns a Value of type Edm.Int32.
func Int32(n int32) Value { return Fixed(TypeInt32, uint64(int64(n))) }

// Int64 returns a Value of type Edm.Int64.
func Int64(n int64) Value { return Fixed(TypeInt64, uint64(n)) }

// Double returns a Value of type Edm.Double.
func Double(f float64) Value { return Fixed(TypeDouble, math.Float64bits(f)) }

// DateTime returns a Value of type Edm.DateTime.
func DateTime(t Ticks) Value { return Fixed(TypeDateTime, uint64(t)) }

// Guid returns a Value of type Edm.Guid.
func Guid(g GUID) Value { return GuidBytes(bytes.Clone(g[:])) }

// GuidBytes returns a Value of type Edm.Guid that shares the first 16 bytes of b.
// Do not change b while the Value is in use.
func GuidBytes(b []byte) Value { return Value{word: uint64(TypeGuid), bytes: b[:16:16]} }

// GuidWords returns a Value of type Edm.Guid from the big-endian halves of its 16
// bytes.
func GuidWords(hi, lo uint64) Value {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 16), hi)
	return GuidBytes(binary.BigEndian.AppendUint64(b, lo))
}

// Fixed returns the Value of type t whose Word is w. t must be TypeBoolean,
// TypeInt32, TypeInt64, TypeDouble or TypeDateTime. Fixed does not check w; see
// [CheckValues].
func Fixed(t Type, w uint64) Value { return Value{word: w, bytes: typed[:0:t]} }

// Type returns the type of v, 0 for null.
func (v Value) Type() Type {
	if len(v.bytes) > 0 {
		return Type(v.word)
	}
	return Type(cap(v.bytes))
}

// IsNull reports whether v is null.
func (v Value) IsNull() bool { return cap(v.bytes) == 0 }

// Bool returns the content of a Boolean. For any other type ok is false.
func (v Value) Bool() (b, ok bool) {
	if v.Type() != TypeBoolean {
		return false, false
	}
	return v.word != 0, true
}

// Int32 returns the content of an Int32. For any other type ok is false.
func (v Value) Int32() (n int32, ok bool) {
	if v.Type() != TypeInt32 {
		return 0, false
	}
	return int32(v.word), true
}

// Int64 returns the content of an Int64 or Int32. For any other type ok is
// false.
func (v Value) Int64() (n int64, ok bool) {
	if t := v.Type(); t != TypeInt64 && t != TypeInt32 {
		return 0, false
	}
	return int64(v.word), true
}

// Double returns the content of a Double or Int32. For any other type, Int64
// included, ok is false.
func (v Value) Double() (f float64, ok bool) {
	switch v.Type() {
	case TypeDouble:
		return math.Float64frombits(v.word), true
	case TypeInt32:
		return float64(int32(v.word)), true
	}
	return 0, false
}

// DateTime returns the content of a DateTime. For any other type ok is false.
func (v Value) DateTime() (t Ticks, ok bool) {
	if v.Type() != TypeDateTime {
		return 0, false
	}
	return Ticks(v.word), true
}

// Guid returns the content of a Guid. For any other type ok is false.
func (v Value) Guid() (g GUID, ok bool) {
	if v.Type() != TypeGuid {
		return GUID{}, false
	}
	return GUID(v.bytes), true
}

// Text returns a copy of the content of a String. For any other type ok is
// false.
func (v Value) Text() (s string, ok bool) {
	if v.Type() != TypeString {
		return "", false
	}
	return string(v.bytes), true
}

// Binary returns the content of a Binary, without a copy. Do not change it; it
// is valid as long as v is. For any other type ok is false.
func (v Value) Binary() (b []byte, ok bool) {
	if v.Type() != TypeBinary {
		return nil, false
	}
	return v.Bytes(), true
}

// Word returns the 64 bits of a Boolean (0 or 1), an Int32 (sign-extended), an
// Int64, a Double (IEEE 754), a DateTime (ticks), or the first half of a Guid.
// It is meaningless for a String, a Binary and null: look at Type first.
func (v Value) Word() uint64 {
	if len(v.bytes) > 0 && v.word == uint64(TypeGuid) {
		return binary.BigEndian.Uint64(v.bytes)
	}
	return v.word
}

// Word2 returns the second 64 bits of a Guid, 0 for any other type.
func (v Value) Word2() uint64 {
	if v.Type() != TypeGuid {
		return 0
	}
	return binary.BigEndian.Uint64(v.bytes[8:])
}

// Bytes returns the UTF-8 of a String or the bytes of a Binary or Guid, without a
// copy, and an empty slice for any other type. Do not change them; they are
// valid as long as v is.
func (v Value) Bytes() []byte { return v.bytes[:len(v.bytes):len(v.bytes)] }

// Clone returns a copy of v that shares no memory with v.
func (v Value) Clone() Value {
	if len(v.bytes) > 0 {
		v.bytes = bytes.Clone(v.bytes)
	}
	return v
}

// Equal reports whether v and w have the same type and content. It compares the
// bits of Doubles, so NaN equals itself and 0 differs from -0.
func (v Value) Equal(w Value) bool {
	return v.Type() == w.Type() && v.word == w.word && bytes.Equal(v.bytes, w.bytes)
}

// String returns v as text for people. The form may change.
func (v Value) String() string {
	switch v.Type() {
	case TypeString:
		return string(v.bytes)
	case TypeBinary:
		return base64.StdEncoding.EncodeToString(v.bytes)
	case TypeBoolean:
		return strconv.FormatBool(v.word != 0)
	case TypeInt32, TypeInt64:
		return strconv.FormatInt(int64(v.word), 10)
	case TypeDouble:
		return strconv.FormatFloat(math.Float64frombits(v.word), 'g', -1, 64)
	case TypeDateTime:
		return Ticks(v.word).String()
	case TypeGuid:
		return GUID(v.bytes).String()
	}
	return "null"
}

// GoString returns v with its type, for the messages of tests.
func (v Value) GoString() string {
	if v.Type() == TypeString || v.Type() == TypeBinary {
		return fmt.Sprintf("%v(%q)", v.Type(), v.bytes)
	}
	return fmt.Sprintf("%v(%v)", v.Type(), v.String())
}
