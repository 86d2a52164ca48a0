package sstable

import (
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/s2"

	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// storedGroup is a group, or a part of one, as it is in the file.
type storedGroup struct {
	off   int64
	bytes []byte
}

// storedGroups has buffers of *storedGroup for all readers.
var storedGroups = sync.Pool{New: func() any { return new(storedGroup) }}

// maxStoredBytes is the length of the longest group that is read at once.
const maxStoredBytes = 64 << 10

// readStored reads n bytes at off.
func (r *Reader) readStored(off int64, n int) (*storedGroup, error) {
	s := storedGroups.Get().(*storedGroup)
	if cap(s.bytes) < n {
		s.bytes = make([]byte, n)
	}
	s.off, s.bytes = off, s.bytes[:n]
	if err := r.read(s.bytes, off); err != nil {
		storedGroups.Put(s)
		return nil, err
	}
	return s, nil
}

// section returns n bytes at off, and false if s does not have them.
func (s *storedGroup) section(off int64, n int) ([]byte, bool) {
	if s == nil || off < s.off || off+int64(n) > s.off+int64(len(s.bytes)) {
		return nil, false
	}
	return s.bytes[off-s.off:][:n:n], true
}

// head is a decoded head in the cache.
type head struct {
	rowgroup.Head
	hints []cache.Hint // one for each heap unit

	uses     atomic.Uint32 // by rows: one for each get, scanUses for each scan
	arranged bool          // uses are not counted
}

// A head is laid out by rows after some uses by rows. That costs as much as ten gets or
// one scan gain by it, and filters need the columns. With a cache of 32 MiB, gets need
// 12 % less CPU than if each head were laid out when it is read, and scans 17 %
// (bench, get/key=present/cache=32MiB and scan/range=table/cache=32MiB).
const (
	arrangeAfter = 8
	scanUses     = 4
)

// head returns the head of group g, pinned. If the cache does not have the head, and
// whole is set, head reads the whole group at once. It then returns the stored group
// for loadHeapUnit, and the caller puts it back to storedGroups.
func (r *Reader) head(g int, whole, fill bool) (*head, cache.Handle, *storedGroup, error) {
	e := &r.index.groups[g]
	key := cache.Key{DB: r.o.CacheDB, File: r.o.Number, Offset: uint64(e.off), Kind: kindHead}
	if pin, ok := r.o.Cache.GetAt(key, &r.heads[g]); ok {
		return pin.Value().(*head), pin, nil, nil
	}
	pin, ok := r.o.Cache.Acquire(key, e.head, fill)
	if ok {
		return pin.Value().(*head), pin, nil, nil
	}
	var stored *storedGroup
	var err error
	if whole && e.len <= maxStoredBytes {
		if stored, err = r.readStored(e.off, e.len); err == nil {
			copy(pin.Bytes(), stored.bytes)
		}
	} else {
		err = r.read(pin.Bytes(), e.off)
	}
	if err == nil {
		var h *head
		if h, err = r.decodeHead(pin, e); err == nil {
			pin.Fill(h, h.memBytes())
		}
	}
	if err != nil {
		if stored != nil {
			storedGroups.Put(stored)
		}
		pin.Fail()
		return nil, cache.Handle{}, nil, err
	}
	return pin.Value().(*head), pin, stored, nil
}

// decodeHead decodes the head in pin.
func (r *Reader) decodeHead(pin cache.Handle, e *groupEntry) (*head, error) {
	p := pin.Bytes()
	if !r.bind.Check(p, e.off) {
		return nil, r.corruptf(e.off, "head of %d bytes: wrong sum", len(p))
	}
	h, ok := pin.Value().(*head)
	if !ok {
		h = new(head)
	}
	if err := h.Decode(p, e.off, e.len, r.shapes); err != nil {
		return nil, r.corruptf(e.off, "%v", err)
	}
	if h.Rows() != e.rows {
		return nil, r.corruptf(e.off, "group of %d rows, the index says %d", h.Rows(), e.rows)
	}
	if n := len(h.HeapUnits); len(h.hints) < n {
		h.hints = make([]cache.Hint, n)
	}
	h.uses.Store(0)
	h.arranged = false
	return h, nil
}

func (h *head) memBytes() int { return h.MemBytes() + hintBytes*len(h.hints) }

// headByRows is head for a reader of rows, which counts as the given number of uses. A
// head that is used often is replaced in the cache by one that is laid out by rows.
// Readers that pinned the old one keep it.
func (r *Reader) headByRows(g int, whole, fill bool, uses uint32) (*head, cache.Handle, *storedGroup, error) {
	h, pin, stored, err := r.head(g, whole, fill)
	if err != nil || !fill || h.arranged || h.uses.Load() >= arrangeAfter {
		return h, pin, stored, err
	}
	if n := h.uses.Add(uses); n < arrangeAfter || n-uses >= arrangeAfter {
		return h, pin, stored, nil
	}
	by, ok := r.o.Cache.Renew(pin)
	if !ok {
		return h, pin, stored, nil
	}
	copy(by.Bytes(), pin.Bytes())
	n, err := r.decodeHead(by, &r.index.groups[g])
	if err != nil { // the memory of the block was damaged
		by.Fail()
		return h, pin, stored, nil
	}
	work := storedGroups.Get().(*storedGroup)
	work.bytes = n.Arrange(work.bytes)
	storedGroups.Put(work)
	n.arranged = true
	by.Replace(pin, &r.heads[g], n, n.memBytes())
	pin.Release()
	return n, by, stored, nil
}

// loadHeapUnit returns a decoded heap unit of h, pinned, that was not in the cache.
// stored may be nil.
func (r *Reader) loadHeapUnit(key cache.Key, h *rowgroup.Head, u *rowgroup.HeapUnit, stored *storedGroup, fill bool) (cache.Handle, error) {
	pin, ok := r.o.Cache.Acquire(key, u.Raw, fill)
	if ok {
		return pin, nil
	}
	err := r.decompress(pin.Bytes(), u.Off, u.Stored, stored, "heap unit")
	if err == nil {
		if damage := h.CheckHeapUnit(u, pin.Bytes()); damage != nil {
			err = r.corruptf(u.Off, "heap unit: %v", damage)
		}
	}
	if err != nil {
		pin.Fail()
		return cache.Handle{}, err
	}
	pin.Fill(nil, 0)
	return pin, nil
}

// valueBlock returns a decoded big value, pinned. stored may be nil.
func (r *Reader) valueBlock(e *rowgroup.ValueBlock, stored *storedGroup, fill bool) (cache.Handle, error) {
	key := cache.Key{DB: r.o.CacheDB, File: r.o.Number, Offset: uint64(e.Off), Kind: kindValueBlock}
	pin, ok := r.o.Cache.Get(key)
	if ok {
		return pin, nil
	}
	if pin, ok = r.o.Cache.Acquire(key, e.Raw, fill); ok {
		return pin, nil
	}
	if err := r.decompress(pin.Bytes(), e.Off, e.Stored, stored, "value block"); err != nil {
		pin.Fail()
		return cache.Handle{}, err
	}
	pin.Fill(nil, 0)
	return pin, nil
}

// decompress decodes the section of n stored bytes at off into raw. stored may be nil.
func (r *Reader) decompress(raw []byte, off int64, n int, stored *storedGroup, what string) error {
	p, ok := stored.section(off, n)
	if !ok {
		s, err := r.readStored(off, n)
		if err != nil {
			return err
		}
		defer storedGroups.Put(s)
		p = s.bytes
	}
	if !r.bind.Check(p, off) {
		return r.corruptf(off, "%s of %d bytes: wrong sum", what, n)
	}
	p = p[:n-sumBytes]
	if len(p) == len(raw) {
		copy(raw, p)
		return nil
	}
	if n, err := s2.DecodedLen(p); err != nil || n != len(raw) {
		return r.corruptf(off, "%s decodes to %d bytes, not %d", what, n, len(raw))
	}
	if _, err := s2.Decode(raw, p); err != nil {
		return r.corruptf(off, "%s: %v", what, err)
	}
	return nil
}
