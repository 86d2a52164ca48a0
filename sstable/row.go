package sstable

import (
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// Row is a lazy view of a row in a file; it implements codec.ShapedRow. The zero Row
// is ready for Reader.Get. Get pins blocks of the cache until Release; the bytes of
// the values are valid until then. A Row is not safe for concurrent use, and must not
// be copied.
//
// A row of an Iterator reads its Strings and Binaries from the file when they are
// first asked for. A value that cannot be read is null, Err returns the reason, and
// the Iterator ends with the same error. Call Load before anything depends on a value,
// or Err after.
type Row struct {
	// A caller that calls the embedded row itself saves a call for each property.
	rowgroup.Row
	pins pins
}

// Release releases the blocks. The Row may be used for another Get.
func (r *Row) Release() {
	r.Attach(nil, nil)
	r.pins.release()
}

// pins are the pinned blocks of a Row; they implement rowgroup.Blocks.
type pins struct {
	r           *Reader
	fill        bool         // keep blocks in the cache
	missed      bool         // a heap unit was not in the cache
	stored      *storedGroup // as it is in the file, nil if it was not read
	head        cache.Handle
	hints       []cache.Hint // of the heap units of head; nil for a head outside the cache
	heapUnit    cache.Handle
	valueBlocks []cache.Handle
}

func (p *pins) release() {
	p.releaseStored()
	p.ReleaseValueBlocks()
	p.heapUnit.Release()
	p.head.Release()
	p.heapUnit, p.head, p.hints = cache.Handle{}, cache.Handle{}, nil
}

func (p *pins) releaseStored() {
	if p.stored != nil {
		storedGroups.Put(p.stored)
		p.stored = nil
	}
}

// ReleaseValueBlocks releases the big values of the row before.
func (p *pins) ReleaseValueBlocks() {
	for i, e := range p.valueBlocks {
		e.Release()
		p.valueBlocks[i] = cache.Handle{}
	}
	p.valueBlocks = p.valueBlocks[:0]
}

// HeapUnit returns a heap unit and releases the one before.
func (p *pins) HeapUnit(h *rowgroup.Head, u *rowgroup.HeapUnit) ([]byte, error) {
	var hint *cache.Hint
	if p.hints != nil {
		hint = &p.hints[u.Index]
	}
	key := cache.Key{DB: p.r.o.CacheDB, File: p.r.o.Number, Offset: uint64(u.Off), Kind: kindHeapUnit}
	pin, ok := p.r.o.Cache.GetAt(key, hint)
	if !ok {
		p.missed = true
		var err error
		if pin, err = p.r.loadHeapUnit(key, h, u, p.stored, p.fill); err != nil {
			return nil, err
		}
	}
	p.heapUnit.Release()
	p.heapUnit = pin
	return pin.Bytes(), nil
}

// ValueBlock returns a big value, valid as long as the row.
func (p *pins) ValueBlock(e *rowgroup.ValueBlock) ([]byte, error) {
	pin, err := p.r.valueBlock(e, p.stored, p.fill)
	if err != nil {
		return nil, err
	}
	p.valueBlocks = append(p.valueBlocks, pin)
	return pin.Bytes(), nil
}
