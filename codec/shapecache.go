package codec

import (
	"slices"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/edm"
)

// ShapeCache finds the shape of properties, so that a writer checks names and
// makes shapes only once. It is set-associative, and drops all shapes when they
// take too much memory: clients that invent names cannot make it grow. Its methods
// may be called concurrently. The zero ShapeCache is empty.
type ShapeCache struct {
	sets [shapeSets]shapeSet
	// last is the shape found last. Most writers use one shape for a long time, and
	// comparing names costs less than hashing them: without it, an ordered load of
	// single-entity partitions needs 6.6 % more CPU (bench, load/order=sorted).
	last atomic.Pointer[Shape]
	used atomic.Int64 // estimated bytes of the shapes
}

const (
	shapeSets = 256
	// shapeWays is the associativity. Shapes in use must not evict each other,
	// because the log defines each new Shape again.
	shapeWays = 8
	// maxShapeBytes is far above what the shapes of a program take.
	maxShapeBytes = 8 << 20
)

type shapeSet struct {
	ways [shapeWays]atomic.Pointer[Shape]
	next atomic.Uint32 // the way to replace, modulo shapeWays
}

// set returns the set of the shape of props.
func (c *ShapeCache) set(props edm.Properties) *shapeSet {
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

// find returns the shape of props if it is cached, and otherwise the set that the shape would
// be in. Properties that are null are not part of a shape.
func (c *ShapeCache) find(props edm.Properties) (*Shape, *shapeSet) {
	if s := c.last.Load(); s != nil && s.Matches(props) {
		return s, nil
	}
	set := c.set(props)
	for i := range set.ways {
		if s := set.ways[i].Load(); s != nil && s.Matches(props) {
			c.last.Store(s)
			return s, nil
		}
	}
	return nil, set
}

// Of returns the shape of props from the cache, or makes and caches it. The names
// in props must be legal and distinct. A shape of more than MaxProperties, which no row
// has, is not cached, and serves for its Len only.
func (c *ShapeCache) Of(props edm.Properties) *Shape {
	s, set := c.find(props)
	if s != nil {
		return s
	}
	s = NewShape(props)
	if len(s.fields) <= MaxProperties {
		c.add(s, set)
	}
	return s
}

// sortedShape is what Sorted remembers of a shape.
type sortedShape struct {
	shape *Shape  // nil if the shape is sorted itself
	order []uint8 // for each property of shape its index in the other shape
}

var alreadySorted sortedShape

// Sorted returns the properties of props, whose shape is s, without nulls, in the order
// of their names by UTF-16 code units, and the shape of the result. If s is in that
// order, Sorted returns props and s; likewise if s has more than MaxProperties, since
// no row has such a shape. Otherwise it overwrites buf with the result.
func (c *ShapeCache) Sorted(buf *edm.Properties, props edm.Properties, s *Shape) (edm.Properties, *Shape) {
	if len(s.fields) > MaxProperties {
		return props, s
	}
	known := s.sorted.Load()
	if known == nil {
		order := s.sortedOrder()
		if order == nil {
			s.sorted.Store(&alreadySorted)
			return props, s
		}
		known = &sortedShape{order: order}
	} else if known.shape == nil {
		return props, s
	}
	dst := (*buf)[:0]
	if len(props) > len(s.fields) {
		dst = appendValues(dst, props)
		props = dst
	}
	values := len(dst)
	for _, i := range known.order {
		dst = append(dst, props[i])
	}
	*buf = slices.Delete(dst, 0, values)
	if known.shape == nil {
		known.shape = c.Of(*buf)
		s.sorted.Store(known)
	}
	return *buf, known.shape
}

// sortedOrder returns the indexes of the properties of s in the order of their names, nil if s is
// in that order.
func (s *Shape) sortedOrder() []uint8 {
	order := make([]uint8, len(s.fields))
	for i := range order {
		order[i] = uint8(i)
	}
	byName := func(i, j uint8) int { return edm.Compare(s.fields[i].name, s.fields[j].name) }
	if slices.IsSortedFunc(order, byName) {
		return nil
	}
	slices.SortFunc(order, byName)
	return order
}

// appendValues appends the properties of props that are not null to dst.
func appendValues(dst, props edm.Properties) edm.Properties {
	for i := range props {
		if !props[i].Value.IsNull() {
			dst = append(dst, props[i])
		}
	}
	return dst
}

// add adds s to a set, in place of another shape if the set is full.
func (c *ShapeCache) add(s *Shape, in *shapeSet) {
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

// ShapeFinder finds the shapes of rows in a ShapeCache, for a writer whose rows mostly have the same properties. One
// goroutine at a time uses it.
type ShapeFinder struct {
	cache *ShapeCache
	// shape is the shape found last. names are its names in the memory of the program, which mostly shares them
	// between rows: equal strings at one address are compared without looking at their bytes.
	shape *Shape
	names []string
}

// Reset makes f look up in cache and forget what it found, with the names.
func (f *ShapeFinder) Reset(cache *ShapeCache) {
	clear(f.names[:cap(f.names)]) // an earlier row can have had more than the last one
	*f = ShapeFinder{cache: cache, names: f.names[:0]}
}

// Find returns the shape of props if it is cached and none of them is null, and nil otherwise: a shape says nothing of
// the names of nulls. It keeps no reference to props, but to their names.
func (f *ShapeFinder) Find(props edm.Properties) *Shape {
	if f.likeLast(props) {
		return f.shape
	}
	s, _ := f.cache.find(props)
	if s == nil || s.Len() < len(props) {
		return nil
	}
	f.shape, f.names = s, f.names[:0]
	for i := range props {
		f.names = append(f.names, props[i].Name)
	}
	return s
}

// likeLast reports whether props have the names and types of those found last.
func (f *ShapeFinder) likeLast(props edm.Properties) bool {
	if len(props) != len(f.names) || len(props) == 0 {
		return false
	}
	for i := range props {
		p := &props[i]
		if p.Value.Type() != f.shape.fields[i].typ || p.Name != f.names[i] {
			return false
		}
	}
	return true
}
