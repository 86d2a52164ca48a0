package sstable

import (
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// Row is a lazy view of a row in a file; it implements codec.ShapedRow. The zero Row is ready for Reader.Get. Get pins blocks of
// the cache until Release; the bytes of the values are valid until then. A Row is not safe for concurrent use, and must not be
// copied.
//
// A row of an Iterator reads its Strings and Binaries from the file when they are first asked for. A value that cannot be read
// is null, Err returns the reason, and the Iterator ends with the same error. Call Load before anything depends on a value, or
// Err after.
type Row struct {
	// Lazy lets Get load no values: Load does, before anything depends on one.
	Lazy bool
	// A caller that calls the embedded row itself saves a call for each property.
	rowgroup.Row
	pins  pins
	finds int // Gets since one did not find its key
}

// Release releases the blocks. The Row may be used for another Get. A Row without any, as each is before
// its first Get, costs little. One of Verify has big values, but no head.
func (r *Row) Release() {
	if p := &r.pins; p.head != (cache.Handle{}) || p.stored != nil || len(p.valueBlocks) > 0 {
		r.Attach(nil, nil)
		p.release()
	}
}

// pins are the pinned blocks of a Row; they implement rowgroup.Blocks.
type pins struct {
	r           *Reader
	fill        bool         // keep blocks in the cache
	only        int          // the row that values are read of, -1 if of others too
	missed      bool         // a heap unit was not in the cache
	stored      *storedGroup // nil if nothing was read
	head        cache.Handle // empty if the head is in stored
	hints       []cache.Hint // of the heap units of head, nil if the head is in stored
	heapUnit    cache.Handle // empty if the unit is in stored
	valueBlocks []cache.Handle
}

// hold pins the head h of r: in stored if pin is empty.
func (p *pins) hold(r *Reader, h *head, pin cache.Handle, stored *storedGroup) {
	p.r, p.head, p.stored, p.hints, p.only = r, pin, stored, nil, -1
	if pin != (cache.Handle{}) {
		p.hints = h.hints
	}
}

func (p *pins) release() {
	p.stored.free()
	p.stored = nil
	p.ReleaseValueBlocks()
	p.keepUnit(cache.Handle{})
	p.head.Release()
	p.head, p.hints = cache.Handle{}, nil
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
	pin, keep := cache.Handle{}, false
	if p.hints != nil {
		key := cache.Key{DB: p.r.o.CacheDB, File: p.r.o.Number, Offset: uint64(u.Off), Kind: kindHeapUnit}
		var ok bool
		if pin, ok = p.r.o.Cache.GetAt(key, &p.hints[u.Index]); !ok && p.fill {
			pin, ok, keep = p.r.o.Cache.AcquireKept(key, u.Raw, cache.Second)
		}
		if ok {
			p.keepUnit(pin)
			return pin.Bytes(), nil
		}
	}
	p.missed = true
	if keep {
		if err := p.r.loadHeapUnit(pin, h, u, p.stored); err != nil {
			return nil, err
		}
		p.hints[u.Index].Set(pin)
		p.keepUnit(pin)
		return pin.Bytes(), nil
	}
	if p.stored == nil {
		p.stored = newStored()
	}
	p.keepUnit(cache.Handle{})
	return p.r.ownHeapUnit(h, u, p.stored, p.only)
}

func (p *pins) keepUnit(pin cache.Handle) {
	p.heapUnit.Release()
	p.heapUnit = pin
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
