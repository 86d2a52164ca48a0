package batch

import (
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// shapes are the shapes of the ops of a batch that are known when the batch is
// checked, by index of the op. One goroutine at a time uses it.
type shapes struct {
	cache *codec.ShapeCache
	// known has nil for an op whose shape is not known.
	known []*codec.Shape
	// last and lastShape are the properties and the shape found last, of this batch or an
	// earlier one since reset.
	last      edm.Properties
	lastShape *codec.Shape
}

// reset forgets all ops. Shapes are looked up in cache.
func (o *shapes) reset(cache *codec.ShapeCache) {
	clear(o.known)
	*o = shapes{cache: cache, known: o.known[:0]}
}

// begin prepares for a batch of n ops.
func (o *shapes) begin(n int) {
	clear(o.known)
	o.known = slices.Grow(o.known[:0], n)[:n]
}

// check looks up the shape of op i, whose properties are props. It is not ok unless the
// names in props, those of nulls included, are known to be legal and distinct and the
// values pass edm.CheckValues; bytes is then the length of all names, Strings and
// Binaries. It is for store.CheckBatch.
func (o *shapes) check(i int, props edm.Properties) (bytes int, ok bool) {
	if o.likeLast(props) {
		o.known[i] = o.lastShape
		return o.lastShape.CheckValues(props)
	}
	s := o.cache.Find(props)
	if s == nil || s.Len() < len(props) {
		return 0, false // a shape says nothing of the names of nulls
	}
	o.known[i], o.last, o.lastShape = s, props, s
	return s.CheckValues(props)
}

// likeLast reports whether props have the names and types of those of an earlier op, as
// the ops of a batch mostly do. Names that programs share are compared without looking at
// their bytes.
func (o *shapes) likeLast(props edm.Properties) bool {
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

// of returns the shape of op i, whose properties are props.
func (o *shapes) of(i int, props edm.Properties) *codec.Shape {
	if s := o.known[i]; s != nil {
		return s
	}
	return o.cache.Of(props)
}
