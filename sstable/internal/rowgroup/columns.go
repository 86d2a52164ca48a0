package rowgroup

import (
	"encoding/binary"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// Columns are the values of rows with one shape, by columns. They implement store.Columns, and are
// not safe for concurrent use.
type Columns struct {
	parts    []part
	rows     []int // in their groups
	ordinals []int // in their sections; the memory of rows if all rows of each group have one shape
	others   []int // memory for ordinals
	ends     bool  // the rows that were appended last end before a row of another shape
	touched  bool  // touch was called
	read     byte  // of touch, which the compiler would remove otherwise
}

// part is rows from to to-1 of Columns, which are in one heap unit.
type part struct {
	r        *Row
	from, to int
}

// The greatest numbers of rows and of columns that touch and Row.TouchValues read. A reader of
// one of many columns would wait for all of them.
const maxTouched, maxTouchedColumns = 4, 32

// touch reads a byte of each column of a few rows of each group, of bits the first. A reader of one
// column after the other would wait for one cache line after the other; here the processor loads
// them at the same time. A filter that matches 1 % of the entities, all of whose properties are
// read, needs 12 % less CPU (bench, runs=1/filter=Double-all-columns).
func (c *Columns) touch() {
	c.touched = true
	if len(c.rows) > maxTouched*len(c.parts) || len(c.parts[0].r.columns) > maxTouchedColumns {
		return
	}
	x := byte(0)
	for i := range c.parts {
		q := &c.parts[i]
		data, offsets, columns := q.r.data, &q.r.h.heapOffsets, q.r.columns
		for j := q.from; j < q.to; j++ {
			ordinal := c.ordinals[j]
			x += data[offsets.offset(c.rows[j])]
			for p := range columns {
				x += data[columns[p].a.offset(ordinal)]
			}
		}
	}
	c.read = x
}

// Columns appends to c the rows of set from first on, or with reverse back from first, that have
// the shape of first and are in its heap unit, and returns the last one. There are at most
// most of them. It returns -1 if their values must be read by rows: few rows have the shape,
// the group has big values, or r has an error; or if c has rows of another shape. The rows are
// valid until r moves.
func (r *Row) Columns(c *Columns, set *predicate.Bits, first, most int, reverse bool) (last int) {
	h := r.h
	r.Set(first)
	if r.section.mode != modeColumns || len(h.ValueBlocks) > 0 || r.err != nil {
		return -1
	}
	if len(c.parts) > 0 && c.Shape() != r.section.shape {
		return -1
	}
	begin, end := 0, h.rows
	if r.section.heap {
		if u := h.heapUnitAt(first); u != nil {
			begin, end = u.First, u.End
		}
	}
	from, same := len(c.rows), len(c.others) == 0
	c.touched, c.ends = false, false
	if r.uniform && !reverse {
		c.rows = set.AppendRows(c.rows, first, end, most)
	} else {
		for row := first; row >= begin && row < end && len(c.rows)-from < most; {
			if !r.uniform && h.sectionAt(row) != r.section {
				c.ends = true
				break
			}
			c.rows = append(c.rows, row)
			if reverse {
				row = set.Before(row)
			} else {
				row = set.After(row)
			}
		}
	}
	if !r.uniform || !same {
		if same {
			c.others = append(c.others, c.rows[:from]...)
		}
		for _, row := range c.rows[from:] {
			if !r.uniform {
				row = h.Ordinal(row)
			}
			c.others = append(c.others, row)
		}
	}
	if c.ordinals = c.others; len(c.others) == 0 {
		c.ordinals = c.rows
	}
	c.parts = append(c.parts, part{r, from, len(c.rows)})
	return c.rows[len(c.rows)-1]
}

// Clear removes all rows.
func (c *Columns) Clear() {
	clear(c.parts)
	c.parts, c.rows, c.ordinals, c.others = c.parts[:0], c.rows[:0], nil, c.others[:0]
}

// Moved says that the rows that were appended last are now those of r, which is a copy of the
// Row that they were appended from.
func (c *Columns) Moved(r *Row) { c.parts[len(c.parts)-1].r = r }

// Cut keeps the first n rows, which are of one group, and returns the last of them.
func (c *Columns) Cut(n int) (last int) {
	c.rows, c.ordinals, c.parts[0].to = c.rows[:n], c.ordinals[:n], n
	return c.rows[n-1]
}

// ShapeEnds reports whether the rows that were appended last end where the next selected row has
// another shape.
func (c *Columns) ShapeEnds() bool { return c.ends }

// Shape returns the shape of the rows.
func (c *Columns) Shape() *codec.Shape { return c.parts[0].r.section.shape }

// Len returns the number of rows.
func (c *Columns) Len() int { return len(c.rows) }

// of returns the Row that row i is of.
func (c *Columns) of(i int) *Row {
	p := 0
	for i >= c.parts[p].to {
		p++
	}
	return c.parts[p].r
}

// AppendPartition appends the PartitionKey of row i as UTF-8 to dst.
func (c *Columns) AppendPartition(dst []byte, i int) []byte {
	return c.of(i).appendPartition(dst, c.rows[i])
}

// AppendRow appends the RowKey of row i as UTF-8 to dst.
func (c *Columns) AppendRow(dst []byte, i int) []byte { return c.of(i).appendRow(dst, c.rows[i]) }

// Timestamp returns the time of the last write of row i.
func (c *Columns) Timestamp(i int) edm.Ticks { return c.of(i).h.Timestamp(c.rows[i]) }

// Properties returns the number of properties of each row.
func (c *Columns) Properties() int { return len(c.parts[0].r.columns) }

// Property returns the name and the type of a property, in stored order.
func (c *Columns) Property(p int) (name string, t edm.Type) {
	col := &c.parts[0].r.columns[p]
	return col.name, col.typ
}

// AppendWords appends edm.Value.Word of a property of each row to dst.
func (c *Columns) AppendWords(dst []uint64, p int) []uint64 {
	if !c.touched {
		c.touch()
	}
	n := len(dst)
	dst = slices.Grow(dst, len(c.rows))[:n+len(c.rows)]
	for i := range c.parts {
		q := &c.parts[i]
		out, data, ordinals := dst[n+q.from:n+q.to], q.r.data, c.ordinals[q.from:q.to]
		switch col := &q.r.columns[p]; col.encoding {
		case encodingWord:
			v := col.a
			for i, ordinal := range ordinals {
				at := v.offset(ordinal)
				out[i] = v.base + binary.LittleEndian.Uint64(data[at:at+8])&v.mask
			}
		case encodingBits:
			bits := data[col.a.off:]
			for i, ordinal := range ordinals {
				out[i] = uint64(bits[ordinal/8] >> (ordinal % 8) & 1)
			}
		default:
			panic("rowgroup: words of a " + col.typ.String())
		}
	}
	return dst
}

// AppendBytes appends edm.Value.Bytes of a property of each row to dst. It reads the heap units
// when they are first needed. An error is that of the read, and Row.Err returns it too.
func (c *Columns) AppendBytes(dst [][]byte, p int) ([][]byte, error) {
	if !c.touched {
		c.touch()
	}
	n := len(dst)
	for i := range c.parts {
		q := &c.parts[i]
		if q.r.columns[p].heap() && !q.r.loaded {
			if err := q.r.LoadHeap(); err != nil {
				return dst[:n], err
			}
		}
		dst = q.r.appendBytes(dst, p, c.rows[q.from:q.to], c.ordinals[q.from:q.to])
	}
	return dst, nil
}

// appendBytes is Columns.AppendBytes for rows of r, whose heap unit is in memory.
func (r *Row) appendBytes(dst [][]byte, p int, rows, ordinals []int) [][]byte {
	col, data := &r.columns[p], r.data
	switch {
	case col.encoding == encodingGuid:
		for _, ordinal := range ordinals {
			at := col.a.offset(ordinal)
			dst = append(dst, data[at:at+guidBytes:at+guidBytes])
		}
	case col.encoding == encodingDict:
		for _, ordinal := range ordinals {
			dst = append(dst, col.entry(data, int(col.a.at(data, ordinal))))
		}
	case !col.heap():
		panic("rowgroup: bytes of a " + col.typ.String())
	case r.heapUnit == nil: // all values are empty
		for range rows {
			dst = append(dst, []byte{})
		}
	default:
		return r.appendTexts(dst, col, rows, ordinals)
	}
	return dst
}

// appendTexts is appendBytes for a column in the heap. CheckHeapUnit has checked the offsets.
func (r *Row) appendTexts(dst [][]byte, col *column, rows, ordinals []int) [][]byte {
	n := len(dst)
	dst = slices.Grow(dst, len(rows))[:n+len(rows)]
	out, data, raw, base := dst[n:], r.data, r.raw, r.heapUnit.base
	starts, ends := r.h.heapOffsets, col.a
	// The ends of the values before: zeros if there are none, read where the starts are.
	before := vector{off: starts.off}
	if col.prev >= 0 {
		before = r.columns[col.prev].a
	}
	for i, row := range rows {
		start, to := int(starts.at(data, row))-base, 0
		if col.encoding == encodingHeap {
			to = start + int(ends.at(data, ordinals[i]))
		} else {
			to = int(starts.at(data, row+1)) - base
		}
		out[i] = raw[start+int(before.at(data, ordinals[i])) : to : to]
	}
	return dst
}
