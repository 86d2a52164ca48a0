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
	// finder has looked at this batch or at earlier ones since reset.
	finder codec.ShapeFinder
	// known has nil for an op whose shape is not known.
	known []*codec.Shape
}

// reset forgets all ops. Shapes are looked up in cache.
func (o *shapes) reset(cache *codec.ShapeCache) {
	clear(o.known)
	o.cache, o.known = cache, o.known[:0]
	o.finder.Reset(cache)
}

// begin prepares for a batch of n ops.
func (o *shapes) begin(n int) {
	clear(o.known)
	n = min(n, edm.MaxBatchOps) // a batch with more is refused
	o.known = slices.Grow(o.known[:0], n)[:n]
}

// check looks up the shape of op i, whose properties are props. It is not ok unless the
// names in props, those of nulls included, are known to be legal and distinct and the
// values pass edm.CheckValues; bytes is then the length of all names, Strings and
// Binaries. It is for store.CheckBatch.
func (o *shapes) check(i int, props edm.Properties) (bytes int, ok bool) {
	s := o.finder.Find(props)
	if s == nil {
		return 0, false
	}
	if i < len(o.known) {
		o.known[i] = s
	}
	return s.CheckValues(props)
}

// of returns the shape of op i, whose properties are props.
func (o *shapes) of(i int, props edm.Properties) *codec.Shape {
	if s := o.known[i]; s != nil {
		return s
	}
	return o.cache.Of(props)
}
