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

// Type is one of the eight Edm types a property can have. The numbers are part
// of the file format; zero is no type.
type Type uint8

// The Edm types.
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

// String returns the protocol's name of t, such as "Edm.Int64".
func (t Type) String() string {
	if !t.Valid() {
		return "Edm.Type(" + strconv.Itoa(int(t)) + ")"
	}
	return typeNames[t]
}

// ParseType returns the type that the protocol calls s, such as "Edm.Int64".
func ParseType(s string) (Type, bool) {
	for t := TypeString; t <= TypeGuid; t++ {
		if typeNames[t] == s {
			return t, true
		}
	}
	return 0, false
}

// GUID is a 128-bit identifier; its bytes stand in the order of its text form.
type GUID [16]byte

// ParseGUID reads the form 8-4-4-4-12 of hexadecimal digits in either case.
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

// AppendText appends the lower-case form 8-4-4-4-12 to dst.
func (g GUID) AppendText(dst []byte) []byte {
	dst = hex.AppendEncode(dst, g[:4])
	for i := 4; i < 10; i += 2 {
		dst = hex.AppendEncode(append(dst, '-'), g[i:i+2])
	}
	return hex.AppendEncode(append(dst, '-'), g[10:])
}

// String returns the lower-case form 8-4-4-4-12.
func (g GUID) String() string { return string(g.AppendText(make([]byte, 0, 36))) }

// Value is one typed value. The zero Value has no type and stands for null,
// which is never stored.
//
// A Value of a String or Binary refers to bytes that it may share with the row
// it came from; Clone gives it bytes of its own.
type Value struct {
	// Four words in two fields: the compiler keeps such a struct in registers,
	// and copies a larger one through memory at every call, which costs more
	// than decoding a value does. So the type has no field of its own.
	//
	// When bytes is not empty, it is the content and word is the type; else
	// word is the content and the capacity of bytes is the type.
	word  uint64
	bytes []byte
}

// typed gives empty bytes their capacity.
var typed [256]byte

// ofBytes returns a Value of type t that shares b.
func ofBytes(t Type, b []byte) Value {
	if len(b) == 0 {
		return Value{bytes: typed[:0:t]}
	}
	return Value{word: uint64(t), bytes: b}
}

// String returns a Value of type Edm.String; it copies s.
func String(s string) Value { return ofBytes(TypeString, []byte(s)) }

// StringBytes returns a Value of type Edm.String that shares b, which holds
// UTF-8 and must not change as long as the Value is in use.
func StringBytes(b []byte) Value { return ofBytes(TypeString, b) }

// Binary returns a Value of type Edm.Binary that shares b, which must not
// change as long as the Value is in use.
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

// GuidBytes returns a Value of type Edm.Guid that shares the 16 bytes b, which
// must not change as long as the Value is in use.
func GuidBytes(b []byte) Value { return Value{word: uint64(TypeGuid), bytes: b[:16:16]} }

// GuidWords returns a Value of type Edm.Guid from the two big-endian halves of
// its sixteen bytes.
func GuidWords(hi, lo uint64) Value {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 16), hi)
	return GuidBytes(binary.BigEndian.AppendUint64(b, lo))
}

// Fixed returns the Value of type t, which is Boolean, Int32, Int64, Double or
// DateTime, whose Word is w.
func Fixed(t Type, w uint64) Value { return Value{word: w, bytes: typed[:0:t]} }

// Type returns the type of v, zero for null.
func (v Value) Type() Type {
	if len(v.bytes) > 0 {
		return Type(v.word)
	}
	return Type(cap(v.bytes))
}

// IsNull reports whether v is null.
func (v Value) IsNull() bool { return cap(v.bytes) == 0 }

// Bool returns the value of an Edm.Boolean.
func (v Value) Bool() bool { return v.word != 0 }

// Int32 returns the value of an Edm.Int32.
func (v Value) Int32() int32 { return int32(v.word) }

// Int64 returns the value of an Edm.Int64 or Edm.Int32.
func (v Value) Int64() int64 { return int64(v.word) }

// Double returns the value of an Edm.Double.
func (v Value) Double() float64 { return math.Float64frombits(v.word) }

// DateTime returns the value of an Edm.DateTime.
func (v Value) DateTime() Ticks { return Ticks(v.word) }

// Guid returns the value of an Edm.Guid.
func (v Value) Guid() GUID {
	var g GUID
	copy(g[:], v.bytes)
	return g
}

// Word returns the 64 bits of a Boolean (0 or 1), an Int32 (sign-extended), an
// Int64, a Double (IEEE 754), a DateTime (ticks), or the first half of a Guid.
func (v Value) Word() uint64 {
	if len(v.bytes) > 0 && v.word == uint64(TypeGuid) {
		return binary.BigEndian.Uint64(v.bytes)
	}
	return v.word
}

// Word2 returns the second half of a Guid, 0 for any other type.
func (v Value) Word2() uint64 {
	if v.Type() != TypeGuid {
		return 0
	}
	return binary.BigEndian.Uint64(v.bytes[8:])
}

// Bytes returns the UTF-8 of a String or the bytes of a Binary or a Guid. The caller must
// not change them, and may use them as long as the row v came from.
func (v Value) Bytes() []byte { return v.bytes[:len(v.bytes):len(v.bytes)] }

// Text returns a copy of a String's text.
func (v Value) Text() string { return string(v.bytes) }

// Clone returns v with bytes of its own.
func (v Value) Clone() Value {
	if len(v.bytes) > 0 {
		v.bytes = bytes.Clone(v.bytes)
	}
	return v
}

// Equal reports whether v and w have the same type and the same content; two
// Doubles are equal when their bits are, so NaN equals itself.
func (v Value) Equal(w Value) bool {
	return v.Type() == w.Type() && v.word == w.word && bytes.Equal(v.bytes, w.bytes)
}

// String returns v as text for people; it is not the protocol's form.
func (v Value) String() string {
	switch v.Type() {
	case TypeString:
		return string(v.bytes)
	case TypeBinary:
		return base64.StdEncoding.EncodeToString(v.bytes)
	case TypeBoolean:
		return strconv.FormatBool(v.Bool())
	case TypeInt32, TypeInt64:
		return strconv.FormatInt(v.Int64(), 10)
	case TypeDouble:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	case TypeDateTime:
		return v.DateTime().String()
	case TypeGuid:
		return v.Guid().String()
	}
	return "null"
}

// GoString returns v with its type, for failures of tests.
func (v Value) GoString() string {
	if v.Type() == TypeString || v.Type() == TypeBinary {
		return fmt.Sprintf("%v(%q)", v.Type(), v.bytes)
	}
	return fmt.Sprintf("%v(%v)", v.Type(), v.String())
}
