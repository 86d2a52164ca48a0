package rowgroup

import (
	"errors"
	"sort"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// Blocks gives a Row what is not in the head.
type Blocks interface {
	// Unit returns the decoded heap unit u of h, which passed h.CheckUnit. It
	// may take back the one that it returned before.
	Unit(h *Head, u *Unit) ([]byte, error)
	// Extent returns a decoded big value.
	Extent(e *Extent) ([]byte, error)
}

// Row is the lazy view of a row of a group. It implements codec.ShapedRow.
//
// Strings and binaries are read when they are first asked for. If that fails,
// they are null, and Err returns the reason until Attach.
type Row struct {
	blocks Blocks
	h      *Head
	slot   *slot
	row    int
	rank   int
	loaded bool
	cut    bool   // part has all Strings and Binaries that are in no dictionary
	part   []byte // of the heap
	plain  codec.Row
	err    error

	columns []column // of slot; nil in mode 2
	section []byte   // of h
	// The column of the heap that was read last, and where its value ends: the
	// next one's begins there.
	heapAt     int
	heapEnd    int
	prefetched uint8 // keeps the compiler from removing the loads of Prefetch; never read

	unit *Unit // what raw holds
	raw  []byte
	bigs []big // big values read so far

	key []byte // scratch
}

// big is a value of the present row that is an extent.
type big struct {
	at    *Extent
	bytes []byte
}

// Attach makes r a view of rows of h. With a nil head it lets go of everything.
func (r *Row) Attach(h *Head, b Blocks) {
	r.blocks, r.h, r.slot, r.unit, r.raw, r.part, r.err = b, h, nil, nil, nil, nil, nil
	r.loaded, r.cut, r.bigs, r.columns, r.section = false, false, r.bigs[:0], nil, nil
	if h != nil {
		r.section = h.section
	}
}

// Set moves to a row that is no tombstone.
func (r *Row) Set(row int) {
	r.row, r.rank = row, r.h.rank(row)
	if s := r.h.slotAt(row); s != r.slot {
		r.slot, r.columns = s, s.columns
	}
	r.loaded, r.cut, r.bigs, r.heapAt, r.heapEnd = false, false, r.bigs[:0], -1, 0
}

// Prefetch touches every cache line of the head that the row's columns need, so
// that the loads overlap. Otherwise a row that was not used for long waits for one
// cache line after the other, because a processor does not execute loads ahead of
// the atomic operation that pins a heap unit. It saves up to a tenth of a hot get
// of bench/peers.
func (r *Row) Prefetch() {
	sum := r.section[r.h.starts.place(r.row)]
	for i := range r.columns {
		sum += r.columns[i].encoding
	}
	r.prefetched = sum
}

// Err returns why values could not be read.
func (r *Row) Err() error { return r.err }

// LoadHeap reads the row's part of the heap. Once it succeeded, only values of more
// than 4 KiB can still fail.
func (r *Row) LoadHeap() error {
	if r.loaded || r.err != nil {
		return r.err
	}
	if r.slot.heap {
		if r.err = r.loadPart(); r.err != nil {
			return r.err
		}
	}
	r.loaded, r.cut = true, len(r.h.Extents) == 0
	return nil
}

// Load reads all that the values need: afterwards none of them can fail.
func (r *Row) Load() error {
	if err := r.LoadHeap(); err != nil || len(r.h.Extents) == 0 {
		return err
	}
	for i := range r.slot.columns {
		if e := r.extentAt(i); e != nil {
			if _, ok := r.extent(e); !ok {
				return r.err
			}
		}
	}
	return nil
}

var errNoValues = errors.New("row without values")

func (r *Row) loadPart() error {
	h := r.h
	if u := r.unit; u == nil || r.row < u.First || r.row >= u.End {
		if u = h.UnitAt(r.row); u != nil {
			raw, err := r.blocks.Unit(h, u)
			if err != nil {
				return err
			}
			r.unit, r.raw = u, raw
		}
	}
	if u := r.unit; u != nil { // CheckUnit has checked the places
		from, to := h.starts.at(h.section, r.row)-uint64(u.base), h.starts.at(h.section, r.row+1)-uint64(u.base)
		r.part = r.raw[from:to:to]
	} else {
		r.part = nil
	}
	if r.slot.mode == modeRows {
		if len(r.part) == 0 { // Decode and CheckUnit let none pass
			return errNoValues
		}
		r.key = h.AppendKey(r.key[:0], r.row)
		r.plain.Reset(r.key, h.Timestamp(r.row), r.slot.shape, r.part[0] == 1, r.part[1:])
	}
	return nil
}

// Shape returns the names and types of the properties.
func (r *Row) Shape() *codec.Shape { return r.slot.shape }

// Timestamp returns the moment of the last write.
func (r *Row) Timestamp() edm.Ticks { return r.h.Timestamp(r.row) }

// AppendPartition appends the PartitionKey as UTF-8 to dst.
func (r *Row) AppendPartition(dst []byte) []byte {
	r.key = r.h.AppendKey(r.key[:0], r.row)
	_, partition, _, _ := codec.SplitKey(r.key)
	return codec.AppendUTF8(dst, partition)
}

// AppendRow appends the RowKey as UTF-8 to dst.
func (r *Row) AppendRow(dst []byte) []byte {
	r.key = r.h.AppendKey(r.key[:0], r.row)
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
func (r *Row) At(i int) (name string, v edm.Value) {
	if uint(i) >= uint(len(r.columns)) {
		return r.byRow(i)
	}
	c := &r.columns[i]
	switch {
	case c.encoding == encodingWord:
		return c.name, edm.Fixed(c.typ, c.a.at(r.section, r.rank))
	case c.heap() && r.cut:
		b := r.heapText(c, i)
		if c.typ == edm.TypeString {
			return c.name, edm.StringBytes(b)
		}
		return c.name, edm.Binary(b)
	case c.encoding == encodingGuid:
		at := c.a.place(r.rank)
		return c.name, edm.GuidBytes(r.section[at : at+guidBytes])
	case c.encoding == encodingBits:
		return c.name, edm.Fixed(edm.TypeBoolean, uint64(r.section[int(c.bytes)+r.rank/8]>>(r.rank%8)&1))
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

// byRow is At in mode 2.
func (r *Row) byRow(i int) (name string, v edm.Value) {
	if r.LoadHeap() != nil {
		return r.slot.shape.Name(i), edm.Value{}
	}
	return r.plain.At(i)
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
		return c.inDict(r.section, r.rank), true
	}
	if len(r.h.Extents) > 0 {
		if e := r.extentAt(i); e != nil {
			return r.extent(e)
		}
	}
	if !r.loaded && r.LoadHeap() != nil {
		return nil, false
	}
	return r.heapText(c, i), true
}

// heapText returns the value of a row in column c of the heap, which is
// property i and no extent.
func (r *Row) heapText(c *column, i int) []byte {
	from, to := r.heapEnd, len(r.part)
	if int(c.prev) != r.heapAt {
		from = 0
		if c.prev >= 0 {
			from = int(r.columns[c.prev].a.at(r.section, r.rank))
		}
	}
	if c.encoding == encodingHeap {
		to = int(c.a.at(r.section, r.rank))
	}
	r.heapAt, r.heapEnd = i, to
	return r.part[from:to:to] // checkHeap has checked the ends
}

// extentAt returns the extent that is property i, nil when it is none.
func (r *Row) extentAt(i int) *Extent {
	all := r.h.Extents
	place := r.row<<16 | i
	n := sort.Search(len(all), func(n int) bool { return all[n].Row<<16|all[n].Property >= place })
	if n < len(all) && all[n].Row == r.row && all[n].Property == i {
		return &all[n]
	}
	return nil
}

// extent returns a value that is an extent. It is read once, so that what
// Load has read cannot fail, whether a cache keeps it or not.
func (r *Row) extent(e *Extent) (b []byte, ok bool) {
	for i := range r.bigs {
		if r.bigs[i].at == e {
			return r.bigs[i].bytes, true
		}
	}
	if r.err != nil {
		return nil, false
	}
	b, r.err = r.blocks.Extent(e)
	if r.err != nil {
		return nil, false
	}
	r.bigs = append(r.bigs, big{e, b})
	return b, true
}
