// Package opshapes finds the shapes of the ops of a batch.
package opshapes

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// Shapes are the shapes of the ops of a batch that are known when the batch is
// checked, by index of the op. One goroutine at a time uses it.
type Shapes struct {
	cache *codec.ShapeCache
	// shapes has nil for an op whose shape is not known.
	shapes []*codec.Shape
	// last and lastShape are the properties and the shape found last.
	last      edm.Properties
	lastShape *codec.Shape
}

// Reset prepares for a batch of n ops, whose shapes are looked up in cache.
func (o *Shapes) Reset(cache *codec.ShapeCache, n int) {
	clear(o.shapes)
	*o = Shapes{cache: cache, shapes: slices.Grow(o.shapes[:0], n)[:n]}
}

// Check looks up the shape of op i, whose properties are props. It is not ok unless the
// names in props, those of nulls included, are known to be legal and distinct and the
// values pass edm.CheckValues; bytes is then the length of all names, Strings and
// Binaries. It is for store.CheckBatch.
func (o *Shapes) Check(i int, props edm.Properties) (bytes int, ok bool) {
	if bytes, ok = o.likeLast(props); ok {
		o.shapes[i] = o.lastShape
		return bytes, true
	}
	s := o.cache.Find(props)
	if s == nil || s.Len() < len(props) {
		return 0, false // a shape says nothing of the names of nulls
	}
	o.shapes[i], o.last, o.lastShape = s, props, s
	return o.likeLast(props)
}

// likeLast is Check for properties that have the names and types of those of an earlier
// op, as the ops of a batch mostly do. Names that programs share are compared without
// looking at their bytes. With separate walks over the properties for the shape, the
// values and the length, an ordered load in batches of 100 needs 6 % more CPU
// (bench, load/order=sorted).
func (o *Shapes) likeLast(props edm.Properties) (bytes int, ok bool) {
	last := o.last
	if len(props) != len(last) {
		return 0, false
	}
	for i := range props {
		p, like := &props[i], &last[i]
		t := p.Value.Type()
		if t != like.Value.Type() || p.Name != like.Name {
			return 0, false
		}
		bytes += len(p.Name)
		switch t {
		case edm.TypeString:
			b := p.Value.Bytes()
			bytes += len(b)
			ok = len(b) <= edm.MaxStringUnits && (ascii(b) || utf8.Valid(b))
		case edm.TypeBinary:
			n := len(p.Value.Bytes())
			bytes += n
			ok = n <= edm.MaxBinaryBytes
		case edm.TypeInt64, edm.TypeDouble, edm.TypeGuid:
			ok = true
		default:
			ok = edm.CheckValues(props[i:i+1]) == nil
		}
		if !ok {
			return 0, false
		}
	}
	return bytes, len(props) > 0
}

// ascii reports whether b is ASCII. It does not branch on the bytes.
func ascii(b []byte) bool {
	var bits uint64
	if len(b) < 8 {
		for _, c := range b {
			bits |= uint64(c)
		}
		return bits < utf8.RuneSelf
	}
	for rest := b; len(rest) >= 8; rest = rest[8:] {
		bits |= binary.LittleEndian.Uint64(rest)
	}
	bits |= binary.LittleEndian.Uint64(b[len(b)-8:])
	return bits&0x8080808080808080 == 0
}

// Of returns the shape of op i, whose properties are props.
func (o *Shapes) Of(i int, props edm.Properties) *codec.Shape {
	if s := o.shapes[i]; s != nil {
		return s
	}
	return o.cache.Of(props)
}
