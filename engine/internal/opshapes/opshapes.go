// Package opshapes finds the shapes of the ops of a batch.
package opshapes

import (
	"slices"

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
	if o.likeLast(props) {
		o.shapes[i] = o.lastShape
		return o.lastShape.CheckValues(props)
	}
	s := o.cache.Find(props)
	if s == nil || s.Len() < len(props) {
		return 0, false // a shape says nothing of the names of nulls
	}
	o.shapes[i], o.last, o.lastShape = s, props, s
	return s.CheckValues(props)
}

// likeLast reports whether props have the names and types of those of an earlier op, as
// the ops of a batch mostly do. Names that programs share are compared without looking at
// their bytes.
func (o *Shapes) likeLast(props edm.Properties) bool {
	last := o.last
	if len(props) != len(last) || len(last) == 0 {
		return false
	}
	for i := range props {
		p := &props[i]
		if p.Value.Type() != o.lastShape.Type(i) || p.Name != last[i].Name {
			return false
		}
	}
	return true
}

// Of returns the shape of op i, whose properties are props.
func (o *Shapes) Of(i int, props edm.Properties) *codec.Shape {
	if s := o.shapes[i]; s != nil {
		return s
	}
	return o.cache.Of(props)
}
