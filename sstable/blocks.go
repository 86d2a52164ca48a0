package sstable

import (
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/arena"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/sstable/internal/compression"
	"github.com/tablerock-db/tablerock/sstable/internal/groupindex"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// storedGroup is the memory of a reader for a group: for its bytes as they are in the
// file, and for what the cache does not keep.
type storedGroup struct {
	off   int64
	bytes []byte            // of the group or of a part of it; empty if none was read
	rest  *groupindex.Group // the group if only its head was read, else nil
	apart []byte            // for a head whose group was read after it
	head  head              // in bytes or apart, if the cache does not keep it
	unit  []byte            // for a decoded heap unit that the cache does not keep
}

// storedGroups has free memory of all readers. Without it, each get that reads a group
// would allocate.
var storedGroups = sync.Pool{New: func() any { return new(storedGroup) }}

const (
	// maxStoredBytes is the length of the longest group that is read at once.
	maxStoredBytes = 64 << 10
	// maxFreeBytes is the length of the longest memory in storedGroups: that of the longest value, of
	// three bytes for each UTF-16 code unit, with its sum.
	maxFreeBytes = 3*edm.MaxStringUnits + sumBytes
)

func newStored() *storedGroup { return storedGroups.Get().(*storedGroup) }

// free releases s, which may be nil.
func (s *storedGroup) free() {
	if s != nil && max(cap(s.bytes), cap(s.apart), cap(s.unit)) <= maxFreeBytes {
		arena.Poison(s.bytes)
		arena.Poison(s.apart)
		arena.Poison(s.unit)
		s.bytes, s.rest = s.bytes[:0], nil
		storedGroups.Put(s)
	}
}

// read reads n bytes at off. After an error s has no bytes.
func (s *storedGroup) read(r *Reader, off int64, n int) error {
	if cap(s.bytes) < n {
		s.bytes = make([]byte, n)
	}
	s.off, s.bytes, s.rest = off, s.bytes[:n], nil
	err := r.read(s.bytes, off)
	if err != nil {
		s.bytes = s.bytes[:0]
	}
	return err
}

// readRest reads the whole group if its head was read alone: a reader of one heap unit
// mostly needs the others. The head stays valid.
func (s *storedGroup) readRest(r *Reader) error {
	e := s.rest
	s.bytes, s.apart = s.apart, s.bytes
	return s.read(r, e.Off, e.Len)
}

// lacks reports whether off is in the group of which only the head was read.
func (s *storedGroup) lacks(off int64) bool {
	return s != nil && s.rest != nil && off >= s.rest.Off && off < s.rest.Off+int64(s.rest.Len)
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
	hints      []cache.Hint // one for each heap unit
	firstHints [6]cache.Hint

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

// head returns the head of group g: pinned, or in stored if the cache does not keep it.
// If the cache does not have the head, stored is a part of the group as it is in the file:
// the head and the heap unit of a key that is not nil, or else the group if whole is set.
// The caller frees stored after the last use of the head.
func (r *Reader) head(g int, key []byte, whole, fill bool) (h *head, pin cache.Handle, stored *storedGroup, err error) {
	e := &r.index.Groups[g]
	at := cache.Key{DB: r.o.CacheDB, File: r.o.Number, Offset: uint64(e.Off), Kind: kindHead}
	if pin, ok := r.o.Cache.GetAt(at, &r.heads[g]); ok {
		return pin.Value().(*head), pin, nil, nil
	}
	keep := false
	if fill {
		// To copy and decode a head into the cache costs as much as five gets gain by it. With
		// a cache of 32 MiB, gets need 6 % less CPU than if it kept heads as often as heap
		// units (bench, get/key=present/cache=32MiB).
		var loaded bool
		if pin, loaded, keep = r.o.Cache.AcquireKept(at, e.Head, cache.Seldom); loaded {
			return pin.Value().(*head), pin, nil, nil
		}
	}
	return r.loadHead(g, key, whole, pin, keep)
}

// loadHead is head for one that must be read. With keep it ends the load of pin.
func (r *Reader) loadHead(g int, key []byte, whole bool, pin cache.Handle, keep bool) (h *head, _ cache.Handle, stored *storedGroup, err error) {
	filled := !keep
	defer pin.FailUnless(&filled)
	e := &r.index.Groups[g]
	from, to := e.Before, e.HeadEnd()
	switch {
	case e.Len > maxStoredBytes:
	case key != nil:
		from, to = e.Around(key)
	case whole:
		from, to = 0, e.Len
	}
	stored = newStored()
	if err = stored.read(r, e.Off+int64(from), to-from); err == nil {
		if key == nil && !whole && e.Len <= maxStoredBytes {
			stored.rest = e
		}
		p := stored.bytes[e.Before-from:][:e.Head:e.Head]
		if keep {
			copy(pin.Bytes(), p)
			h, err = r.decodePinned(pin, e)
		} else {
			h = &stored.head
			err = r.decodeHead(h, p, e)
		}
	}
	if err != nil {
		stored.free()
		return nil, cache.Handle{}, nil, err
	}
	if keep {
		pin.Fill(h, r.memBytes(h))
		filled = true
		r.heads[g].Set(pin)
	}
	return h, pin, stored, nil
}

// decodePinned decodes the head in a block of the cache that is being loaded.
func (r *Reader) decodePinned(pin cache.Handle, e *groupindex.Group) (*head, error) {
	h, ok := pin.Value().(*head)
	if !ok {
		h = new(head)
	}
	if err := r.decodeHead(h, pin.Bytes(), e); err != nil {
		return nil, err
	}
	if n := len(h.HeapUnits); n <= len(h.firstHints) {
		h.hints = h.firstHints[:]
	} else if len(h.hints) < n {
		h.hints = make([]cache.Hint, n)
	}
	h.uses.Store(0)
	h.arranged = false
	return h, nil
}

// decodeHead decodes the head p of a group into h.
func (r *Reader) decodeHead(h *head, p []byte, e *groupindex.Group) error {
	if !r.bind.Check(p, e.HeadOff()) {
		return r.corruptf(e.HeadOff(), "head of %d bytes: wrong sum", len(p))
	}
	if err := h.Decode(p, e.Off, e.Before, e.Len, r.shapes); err != nil {
		return r.corruptf(e.Off, "%v", err)
	}
	if h.Rows() != e.Rows {
		return r.corruptf(e.Off, "group of %d rows, the index says %d", h.Rows(), e.Rows)
	}
	if r.o.Stamp != 0 && !h.Assign(r.o.Seq, r.o.Stamp) {
		return r.corruptf(e.Off, "entries of a loaded file have sequence numbers")
	}
	return nil
}

func (r *Reader) memBytes(h *head) int { return h.MemBytes() + hintBytes*len(h.hints) }

// headByRows is head for a reader of rows, which counts as the given number of uses. A
// head that is used often is replaced in the cache by one that is laid out by rows.
// Readers that pinned the old one keep it.
func (r *Reader) headByRows(g int, key []byte, whole, fill bool, uses uint32) (*head, cache.Handle, *storedGroup, error) {
	h, pin, stored, err := r.head(g, key, whole, fill)
	if uses == 0 || err != nil || !fill || pin == (cache.Handle{}) || h.arranged || h.uses.Load() >= arrangeAfter {
		return h, pin, stored, err
	}
	if n := h.uses.Add(uses); n < arrangeAfter || n-uses >= arrangeAfter {
		return h, pin, stored, nil
	}
	by, ok := r.o.Cache.Renew(pin, len(pin.Bytes()))
	if !ok {
		return h, pin, stored, nil
	}
	copy(by.Bytes(), pin.Bytes())
	n, err := r.decodePinned(by, &r.index.Groups[g])
	if err != nil { // the memory of the block was damaged
		by.Fail()
		return h, pin, stored, nil
	}
	work := newStored()
	work.bytes = n.Arrange(work.bytes)
	work.free()
	n.arranged = true
	by.Replace(pin, n, r.memBytes(n))
	r.heads[g].Set(by)
	pin.Release()
	return n, by, stored, nil
}

// loadHeapUnit loads a heap unit of h into a block of the cache, or ends the load.
func (r *Reader) loadHeapUnit(pin cache.Handle, h *rowgroup.Head, u *rowgroup.HeapUnit, stored *storedGroup) error {
	filled := false
	defer pin.FailUnless(&filled)
	p, err := r.decompress(pin.Bytes(), u.Off, u.Stored, stored, "heap unit")
	if err == nil {
		err = r.damagedUnit(u, h.CheckHeapUnit(u, p, u.First, u.End))
	}
	if err != nil {
		return err
	}
	copy(pin.Bytes(), p) // of itself if it was compressed
	pin.Fill(nil, 0)
	filled = true
	return nil
}

// ownHeapUnit returns a decoded heap unit of h in the memory of stored, valid until the
// next one. If row is not negative, it may only be used for that row.
func (r *Reader) ownHeapUnit(h *rowgroup.Head, u *rowgroup.HeapUnit, stored *storedGroup, row int) ([]byte, error) {
	if len(stored.bytes) == 0 {
		if err := stored.read(r, u.Off, u.Stored); err != nil {
			return nil, err
		}
	}
	if cap(stored.unit) < u.Raw {
		stored.unit = make([]byte, u.Raw)
	}
	p, err := r.decompress(stored.unit[:u.Raw], u.Off, u.Stored, stored, "heap unit")
	if err != nil {
		return nil, err
	}
	from, to := u.First, u.End
	if row >= 0 {
		from, to = row, row+1
	}
	return p, r.damagedUnit(u, h.CheckHeapUnit(u, p, from, to))
}

// damagedUnit returns the error of a heap unit with a damage, nil if that is nil.
func (r *Reader) damagedUnit(u *rowgroup.HeapUnit, damage error) error {
	if damage == nil {
		return nil
	}
	return r.corruptf(u.Off, "heap unit: %v", damage)
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
	defer pin.FailUnless(&ok)
	p, err := r.decompress(pin.Bytes(), e.Off, e.Stored, stored, "value block")
	if err != nil {
		return cache.Handle{}, err
	}
	copy(pin.Bytes(), p) // of itself if it was compressed
	pin.Fill(nil, 0)
	ok = true
	return pin, nil
}

// decompress decodes the section of n stored bytes at off, which stored may have. The
// result is in raw, whose length is that of the decoded section, or in stored.
func (r *Reader) decompress(raw []byte, off int64, n int, stored *storedGroup, what string) ([]byte, error) {
	p, ok := stored.section(off, n)
	if !ok && stored.lacks(off) {
		if err := stored.readRest(r); err != nil {
			return nil, err
		}
		p, ok = stored.section(off, n)
	}
	if !ok {
		s := newStored()
		defer s.free()
		if err := s.read(r, off, n); err != nil {
			return nil, err
		}
		p = s.bytes
	}
	if !r.bind.Check(p, off) {
		return nil, r.corruptf(off, "%s of %d bytes: wrong sum", what, n)
	}
	p = p[:n-sumBytes]
	if len(p) == len(raw) {
		if ok {
			return p, nil
		}
		copy(raw, p)
		return raw, nil
	}
	method := compression.Fast
	if r.Small() {
		method = compression.Small
	}
	if err := compression.Decode(raw, p, method); err != nil {
		return nil, r.corruptf(off, "%s of %d bytes, compressed: %v", what, len(raw), err)
	}
	return raw, nil
}
