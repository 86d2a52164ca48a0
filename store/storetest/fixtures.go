package storetest

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
)

// key returns the key of a partition and a row.
func key(p, r string) edm.Key { return edm.Key{Partition: p, Row: r} }

// prop returns a property.
func prop(name string, v edm.Value) edm.Property { return edm.Property{Name: name, Value: v} }

// entity returns an entity without a Timestamp.
func entity(p, r string, props ...edm.Property) edm.Entity {
	return edm.Entity{Key: key(p, r), Properties: props}
}

// number returns an entity with the property N of value n.
func number(p, r string, n int) edm.Entity {
	return entity(p, r, prop("N", edm.Int32(int32(n))))
}

// numberOf returns the property N of e, 0 if it has none.
func numberOf(e edm.Entity) int32 {
	n, _ := e.Properties.Get("N").Int32()
	return n
}

// several returns n properties of one byte each, whose names begin with prefix.
func several(prefix string, n int) edm.Properties {
	p := make(edm.Properties, n)
	for i := range p {
		p[i] = edm.Property{Name: fmt.Sprintf("%s%03d", prefix, i), Value: edm.Boolean(true)}
	}
	return p
}

// propertySize returns what p adds to the size of an entity.
func propertySize(p edm.Property) int {
	return edm.EntitySize(edm.Key{}, edm.Properties{p}) - edm.EntitySize(edm.Key{}, nil)
}

// filling returns properties that add n bytes to the size of an entity. A property
// adds at least 22.
func filling(n int) edm.Properties {
	zeros := make([]byte, edm.MaxBinaryBytes)
	var p edm.Properties
	for i := 0; n > 0; i++ {
		name := fmt.Sprintf("F%03d", i)
		over := propertySize(prop(name, edm.Binary(nil)))
		size := min(n-over, edm.MaxBinaryBytes-100)
		if rest := n - over - size; rest > 0 && rest < over {
			size -= over
		}
		p = append(p, edm.Property{Name: name, Value: edm.Binary(zeros[:size])})
		n -= over + size
	}
	return p
}

// extremes returns the values of each type that an encoding is most likely to damage.
func extremes() edm.Properties {
	var p edm.Properties
	add := func(values ...edm.Value) {
		for _, v := range values {
			p = append(p, edm.Property{Name: fmt.Sprintf("V%02d", len(p)), Value: v})
		}
	}
	add(edm.String(""), edm.String(" "), edm.String("\x00\t\r\n\x7f"), edm.String("\u8868\U0001F600\ufffd\uffff\ufeff"),
		edm.String(strings.Repeat("x", edm.MaxStringUnits)), edm.String(strings.Repeat("\u8868", edm.MaxStringUnits)),
		edm.String(strings.Repeat("\U0001F600", edm.MaxStringUnits/2)))
	add(edm.Binary(nil), edm.Binary([]byte{0}), edm.Binary([]byte("\xff\xfe\x00")), edm.Binary(bytes.Repeat([]byte{0xA5}, edm.MaxBinaryBytes)))
	add(edm.Boolean(true), edm.Boolean(false))
	add(edm.Int32(0), edm.Int32(-1), edm.Int32(math.MinInt32), edm.Int32(math.MaxInt32))
	add(edm.Int64(0), edm.Int64(-1), edm.Int64(math.MinInt64), edm.Int64(math.MaxInt64), edm.Int64(1<<53+1))
	for _, bits := range []uint64{0x7ff8000000000001, 0xfff8000000000000, 0x7ffc00000000beef} {
		add(edm.Double(math.Float64frombits(bits))) // the bits of NaN are kept
	}
	add(edm.Double(0), edm.Double(math.Copysign(0, -1)), edm.Double(math.Inf(1)), edm.Double(math.Inf(-1)),
		edm.Double(math.MaxFloat64), edm.Double(math.SmallestNonzeroFloat64), edm.Double(0.1))
	add(edm.DateTime(edm.MinTicks), edm.DateTime(edm.MaxTicks), edm.DateTime(1))
	add(edm.Guid(edm.GUID{}), edm.GuidWords(math.MaxUint64, 0), edm.GuidWords(0, 1))
	return p
}

// family returns three partitions of ten entities each, for filters.
func family() []edm.Entity {
	var list []edm.Entity
	for i := range 30 {
		e := edm.Entity{
			Key:        edm.Key{Partition: string(rune('a' + i/10)), Row: fmt.Sprintf("%02d", i%10)},
			Properties: edm.Properties{{Name: "N", Value: edm.Int32(int32(i))}},
		}
		if i%2 == 0 {
			e.Properties = append(e.Properties, edm.Property{Name: "Even", Value: edm.Boolean(true)})
		}
		if i%3 == 0 {
			e.Properties = append(e.Properties, edm.Property{Name: "S", Value: edm.String(fmt.Sprint(i % 7))})
		}
		list = append(list, e)
	}
	return list
}
