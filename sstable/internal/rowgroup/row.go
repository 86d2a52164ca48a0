package rowgroup

import (
	"errors"
	"sort"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// Blocks reads the blocks of a group that are outside its head.
type Blocks interface {
	// HeapUnit returns the decoded heap unit u of h, which CheckHeapUnit has accepted.
	// It may release the unit that it returned before.
	HeapUnit(h *Head, u *HeapUnit) ([]byte, error)
	// ValueBlock returns a decoded big value, valid until ReleaseValueBlocks.
	ValueBlock(e *ValueBlock) ([]byte, error)
	// ReleaseValueBlocks releases the big values of a row.
	ReleaseValueBlocks()
}

// Row is the lazy view of a row of a group. It implements codec.ShapedRow. It is not safe for
// concurrent use.
//
// Strings and binaries are read when they are first asked for. If that fails,
// they are null, and Err returns the reason until Attach.
type Row struct {
	blocks  Blocks
	h       *Head
	section *shapeSection
	row     int
	ordinal int
	uniform bool   // all rows have this section
	loaded  bool   // the heap unit of the row is in memory
	direct  bool   // it has all Strings and Binaries that are in no dictionary
	cut     bool   // heap is set
	heap    []byte // the bytes of the row in its heap unit
	plain   codec.Row
	err     error

	columns []column     // of section; nil in mode modeRows
	shape   *codec.Shape // of section; nil in mode modeRows until Shape
	data    []byte       // the bytes of h
	// heapAt is the heap column that was read last, and heapEnd the end of its value,
	// where the value of the next heap column begins. Without them, a partition scan
	// that reads every property needs 3 % more CPU (bench, scan/range=partition).
	heapAt  int
	heapEnd int

	heapUnit *HeapUnit // the unit that raw is
	raw      []byte
	bigs     []big // value blocks of the current row that were read

	key  []byte // scratch
	read byte   // of TouchKeys and TouchValues, which the compiler would remove otherwise
}

// big is a value of the current row that has a value block.
type big struct {
	at    *ValueBlock
	bytes []byte
}

// Attach makes r a view of the rows of h. With a nil head, r drops all references.
func (r *Row) Attach(h *Head, b Blocks) {
	r.blocks, r.h, r.section, r.heapUnit, r.raw, r.heap, r.err = b, h, nil, nil, nil, nil, nil
	r.loaded, r.direct, r.cut, r.bigs, r.columns, r.shape, r.data, r.uniform = false, false, false, r.bigs[:0], nil, nil, nil, false
	if h == nil {
		return
	}
	r.data = h.data
	if s := h.sectionOf.base; h.Uniform() && s > 0 {
		r.uniform, r.section = true, &h.sections[s-1]
		r.columns, r.shape = r.section.columns, r.section.shape
	}
}

// Moved says that r is a copy of another Row, which is not used any more, and that b has its blocks.
func (r *Row) Moved(b Blocks) { r.blocks = b }

// Set moves to a row, which must not be a tombstone.
func (r *Row) Set(row int) {
	if len(r.bigs) > 0 {
		r.blocks.ReleaseValueBlocks()
		clear(r.bigs)
		r.bigs = r.bigs[:0]
	}
	r.row, r.ordinal = row, row
	if !r.uniform {
		r.ordinal = r.h.Ordinal(row)
		if s := r.h.sectionAt(row); s != r.section {
			r.section, r.columns, r.shape = s, s.columns, s.shape
		}
	}
	r.loaded, r.direct, r.cut = false, false, false
}

const (
	cacheLine = 64
	// touchedKeys is about the length of the keys of a head with 100 rows, from its start.
	touchedKeys = 640
)

// TouchKeys reads a byte of each cache line of the keys in head. A binary search would wait
// for one after the other; here the processor loads them at the same time. With TouchValues,
// a hot get needs a sixth less CPU (bench/peers, get/key=present/readers=1).
func (r *Row) TouchKeys(head []byte) {
	x := byte(0)
	for at := 0; at < min(len(head), touchedKeys); at += cacheLine {
		x += head[at]
	}
	r.read = x
}

// TouchValues reads a byte of each decoded column, and the first and the last of the row in a
// head that is laid out by rows: two cache lines for most rows. It is for a reader of all
// values.
func (r *Row) TouchValues() {
	if len(r.columns) > maxTouchedColumns {
		return
	}
	at, step := r.h.heapOffsets.offset(r.row), int(r.h.heapOffsets.step)
	x := r.data[at] + r.data[min(at+step, len(r.data)-1)]
	for i := range r.columns {
		x += r.columns[i].encoding
	}
	r.read = x
}

// Err returns why a value could not be read.
func (r *Row) Err() error { return r.err }

// LoadHeap reads the row's bytes of the heap. After it has returned nil, only values
// of more than 4 KiB can fail.
func (r *Row) LoadHeap() error {
	if r.loaded || r.err != nil {
		return r.err
	}
	if u := r.heapUnit; r.section.heap && (u == nil || r.row < u.First || r.row >= u.End) {
		r.err = r.readUnit()
	}
	if r.err == nil && r.section.mode == modeRows {
		r.err = r.readPlain()
	}
	r.loaded = r.err == nil
	r.direct = r.loaded && len(r.h.ValueBlocks) == 0
	return r.err
}

// Load reads all values of the row. After it has returned nil, At and Lookup do not
// fail.
func (r *Row) Load() error {
	if err := r.LoadHeap(); err != nil || len(r.h.ValueBlocks) == 0 {
		return err
	}
	for i := range r.section.columns {
		if e := r.valueBlockAt(i); e != nil {
			if _, ok := r.valueBlock(e); !ok {
				return r.err
			}
		}
	}
	return nil
}

// LoadAt reads property i. After it has returned nil, At(i) does not fail.
func (r *Row) LoadAt(i int) error {
	if uint(i) >= uint(len(r.columns)) {
		return r.LoadHeap()
	}
	if c := &r.columns[i]; c.heap() {
		r.text(c, i)
	}
	return r.err
}

var errNoValues = errors.New("row without values")

// readUnit reads the heap unit of the row, if the group has any.
func (r *Row) readUnit() error {
	u := r.h.heapUnitAt(r.row)
	if u == nil {
		return nil
	}
	raw, err := r.blocks.HeapUnit(r.h, u)
	if err == nil {
		r.heapUnit, r.raw = u, raw
	}
	return err
}

// cutHeap sets heap to the bytes of the row in its heap unit, which is in memory.
func (r *Row) cutHeap() {
	r.cut, r.heap, r.heapAt, r.heapEnd = true, nil, -1, 0
	if u, h := r.heapUnit, r.h; u != nil { // CheckHeapUnit has checked the offsets
		from, to := h.heapOffsets.at(h.data, r.row)-uint64(u.base), h.heapOffsets.at(h.data, r.row+1)-uint64(u.base)
		r.heap = r.raw[from:to:to]
	}
}

// readPlain sets plain to a row of a section of mode modeRows.
func (r *Row) readPlain() error {
	r.cutHeap()
	if len(r.heap) == 0 { // Decode and CheckHeapUnit refuse this
		return errNoValues
	}
	r.key = r.h.AppendKey(r.key[:0], r.row)
	r.plain.Reset(r.key, r.h.Timestamp(r.row), r.Shape(), r.heap[0] == 1, r.heap[1:])
	return nil
}

// Shape returns the names and types of the properties.
func (r *Row) Shape() *codec.Shape {
	if r.shape == nil {
		r.shape = r.h.shapes.At(int(r.section.id))
	}
	return r.shape
}

// Timestamp returns the time of the last write.
func (r *Row) Timestamp() edm.Ticks { return r.h.Timestamp(r.row) }

// AppendPartition appends the PartitionKey as UTF-8 to dst.
func (r *Row) AppendPartition(dst []byte) []byte { return r.appendPartition(dst, r.row) }

func (r *Row) appendPartition(dst []byte, row int) []byte {
	r.key = r.h.AppendKey(r.key[:0], row)
	_, partition, _, _ := codec.SplitKey(r.key)
	return codec.AppendUTF8(dst, partition)
}

// AppendRow appends the RowKey as UTF-8 to dst.
func (r *Row) AppendRow(dst []byte) []byte { return r.appendRow(dst, r.row) }

func (r *Row) appendRow(dst []byte, row int) []byte {
	r.key = r.h.AppendKey(r.key[:0], row)
	_, _, key, _ := codec.SplitKey(r.key)
	return codec.AppendUTF8(dst, key)
}

// Key returns a copy of the key.
func (r *Row) Key() edm.Key {
	both := r.AppendPartition(nil)
	n := len(both)
	text := string(r.AppendRow(both))
	return edm.Key{Partition: text[:n], Row: text[n:]}
}

// Len returns the number of properties.
func (r *Row) Len() int { return r.Shape().Len() }

// At returns property i, 0 <= i < Len, in stored order.
func (r *Row) At(i int) (name string, v edm.Value) {
	if uint(i) >= uint(len(r.columns)) {
		return r.byRow(i)
	}
	c := &r.columns[i]
	switch {
	case c.encoding == encodingWord:
		return c.name, edm.Fixed(c.typ, c.a.at(r.data, r.ordinal))
	case c.heap() && r.direct:
		b := r.heapText(c, i)
		if c.typ == edm.TypeString {
			return c.name, edm.StringBytes(b)
		}
		return c.name, edm.Binary(b)
	case c.encoding == encodingGuid:
		at := c.a.offset(r.ordinal)
		return c.name, edm.GuidBytes(r.data[at : at+guidBytes])
	case c.encoding == encodingBits:
		return c.name, edm.Fixed(edm.TypeBoolean, uint64(r.data[int(c.a.off)+r.ordinal/8]>>(r.ordinal%8)&1))
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

// byRow is At in mode modeRows.
func (r *Row) byRow(i int) (name string, v edm.Value) {
	if r.LoadHeap() != nil {
		return r.Shape().Name(i), edm.Value{}
	}
	return r.plain.At(i)
}

// Lookup returns the property called name.
func (r *Row) Lookup(name string) (edm.Value, bool) {
	i := r.Shape().Index(name)
	if i < 0 {
		return edm.Value{}, false
	}
	_, v := r.At(i)
	return v, true
}

// text returns the bytes of property i, a String or Binary in column c. ok is false if
// they cannot be read.
func (r *Row) text(c *column, i int) (b []byte, ok bool) {
	if c.encoding == encodingDict {
		return c.entry(r.data, int(c.a.at(r.data, r.ordinal))), true
	}
	if len(r.h.ValueBlocks) > 0 {
		if e := r.valueBlockAt(i); e != nil {
			return r.valueBlock(e)
		}
	}
	if !r.loaded && r.LoadHeap() != nil {
		return nil, false
	}
	return r.heapText(c, i), true
}

// heapText returns the value of property i, which is in heap column c and has no value
// block.
func (r *Row) heapText(c *column, i int) []byte {
	if !r.cut {
		r.cutHeap()
	}
	from, to := r.heapEnd, len(r.heap)
	if int(c.prev) != r.heapAt {
		from = 0
		if c.prev >= 0 {
			from = int(r.columns[c.prev].a.at(r.data, r.ordinal))
		}
	}
	if c.encoding == encodingHeap {
		to = int(c.a.at(r.data, r.ordinal))
	}
	r.heapAt, r.heapEnd = i, to
	return r.heap[from:to:to] // checkHeap has checked the ends
}

// valueBlockAt returns the value block of property i, nil if it has none.
func (r *Row) valueBlockAt(i int) *ValueBlock {
	all := r.h.ValueBlocks
	position := r.row<<16 | i
	n := sort.Search(len(all), func(n int) bool { return all[n].Row<<16|all[n].Property >= position })
	if n < len(all) && all[n].Row == r.row && all[n].Property == i {
		return &all[n]
	}
	return nil
}

// valueBlock returns the value in e. It reads each block once, so that a value that
// Load has read cannot fail, even if the cache dropped it.
func (r *Row) valueBlock(e *ValueBlock) (b []byte, ok bool) {
	for i := range r.bigs {
		if r.bigs[i].at == e {
			return r.bigs[i].bytes, true
		}
	}
	if r.err != nil {
		return nil, false
	}
	b, r.err = r.blocks.ValueBlock(e)
	if r.err != nil {
		return nil, false
	}
	r.bigs = append(r.bigs, big{e, b})
	return b, true
}
