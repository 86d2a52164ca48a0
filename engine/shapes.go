package engine

import (
	"slices"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// shapeCache remembers shapes whose names have been checked. It has a fixed number of
// places, and forgets all when they take too much: clients that invent names
// cannot make it grow. Its methods may be
// called concurrently. The zero shapeCache is empty.
type shapeCache struct {
	sets [shapeSets]shapeSet
	// last is the shape found last: most writers write one shape for long, and
	// to compare names costs less than to hash them.
	last atomic.Pointer[codec.Shape]
	used atomic.Int64 // about what the shapes take
}

const (
	shapeSets = 256
	// shapeWays is how many shapes of equal hash live side by side. Two in steady
	// use must not drive each other out: a shape that is made anew is defined
	// anew in the log.
	shapeWays = 8
	// maxShapeBytes is what the shapes may take: far more than those of programs do.
	maxShapeBytes = 8 << 20
)

type shapeSet struct {
	ways [shapeWays]atomic.Pointer[codec.Shape]
	next atomic.Uint32 // the way to replace next
}

// set returns where the shape of props has its place.
func (c *shapeCache) set(props edm.Properties) *shapeSet {
	h := uint64(0)
	for i := range props {
		p := &props[i]
		if p.Value.IsNull() {
			continue
		}
		h = (h ^ uint64(p.Value.Type()) ^ xxhash.Sum64String(p.Name)) * 0x9E3779B97F4A7C15
	}
	return &c.sets[h>>32%shapeSets]
}

// find returns the shape of props if it is known, else nil.
func (c *shapeCache) find(props edm.Properties) *codec.Shape {
	if s := c.last.Load(); s != nil && s.Matches(props) {
		return s
	}
	set := c.set(props)
	for i := range set.ways {
		if s := set.ways[i].Load(); s != nil && s.Matches(props) {
			c.last.Store(s)
			return s
		}
	}
	return nil
}

// of returns the shape of props, nulls left out, and remembers it.
func (c *shapeCache) of(props edm.Properties) *codec.Shape {
	if s := c.find(props); s != nil {
		return s
	}
	s := codec.NewShape(props)
	c.remember(s, c.set(props))
	return s
}

// remember puts s in the place of another shape.
func (c *shapeCache) remember(s *codec.Shape, in *shapeSet) {
	size := int64(s.MemBytes())
	if c.used.Add(size) > maxShapeBytes {
		for i := range c.sets {
			for k := range c.sets[i].ways {
				c.sets[i].ways[k].Store(nil)
			}
		}
		c.used.Store(size)
	}
	if old := in.ways[in.next.Add(1)%shapeWays].Swap(s); old != nil {
		c.used.Add(-int64(old.MemBytes()))
	}
}

// opShapes are the shapes of the ops of a batch that are known when the batch is
// checked, by index of the op. One goroutine at a time uses it.
type opShapes struct {
	cache *shapeCache
	// shapes has nil for an op whose shape is not known.
	shapes []*codec.Shape
	// last and lastShape are the properties and the shape found last.
	last      edm.Properties
	lastShape *codec.Shape
}

// reset prepares for a batch of n ops, whose shapes are looked up in cache.
func (o *opShapes) reset(cache *shapeCache, n int) {
	clear(o.shapes)
	*o = opShapes{cache: cache, shapes: slices.Grow(o.shapes[:0], n)[:n]}
}

// known looks up the shape of op i, whose properties are props, and reports
// whether all names in props, those of nulls included, are known to be legal and
// distinct. It is for store.CheckBatchFunc.
func (o *opShapes) known(i int, props edm.Properties) bool {
	s := o.lastShape
	if s == nil || !like(props, o.last) {
		if s = o.cache.find(props); s == nil || s.Len() < len(props) {
			return false // a shape says nothing of the names of nulls
		}
	}
	o.shapes[i], o.last, o.lastShape = s, props, s
	return true
}

// like reports whether a and b have the same names and types, as the ops of a
// batch mostly do. Names that programs share are compared without looking at
// their bytes.
func like(a, b edm.Properties) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Value.Type() != b[i].Value.Type() || a[i].Name != b[i].Name {
			return false
		}
	}
	return true
}

// of returns the shape of op i, whose properties are props.
func (o *opShapes) of(i int, props edm.Properties) *codec.Shape {
	if s := o.shapes[i]; s != nil {
		return s
	}
	return o.cache.of(props)
}
