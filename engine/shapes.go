package engine

import (
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

// checkedShapes remembers, in order, the shapes that the check of a batch came upon,
// for the encoding that follows. One goroutine at a time uses it.
type checkedShapes struct {
	cache *shapeCache
	list  []foundShape
	next  int
}

type foundShape struct {
	props edm.Properties
	shape *codec.Shape
}

// like reports whether props have the shape of f, as those of a batch mostly do.
// Names that programs share are compared without looking at their bytes.
func (f *foundShape) like(props edm.Properties) bool {
	if len(props) != len(f.props) {
		return false
	}
	for i := range props {
		p, other := &props[i], &f.props[i]
		if p.Value.Type() != other.Value.Type() || p.Name != other.Name {
			return false
		}
	}
	return true
}

// reset forgets everything and takes shapes from cache from here on.
func (c *checkedShapes) reset(cache *shapeCache) {
	clear(c.list)
	c.cache, c.list, c.next = cache, c.list[:0], 0
}

// known reports whether the names in props are known to be legal and distinct.
// A shape says nothing of the names of nulls.
func (c *checkedShapes) known(props edm.Properties) bool {
	if n := len(c.list); n > 0 && c.list[n-1].like(props) {
		c.list = append(c.list, foundShape{props, c.list[n-1].shape})
		return true
	}
	s := c.cache.find(props)
	if s == nil || s.Len() < len(props) {
		return false
	}
	c.list = append(c.list, foundShape{props, s})
	return true
}

// of returns the shape of props, which come in the order in which Known was
// asked of them.
func (c *checkedShapes) of(props edm.Properties) *codec.Shape {
	if c.next < len(c.list) && len(props) > 0 && &c.list[c.next].props[0] == &props[0] {
		c.next++
		return c.list[c.next-1].shape
	}
	return c.cache.of(props)
}
