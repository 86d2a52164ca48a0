package engine

import (
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// shapeCache remembers shapes whose names have been checked, so that a write
// pays for names only the first time they are seen. It has a fixed number of
// places: clients that invent names cannot make it grow.
type shapeCache struct {
	sets [shapeSets]shapeSet
	// last is the shape found last: most writers write one shape for long, and
	// to compare names costs less than to hash them.
	last atomic.Pointer[codec.Shape]
}

const (
	shapeSets = 256
	// shapeWays is how many shapes of equal hash live side by side. Two in
	// steady use must not drive each other out: a shape that is made anew is
	// defined anew in the log.
	shapeWays = 8
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
	set := c.set(props)
	set.ways[set.next.Add(1)%shapeWays].Store(s)
	return s
}

// checkedShapes remembers, in order, the shapes that the check of a batch came
// upon, for the encoding that follows.
type checkedShapes struct {
	cache *shapeCache
	list  []checkedShape
	next  int
}

type checkedShape struct {
	first *edm.Property // of the properties that have the shape
	shape *codec.Shape
}

func (c *checkedShapes) reset(cache *shapeCache) {
	clear(c.list)
	c.cache, c.list, c.next = cache, c.list[:0], 0
}

// known reports whether the names in props are known to be legal and distinct.
// A shape says nothing of the names of nulls.
func (c *checkedShapes) known(props edm.Properties) bool {
	for i := range props {
		if props[i].Value.IsNull() {
			return false
		}
	}
	s := c.cache.find(props)
	if s == nil {
		return false
	}
	c.list = append(c.list, checkedShape{&props[0], s})
	return true
}

// of returns the shape of props.
func (c *checkedShapes) of(props edm.Properties) *codec.Shape {
	if c.next < len(c.list) && len(props) > 0 && c.list[c.next].first == &props[0] {
		c.next++
		return c.list[c.next-1].shape
	}
	return c.cache.of(props)
}
