package parquetfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tablerock-db/tablerock/edm"
)

// kind is how the bytes of a column's values become a value.
type kind uint8

const (
	asBoolean kind = iota + 1
	asInt32
	asInt64
	asUint32 // an Int64
	asUint64 // an Int64, if it fits
	asFloat
	asDouble
	asText
	asBinary
	asGuid
	asDate  // a DateTime, from days
	asTicks // a DateTime, from ticks since 1601
	asTime  // a DateTime, from scale units per second since 1970
)

// setType sets the kind of the column from its schema and, in a file of ours, from types.
func (c *chunk) setType(e *format.SchemaElement, types map[string]string) error {
	logical := e.LogicalType.Value
	if logical == nil && e.ConvertedType.Valid {
		logical = convertedType(e.ConvertedType.V)
	}
	switch c.physical {
	case format.Boolean:
		c.kind = asBoolean
	case format.Int32:
		c.kind = asInt32
	case format.Int64:
		c.kind = asInt64
		if _, times := logical.(*format.TimestampType); !times && types[c.name] == edm.TypeDateTime.String() {
			c.kind = asTicks
			return nil
		}
	case format.Float:
		c.kind = asFloat
	case format.Double:
		c.kind = asDouble
	case format.ByteArray, format.FixedLenByteArray:
		c.kind = asBinary
	case format.Int96:
		return c.refuse("INT96", "write its times as TIMESTAMP")
	default:
		return damaged("column %q has unknown type %v", c.name, c.physical)
	}
	if logical == nil && e.ConvertedType.Valid {
		return c.refuse(convertedName(e.ConvertedType.V), "write it as text or as a number")
	}
	return c.setLogical(logical)
}

// setLogical changes the kind to that of a logical type.
func (c *chunk) setLogical(logical format.LogicalTypeValue) error {
	integer := c.kind == asInt32 || c.kind == asInt64
	switch t := logical.(type) {
	case nil:
	case *format.StringType, *format.EnumType, *format.JsonType:
		if c.kind != asBinary {
			return damaged("column %q is text of type %v", c.name, c.physical)
		}
		c.kind = asText
	case *format.UUIDType:
		if c.fixed != 16 || c.physical != format.FixedLenByteArray {
			return damaged("column %q has UUIDs of %d bytes", c.name, c.fixed)
		}
		c.kind = asGuid
	case *format.IntType:
		if !integer || !t.IsSigned && t.BitWidth == 64 && c.physical != format.Int64 {
			return damaged("column %q has integers of %d bits of type %v", c.name, t.BitWidth, c.physical)
		}
		switch {
		case !t.IsSigned && t.BitWidth == 32:
			c.kind = asUint32
		case !t.IsSigned && t.BitWidth == 64:
			c.kind = asUint64
		}
	case *format.DateType:
		if c.kind != asInt32 {
			return damaged("column %q has dates of type %v", c.name, c.physical)
		}
		c.kind = asDate
	case *format.TimestampType:
		if c.physical != format.Int64 || t.Unit.Value == nil {
			return damaged("column %q has times of type %v", c.name, c.physical)
		}
		c.kind = asTime
		switch t.Unit.Value.(type) {
		case *format.MilliSeconds:
			c.scale = 1e3
		case *format.MicroSeconds:
			c.scale = 1e6
		default:
			c.scale = 1e9
		}
	case *format.NullType:
	default:
		return c.refuse(fmt.Sprint(logical), "write it as text or as a number")
	}
	return nil
}

// refuse returns the error for a column of a type that no Edm type holds.
func (c *chunk) refuse(typ, cure string) error {
	return &Error{fmt.Sprintf("column %q has the type %s, which no Edm type holds; %s, or leave it out", c.name, typ, cure)}
}

// convertedType returns the logical type of files without logical types, nil if it is
// another one.
func convertedType(t deprecated.ConvertedType) format.LogicalTypeValue {
	integer := func(bits int8, signed bool) format.LogicalTypeValue {
		return &format.IntType{BitWidth: bits, IsSigned: signed}
	}
	switch t {
	case deprecated.UTF8:
		return &format.StringType{}
	case deprecated.Enum:
		return &format.EnumType{}
	case deprecated.Json:
		return &format.JsonType{}
	case deprecated.Date:
		return &format.DateType{}
	case deprecated.TimestampMillis:
		return &format.TimestampType{Unit: format.TimeUnit{Value: &format.MilliSeconds{}}}
	case deprecated.TimestampMicros:
		return &format.TimestampType{Unit: format.TimeUnit{Value: &format.MicroSeconds{}}}
	case deprecated.Int8:
		return integer(8, true)
	case deprecated.Int16:
		return integer(16, true)
	case deprecated.Int32:
		return integer(32, true)
	case deprecated.Int64:
		return integer(64, true)
	case deprecated.Uint8:
		return integer(8, false)
	case deprecated.Uint16:
		return integer(16, false)
	case deprecated.Uint32:
		return integer(32, false)
	case deprecated.Uint64:
		return integer(64, false)
	}
	return nil
}

// convertedName returns the name of a type that convertedType has no logical type for.
func convertedName(t deprecated.ConvertedType) string {
	switch t {
	case deprecated.Map, deprecated.MapKeyValue:
		return "MAP"
	case deprecated.List:
		return "LIST"
	case deprecated.Decimal:
		return "DECIMAL"
	case deprecated.TimeMillis, deprecated.TimeMicros:
		return "TIME"
	case deprecated.Bson:
		return "BSON"
	case deprecated.Interval:
		return "INTERVAL"
	}
	return fmt.Sprintf("%d of ConvertedType", t)
}

// Null reports whether the row has no value in a column.
func (r *Reader) Null(column int) bool { return !r.columns[column].present }

// IsText reports whether the values of a column are text.
func (r *Reader) IsText(column int) bool { return r.columns[column].kind == asText }

// Size returns the bytes that Value appends to its memory.
func (r *Reader) Size(column int) int {
	switch c := r.columns[column]; c.kind {
	case asText, asBinary, asGuid:
		return len(c.value)
	}
	return 0
}

// Bytes returns the bytes of the row's value in a column of text, valid until Next.
func (r *Reader) Bytes(column int) []byte { return r.columns[column].value }

// AppendKey appends the row's value in a column as text, for a key. It fails if the column
// is neither text nor integers nor Guids.
func (r *Reader) AppendKey(dst []byte, column int) ([]byte, error) {
	c := r.columns[column]
	switch c.kind {
	case asText, asBinary:
		if c.physical == format.ByteArray {
			return append(dst, c.value...), nil
		}
	case asInt32, asInt64, asUint32, asUint64:
		v, _, err := r.Value(nil, column)
		return strconv.AppendInt(dst, int64(v.Word()), 10), err
	case asGuid:
		return append(dst, edm.GUID(c.value).String()...), nil
	}
	return dst, errKey
}

var errKey = &Error{"a key is text, a Guid or an integer"}

// Value returns the row's value in a column. Text, Binary and Guids are appended to memory,
// which must have room for Size bytes.
func (r *Reader) Value(memory []byte, column int) (edm.Value, []byte, error) {
	c := r.columns[column]
	from := len(memory)
	switch c.kind {
	case asBoolean:
		return edm.Boolean(c.boolean), memory, nil
	case asText, asBinary, asGuid:
		memory = append(memory, c.value...)
		b := memory[from:len(memory):len(memory)]
		switch c.kind {
		case asText:
			return edm.StringBytes(b), memory, nil
		case asGuid:
			return edm.GuidBytes(b), memory, nil
		}
		return edm.Binary(b), memory, nil
	}
	v, err := c.number()
	return v, memory, err
}

// number returns the row's value in a column of numbers.
func (c *chunk) number() (edm.Value, error) {
	if len(c.value) == 4 {
		n := binary.LittleEndian.Uint32(c.value)
		switch c.kind {
		case asInt32:
			return edm.Int32(int32(n)), nil
		case asUint32:
			return edm.Int64(int64(n)), nil
		case asDate:
			return dateTime(int64(int32(n))*(24*60*60), 0)
		}
		return edm.Double(float64(math.Float32frombits(n))), nil
	}
	n := int64(binary.LittleEndian.Uint64(c.value))
	switch c.kind {
	case asInt64, asUint32:
		return edm.Int64(n), nil
	case asUint64:
		if n < 0 {
			return edm.Value{}, &Error{fmt.Sprintf("%d is above the largest Edm.Int64, %d", uint64(n), int64(math.MaxInt64))}
		}
		return edm.Int64(n), nil
	case asDouble:
		return edm.Double(math.Float64frombits(uint64(n))), nil
	case asTicks:
		if t := edm.Ticks(n); t.Valid() {
			return edm.DateTime(t), nil
		}
		return edm.Value{}, &Error{fmt.Sprintf("%d is no time from 1601 to 9999", n)}
	}
	seconds, rest := n/c.scale, n%c.scale
	if rest < 0 {
		seconds, rest = seconds-1, rest+c.scale
	}
	nanoseconds := rest * (1e9 / c.scale)
	return dateTime(seconds, nanoseconds)
}

// dateTime returns the DateTime at a time since 1970.
func dateTime(seconds, nanoseconds int64) (edm.Value, error) {
	const perSecond = 10_000_000
	if nanoseconds%100 != 0 {
		return edm.Value{}, &Error{fmt.Sprintf("%d nanoseconds lose digits, because an Edm.DateTime has units of 100; round the times to microseconds", nanoseconds)}
	}
	if seconds >= -epoch/perSecond && seconds <= int64(edm.MaxTicks-epoch)/perSecond {
		return edm.DateTime(edm.Ticks(epoch + seconds*perSecond + nanoseconds/100)), nil
	}
	return edm.Value{}, &Error{fmt.Sprintf("%d seconds since 1970 are no time from 1601 to 9999", seconds)}
}
