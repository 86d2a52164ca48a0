package sstable

import (
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/sstable/group"
)

// Row is a lazy view of a row in a file; it implements codec.ShapedRow. The
// zero Row is ready for Reader.Get; afterwards it pins blocks of the cache until
// Release, and the bytes of its values are valid as long. It is not safe for
// concurrent use, and must not be copied.
//
// A row that came from an Iterator reads its strings and binaries from the file
// when they are first asked for. If that fails, they are null, Err says why, and
// the Iterator ends with the same error: whoever acts on a value before the next
// step calls Load first, or looks at Err after.
type Row struct {
	// View is the row itself: who asks it for each property saves a call on the
	// way.
	View
	pins pins
}

// View is a Row without its pins.
type View = group.Row

// Release drops the pins. The Row may be used for another Get.
func (r *Row) Release() {
	r.Attach(nil, nil)
	r.pins.release()
}

// pins are the blocks that a Row holds; it implements group.Blocks.
type pins struct {
	r       *Reader
	fill    bool // keep blocks in the cache
	head    cache.Handle
	hints   []cache.Hint // of the units of head; nil for a head that is not of the cache
	unit    cache.Handle
	extents []cache.Handle
}

func (p *pins) release() {
	p.releaseExtents()
	p.unit.Release()
	p.head.Release()
	p.unit, p.head, p.hints = cache.Handle{}, cache.Handle{}, nil
}

func (p *pins) releaseExtents() {
	for i, e := range p.extents {
		e.Release()
		p.extents[i] = cache.Handle{}
	}
	p.extents = p.extents[:0]
}

// Unit returns a heap unit and lets go of the one before.
func (p *pins) Unit(h *group.Head, u *group.Unit) ([]byte, error) {
	var hint *cache.Hint
	if p.hints != nil {
		hint = &p.hints[u.Index]
	}
	pin, err := p.r.unit(h, u, hint, p.fill)
	if err != nil {
		return nil, err
	}
	p.unit.Release()
	p.unit = pin
	return pin.Bytes(), nil
}

// Extent returns a big value, for as long as the row.
func (p *pins) Extent(e *group.Extent) ([]byte, error) {
	pin, err := p.r.extent(e, p.fill)
	if err != nil {
		return nil, err
	}
	p.extents = append(p.extents, pin)
	return pin.Bytes(), nil
}
