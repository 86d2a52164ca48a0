package sstable

import (
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// Row is a lazy view of a row in a file; it implements codec.ShapedRow. The
// zero Row is ready for Reader.Get; afterwards it pins blocks of the cache until
// Release, and the bytes of its values are valid as long. It is not safe for
// concurrent use, and must not be copied.
//
// A row that came from an Iterator reads its strings and binaries from the file
// when they are first asked for. If that fails, they are null, Err returns the
// reason, and the Iterator ends with the same error. Call Load before anything
// depends on a value, or Err after.
type Row struct {
	// A caller that asks the embedded row itself for each property saves a call
	// on the way.
	rowgroup.Row
	pins pins
}

// Release drops the pins. The Row may be used for another Get.
func (r *Row) Release() {
	r.Attach(nil, nil)
	r.pins.release()
}

// pins are the blocks that a Row holds; it implements rowgroup.Blocks.
type pins struct {
	r           *Reader
	fill        bool // keep blocks in the cache
	head        cache.Handle
	hints       []cache.Hint // of the units of head; nil for a head that is not of the cache
	heapUnit    cache.Handle
	valueBlocks []cache.Handle
}

func (p *pins) release() {
	p.releaseValueBlocks()
	p.heapUnit.Release()
	p.head.Release()
	p.heapUnit, p.head, p.hints = cache.Handle{}, cache.Handle{}, nil
}

func (p *pins) releaseValueBlocks() {
	for i, e := range p.valueBlocks {
		e.Release()
		p.valueBlocks[i] = cache.Handle{}
	}
	p.valueBlocks = p.valueBlocks[:0]
}

// Unit returns a heap unit and lets go of the one before.
func (p *pins) HeapUnit(h *rowgroup.Head, u *rowgroup.HeapUnit) ([]byte, error) {
	var hint *cache.Hint
	if p.hints != nil {
		hint = &p.hints[u.Index]
	}
	pin, err := p.r.heapUnit(h, u, hint, p.fill)
	if err != nil {
		return nil, err
	}
	p.heapUnit.Release()
	p.heapUnit = pin
	return pin.Bytes(), nil
}

// Extent returns a big value, for as long as the row.
func (p *pins) ValueBlock(e *rowgroup.ValueBlock) ([]byte, error) {
	pin, err := p.r.valueBlock(e, p.fill)
	if err != nil {
		return nil, err
	}
	p.valueBlocks = append(p.valueBlocks, pin)
	return pin.Bytes(), nil
}
