package sstable

import (
	"sort"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
)

// Row is a lazy view of a row in a file. The zero Row is ready for Reader.Get;
// afterwards it pins blocks of the cache until Release. The bytes of values are
// valid as long. It is not safe for concurrent use.
//
// A row that came from an Iterator reads its strings and binaries from the file
// when they are first asked for. If that fails, they are null, Err says why, and
// the Iterator ends with the same error: whoever acts on a value before the next
// step calls Load first, or looks at Err after.
type Row struct {
	r      *Reader
	h      *head
	slot   *slot
	row    int
	rank   int
	loaded bool
	fill   bool
	part   []byte // of the heap
	plain  codec.Row
	err    error

	headPin cache.Handle
	unitPin cache.Handle
	unit    *unit // what unitPin holds
	extents []cache.Handle

	key []byte // scratch
}

// Release drops the pins. The Row may be used for another Get.
func (r *Row) Release() {
	r.releaseUnit()
	r.headPin.Release()
	r.headPin, r.h, r.slot, r.err = cache.Handle{}, nil, nil, nil
}

func (r *Row) releaseUnit() {
	r.releaseExtents()
	r.unitPin.Release()
	r.unitPin, r.unit, r.part, r.loaded = cache.Handle{}, nil, nil, false
}

func (r *Row) releaseExtents() {
	if len(r.extents) == 0 {
		return
	}
	for i, e := range r.extents {
		e.Release()
		r.extents[i] = cache.Handle{}
	}
	r.extents = r.extents[:0]
}

// set makes r the view of a row of its head that is no tombstone.
func (r *Row) set(row int) {
	r.releaseExtents()
	r.row, r.rank, r.slot = row, r.h.rank(row), r.h.slotAt(row)
	r.loaded = false
}

// Load reads what the values of r need but big ones. Once it succeeded, only
// values of more than 4 KiB can still fail.
func (r *Row) Load() error {
	if r.loaded || r.err != nil {
		return r.err
	}
	r.part = nil
	if r.slot.heap {
		if r.err = r.loadPart(); r.err != nil {
			return r.err
		}
	}
	r.loaded = true
	return nil
}

func (r *Row) loadPart() error {
	h := r.h
	u := r.unit
	if u == nil || r.row < u.first || r.row >= u.end {
		if u = h.unitAt(r.row); u != nil {
			pin, err := r.r.unit(h, u, r.fill)
			if err != nil {
				return err
			}
			r.unitPin.Release()
			r.unitPin, r.unit = pin, u
		}
	}
	if u != nil { // checkUnit has checked the places
		from, to := h.starts.at(r.row)-uint64(u.base), h.starts.at(r.row+1)-uint64(u.base)
		r.part = r.unitPin.Bytes()[from:to:to]
	}
	if r.slot.mode == modeRows {
		if len(r.part) == 0 {
			return r.r.corruptf(h.off, "row without values")
		}
		r.key = h.appendKey(r.key[:0], r.row)
		r.plain.Reset(r.key, h.timestamp(r.row), r.slot.shape, r.part[0] == 1, r.part[1:])
	}
	return nil
}

// Err returns why values could not be read.
func (r *Row) Err() error { return r.err }

// Shape returns the names and types of the properties.
func (r *Row) Shape() *codec.Shape { return r.slot.shape }

// Timestamp returns the moment of the last write.
func (r *Row) Timestamp() edm.Ticks { return r.h.timestamp(r.row) }

// AppendPartition appends the PartitionKey as UTF-8 to dst.
func (r *Row) AppendPartition(dst []byte) []byte {
	r.key = r.h.appendKey(r.key[:0], r.row)
	_, partition, _, _ := codec.SplitKey(r.key)
	return codec.AppendUTF8(dst, partition)
}

// AppendRow appends the RowKey as UTF-8 to dst.
func (r *Row) AppendRow(dst []byte) []byte {
	r.key = r.h.appendKey(r.key[:0], r.row)
	_, _, row, _ := codec.SplitKey(r.key)
	return codec.AppendUTF8(dst, row)
}

// Key returns a copy of the key.
func (r *Row) Key() edm.Key {
	both := r.AppendPartition(nil)
	n := len(both)
	text := string(r.AppendRow(both))
	return edm.Key{Partition: text[:n], Row: text[n:]}
}

// Len returns the number of properties.
func (r *Row) Len() int { return r.slot.shape.Len() }

// At returns property i, 0 <= i < Len, in stored order.
//
// A Value is too large for the compiler to keep in registers, and each copy of
// one that was just built stalls on its own stores: it is built here, in every
// case as the last thing, and no helper returns one.
func (r *Row) At(i int) (name string, v edm.Value) {
	if r.slot.mode == modeRows {
		if r.Load() != nil {
			return r.slot.shape.Name(i), edm.Value{}
		}
		return r.plain.At(i)
	}
	c := &r.slot.columns[i]
	switch c.encoding {
	case encodingWord:
		return c.name, edm.Fixed(c.typ, c.a.at(r.rank))
	case encodingBits:
		return c.name, edm.Fixed(edm.TypeBoolean, uint64(c.bytes[r.rank/8]>>(r.rank%8)&1))
	case encodingGuid:
		return c.name, edm.GuidWords(c.a.at(r.rank), c.b.at(r.rank))
	}
	b, ok := r.text(c, i)
	switch {
	case !ok:
		return c.name, edm.Value{}
	case c.typ == edm.TypeString:
		return c.name, edm.StringBytes(b)
	}
	return c.name, edm.Binary(b)
}

// Lookup returns the property called name.
func (r *Row) Lookup(name string) (edm.Value, bool) {
	i := r.slot.shape.Index(name)
	if i < 0 {
		return edm.Value{}, false
	}
	_, v := r.At(i)
	return v, true
}

// text returns the bytes of the String or Binary i, which is in column c; ok is
// false when they cannot be read.
func (r *Row) text(c *column, i int) (b []byte, ok bool) {
	if c.encoding == encodingDict {
		return c.inDict(r.rank), true
	}
	if len(r.h.extents) > 0 {
		if e := r.extentAt(i); e != nil {
			return r.big(e)
		}
	}
	if !r.loaded && r.Load() != nil {
		return nil, false
	}
	return c.inHeap(r.rank, r.part), true
}

// extentAt returns the extent that is property i, nil when it is none.
func (r *Row) extentAt(i int) *extent {
	all := r.h.extents
	place := r.row<<16 | i
	n := sort.Search(len(all), func(n int) bool { return all[n].row<<16|all[n].property >= place })
	if n < len(all) && all[n].row == r.row && all[n].property == i {
		return &all[n]
	}
	return nil
}

// big returns a value that is an extent.
func (r *Row) big(e *extent) (b []byte, ok bool) {
	if r.err != nil {
		return nil, false
	}
	pin, err := r.r.extent(e, r.fill)
	if err != nil {
		r.err = err
		return nil, false
	}
	r.extents = append(r.extents, pin)
	return pin.Bytes(), true
}
