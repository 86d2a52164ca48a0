// Package shapes remembers the shapes of what is written, so that a write pays
// for names only the first time they are seen.
package shapes

import (
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// Cache remembers shapes whose names have been checked. It has a fixed number of
// places, and forgets all when they take too much: clients that invent names
// cannot make it grow. Its methods may be
// called concurrently. The zero Cache is empty.
type Cache struct {
	sets [cacheSets]set
	// last is the shape found last: most writers write one shape for long, and
	// to compare names costs less than to hash them.
	last atomic.Pointer[codec.Shape]
	used atomic.Int64 // about what the shapes take
}

const (
	cacheSets = 256
	// setWays is how many shapes of equal hash live side by side. Two in steady
	// use must not drive each other out: a shape that is made anew is defined
	// anew in the log.
	setWays = 8
	// maxBytes is what the shapes may take: far more than those of programs do.
	maxBytes = 8 << 20
)

type set struct {
	ways [setWays]atomic.Pointer[codec.Shape]
	next atomic.Uint32 // the way to replace next
}

// set returns where the shape of props has its place.
func (c *Cache) set(props edm.Properties) *set {
	h := uint64(0)
	for i := range props {
		p := &props[i]
		if p.Value.IsNull() {
			continue
		}
		h = (h ^ uint64(p.Value.Type()) ^ xxhash.Sum64String(p.Name)) * 0x9E3779B97F4A7C15
	}
	return &c.sets[h>>32%cacheSets]
}

// Find returns the shape of props if it is known, else nil.
func (c *Cache) Find(props edm.Properties) *codec.Shape {
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

// Of returns the shape of props, nulls left out, and remembers it.
func (c *Cache) Of(props edm.Properties) *codec.Shape {
	if s := c.Find(props); s != nil {
		return s
	}
	s := codec.NewShape(props)
	c.remember(s, c.set(props))
	return s
}

// remember puts s in the place of another shape.
func (c *Cache) remember(s *codec.Shape, in *set) {
	size := int64(s.MemBytes())
	if c.used.Add(size) > maxBytes {
		for i := range c.sets {
			for k := range c.sets[i].ways {
				c.sets[i].ways[k].Store(nil)
			}
		}
		c.used.Store(size)
	}
	if old := in.ways[in.next.Add(1)%setWays].Swap(s); old != nil {
		c.used.Add(-int64(old.MemBytes()))
	}
}

// Checked remembers, in order, the shapes that the check of a batch came upon,
// for the encoding that follows. One goroutine at a time uses it.
type Checked struct {
	cache *Cache
	list  []found
	next  int
}

type found struct {
	props edm.Properties
	shape *codec.Shape
}

// like reports whether props have the shape of f, as those of a batch mostly do.
// Names that programs share are compared without looking at their bytes.
func (f *found) like(props edm.Properties) bool {
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

// Reset forgets everything and takes shapes from cache from here on.
func (c *Checked) Reset(cache *Cache) {
	clear(c.list)
	c.cache, c.list, c.next = cache, c.list[:0], 0
}

// Known reports whether the names in props are known to be legal and distinct.
// A shape says nothing of the names of nulls.
func (c *Checked) Known(props edm.Properties) bool {
	if n := len(c.list); n > 0 && c.list[n-1].like(props) {
		c.list = append(c.list, found{props, c.list[n-1].shape})
		return true
	}
	s := c.cache.Find(props)
	if s == nil || s.Len() < len(props) {
		return false
	}
	c.list = append(c.list, found{props, s})
	return true
}

// Of returns the shape of props, which come in the order in which Known was
// asked of them.
func (c *Checked) Of(props edm.Properties) *codec.Shape {
	if c.next < len(c.list) && len(props) > 0 && &c.list[c.next].props[0] == &props[0] {
		c.next++
		return c.list[c.next-1].shape
	}
	return c.cache.Of(props)
}
