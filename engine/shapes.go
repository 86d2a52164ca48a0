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
	slots [shapeSlots]atomic.Pointer[codec.Shape]
}

const shapeSlots = 1024

// slot returns where the shape of props has its place. Nulls count, so that
// props with a null has no place among the shapes of props without.
func (c *shapeCache) slot(props edm.Properties) *atomic.Pointer[codec.Shape] {
	h := uint64(len(props))
	for i := range props {
		p := &props[i]
		h = (h ^ uint64(p.Value.Type()) ^ xxhash.Sum64String(p.Name)) * 0x9E3779B97F4A7C15
	}
	return &c.slots[h>>32%shapeSlots]
}

// find returns the shape of props if it is known, else nil.
func (c *shapeCache) find(props edm.Properties) *codec.Shape {
	if s := c.slot(props).Load(); s != nil && s.Matches(props) {
		return s
	}
	return nil
}

// known reports whether the names in props are known to be legal and distinct.
func (c *shapeCache) known(props edm.Properties) bool { return c.find(props) != nil }

// add returns props without nulls and their shape, which it remembers.
func (c *shapeCache) add(props edm.Properties) (edm.Properties, *codec.Shape) {
	for i := range props {
		if props[i].Value.IsNull() {
			props = withoutNulls(props)
			break
		}
	}
	slot := c.slot(props)
	if s := slot.Load(); s != nil && s.Matches(props) {
		return props, s
	}
	s := codec.NewShape(props)
	slot.Store(s)
	return props, s
}

func withoutNulls(props edm.Properties) edm.Properties {
	kept := make(edm.Properties, 0, len(props))
	for _, p := range props {
		if !p.Value.IsNull() {
			kept = append(kept, p)
		}
	}
	return kept
}
