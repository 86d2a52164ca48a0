package rowgroup

import (
	"encoding/binary"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// Columns are the values of rows with one shape in one heap unit, by columns. It implements
// store.Columns.
type Columns struct {
	r        *Row
	rows     []int // in the group
	ordinals []int // in the section; the memory of rows if all rows of the group have one shape
	others   []int // memory for ordinals
	touched  bool  // touch was called
	read     byte  // of touch, which the compiler would remove otherwise
}

// The greatest numbers of rows and of columns that touch and Row.TouchValues read. A reader of
// one of many columns would wait for all of them.
const maxTouched, maxTouchedColumns = 4, 32

// touch reads a byte of each column of a few rows, except columns of bits. A reader of one
// column after the other would wait for one cache line after the other; here the processor
// loads them at the same time. A filter that matches 1 % of the entities, all of whose
// properties are read, needs 10 % less CPU (bench/peers, filter/type=Int32).
func (c *Columns) touch() {
	c.touched = true
	if len(c.rows) > maxTouched || len(c.r.columns) > maxTouchedColumns {
		return
	}
	data, offsets := c.r.data, &c.r.h.heapOffsets
	for i, ordinal := range c.ordinals {
		c.read += data[offsets.offset(c.rows[i])]
		for p := range c.r.columns {
			c.read += data[c.r.columns[p].a.offset(ordinal)]
		}
	}
}

// Columns sets c to the rows of set from first on, or with reverse back from first, that have
// the shape of first and are in its heap unit, and returns the last one. There are at most
// most of them. It returns -1 if their values must be read by rows: few rows have the shape,
// the group has big values, or r has an error. c is valid until r moves.
func (r *Row) Columns(c *Columns, set *predicate.Bits, first, most int, reverse bool) (last int) {
	h := r.h
	r.Set(first)
	if r.section.mode != modeColumns || len(h.ValueBlocks) > 0 || r.err != nil {
		return -1
	}
	begin, end := 0, h.rows
	if r.section.heap {
		if u := h.HeapUnitAt(first); u != nil {
			begin, end = u.First, u.End
		}
	}
	c.r, c.rows, c.others, c.touched = r, c.rows[:0], c.others[:0], false
	if r.uniform && !reverse {
		c.rows = set.AppendRows(c.rows, first, end, most)
		c.ordinals = c.rows
		return c.rows[len(c.rows)-1]
	}
	for row := first; row >= begin && row < end && len(c.rows) < most; {
		if !r.uniform {
			if h.sectionAt(row) != r.section {
				break
			}
			c.others = append(c.others, h.ordinal(row))
		}
		c.rows = append(c.rows, row)
		if reverse {
			row = set.Before(row)
		} else {
			row = set.After(row)
		}
	}
	if c.ordinals = c.others; r.uniform {
		c.ordinals = c.rows
	}
	return c.rows[len(c.rows)-1]
}

// Cut keeps the first n rows and returns the last of them.
func (c *Columns) Cut(n int) (last int) {
	c.rows, c.ordinals = c.rows[:n], c.ordinals[:n]
	return c.rows[n-1]
}

// Shape returns the shape of the rows.
func (c *Columns) Shape() *codec.Shape { return c.r.section.shape }

// Len returns the number of rows.
func (c *Columns) Len() int { return len(c.rows) }

// AppendPartition appends the PartitionKey of row i as UTF-8 to dst.
func (c *Columns) AppendPartition(dst []byte, i int) []byte {
	return c.r.appendPartition(dst, c.rows[i])
}

// AppendRow appends the RowKey of row i as UTF-8 to dst.
func (c *Columns) AppendRow(dst []byte, i int) []byte { return c.r.appendRow(dst, c.rows[i]) }

// Timestamp returns the time of the last write of row i.
func (c *Columns) Timestamp(i int) edm.Ticks { return c.r.h.Timestamp(c.rows[i]) }

// Properties returns the number of properties of each row.
func (c *Columns) Properties() int { return len(c.r.columns) }

// Property returns the name and the type of a property, in stored order.
func (c *Columns) Property(p int) (name string, t edm.Type) {
	return c.r.columns[p].name, c.r.columns[p].typ
}

// AppendWords appends edm.Value.Word of a property of each row to dst.
func (c *Columns) AppendWords(dst []uint64, p int) []uint64 {
	if !c.touched {
		c.touch()
	}
	col, data := &c.r.columns[p], c.r.data
	n := len(dst)
	dst = slices.Grow(dst, len(c.rows))[:n+len(c.rows)]
	out := dst[n:]
	switch col.encoding {
	case encodingWord:
		v := col.a
		for i, ordinal := range c.ordinals {
			at := v.offset(ordinal)
			out[i] = v.base + binary.LittleEndian.Uint64(data[at:at+8])&v.mask
		}
	case encodingBits:
		bits := data[col.bytes:]
		for i, ordinal := range c.ordinals {
			out[i] = uint64(bits[ordinal/8] >> (ordinal % 8) & 1)
		}
	default:
		panic("rowgroup: words of a " + col.typ.String())
	}
	return dst
}

// AppendBytes appends edm.Value.Bytes of a property of each row to dst. It reads the heap unit
// when it is first needed. An error is that of the read, and Row.Err returns it too.
func (c *Columns) AppendBytes(dst [][]byte, p int) ([][]byte, error) {
	if !c.touched {
		c.touch()
	}
	r := c.r
	col, data, h := &r.columns[p], r.data, r.h
	if col.heap() && !r.loaded {
		if err := r.LoadHeap(); err != nil {
			return dst, err
		}
	}
	switch {
	case col.encoding == encodingGuid:
		for _, ordinal := range c.ordinals {
			at := col.a.offset(ordinal)
			dst = append(dst, data[at:at+guidBytes:at+guidBytes])
		}
	case col.encoding == encodingDict:
		for _, ordinal := range c.ordinals {
			dst = append(dst, col.entry(data, int(col.a.at(data, ordinal))))
		}
	case !col.heap():
		panic("rowgroup: bytes of a " + col.typ.String())
	case r.heapUnit == nil: // all values are empty
		for range c.rows {
			dst = append(dst, []byte{})
		}
	default: // CheckHeapUnit has checked the offsets
		raw, base := r.raw, r.heapUnit.base
		var before *vector // the end of the value before
		if col.prev >= 0 {
			before = &r.columns[col.prev].a
		}
		for i, row := range c.rows {
			start := int(h.heapOffsets.at(data, row)) - base
			from, to := start, 0
			if before != nil {
				from += int(before.at(data, c.ordinals[i]))
			}
			if col.encoding == encodingHeap {
				to = start + int(col.a.at(data, c.ordinals[i]))
			} else {
				to = int(h.heapOffsets.at(data, row+1)) - base
			}
			dst = append(dst, raw[from:to:to])
		}
	}
	return dst, nil
}
