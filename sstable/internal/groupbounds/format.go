// Package groupbounds is the section of a file with the bounds of each column in each group, so
// that a scan can skip groups without a match. A column is a name and a type, in whatever shapes
// it occurs.
package groupbounds

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/sstable/internal/valuebounds"
)

// The section:
//
//	0  u32 columns, at most 256; with 256 there may be others without bounds
//	   for each column: u8 type, u16 length of the name, the name
//	   for each group:
//	       0  u16 columns that rows of the group have
//	       2  u64 smallest timestamp, tombstones excluded
//	      10  u64 largest timestamp
//	      18  for each of these columns:
//	              u16 column
//	              u8  flags: 1 = all rows have it, 2 = there may be NaN among the
//	                  values, 4 = a lower bound follows, 8 = an upper bound follows
//	              bounds: of a Guid 16 bytes in its order; of a String u8 length and
//	              at most 16 bytes; of Int32, Int64, Double, DateTime and Boolean
//	              u64; a Binary has none, and other types can lack them too
const (
	// MaxColumns is the greatest number of columns with bounds.
	MaxColumns = 256 // part of the file format

	groupBytes = 18
	guidBytes  = 16

	flagAllRows = 1 // part of the file format
	flagNaN     = 2 // part of the file format
	flagLower   = 4 // part of the file format
	flagUpper   = 8 // part of the file format
)

// Column identifies a column of the file.
type Column struct {
	Name string
	Type edm.Type
}

// AppendColumns appends the list of columns with which the section begins. The groups follow.
func AppendColumns(dst []byte, columns []Column) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(columns)))
	for _, c := range columns {
		dst = append(dst, byte(c.Type))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(c.Name)))
		dst = append(dst, c.Name...)
	}
	return dst
}

// Builder collects the bounds of the columns of one group. It is not safe for concurrent use.
type Builder struct {
	columns []columnBounds
	entries [MaxColumns]uint16 // by column: one more than its index in columns; 0 if it is not there
	rarest  []*columnBounds    // scratch of omit
}

// columnBounds are the bounds of one column in the group.
type columnBounds struct {
	column int // index in the list of columns
	rows   int
	bounds valuebounds.Bounds
	length int  // of bounds as they were last appended
	omit   bool // append no bounds
}

// Reset forgets all columns.
func (b *Builder) Reset() {
	b.columns = b.columns[:0]
	clear(b.entries[:])
}

// Add adds the bounds of values of the type t in some rows to those of a column, which is an
// index in the list of columns, less than MaxColumns.
func (b *Builder) Add(column int, t edm.Type, rows int, v *valuebounds.Bounds) {
	if i := b.entries[column]; i > 0 {
		c := &b.columns[i-1]
		c.rows += rows
		c.bounds.Merge(t, v)
		return
	}
	b.columns = append(b.columns, columnBounds{column: column, rows: rows, bounds: *v})
	b.entries[column] = uint16(len(b.columns))
}

// AppendTo appends the bounds of a group with the given number of rows without tombstones, whose
// Timestamps are from first to last. If that takes more than limit bytes, columns in few rows
// get no bounds.
func (b *Builder) AppendTo(dst []byte, columns []Column, rows int, first, last uint64, limit int) []byte {
	from := len(dst)
	dst = b.append(dst, columns, rows, first, last)
	if n := len(dst) - from - limit; n > 0 {
		b.omit(n)
		dst = b.append(dst[:from], columns, rows, first, last)
	}
	return dst
}

func (b *Builder) append(dst []byte, columns []Column, rows int, first, last uint64) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(b.columns)))
	dst = binary.LittleEndian.AppendUint64(dst, first)
	dst = binary.LittleEndian.AppendUint64(dst, last)
	for i := range b.columns {
		c := &b.columns[i]
		dst = c.appendTo(dst, columns[c.column].Type, c.rows == rows)
	}
	return dst
}

// omit omits the bounds of the columns in the fewest rows until they take n bytes less. Of columns
// in as many rows, the last go first.
func (b *Builder) omit(n int) {
	b.rarest = b.rarest[:0]
	for i := range b.columns {
		b.rarest = append(b.rarest, &b.columns[i])
	}
	slices.SortFunc(b.rarest, func(x, y *columnBounds) int {
		return cmp.Or(cmp.Compare(x.rows, y.rows), cmp.Compare(y.column, x.column))
	})
	for _, c := range b.rarest {
		if n <= 0 {
			return
		}
		c.omit = true
		n -= c.length
	}
}

func (c *columnBounds) appendTo(dst []byte, t edm.Type, all bool) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(c.column))
	at := len(dst)
	dst = append(dst, 0)
	flags := byte(0)
	if all {
		flags |= flagAllRows
	}
	if c.bounds.HasNaN() {
		flags |= flagNaN
	}
	if !c.omit {
		var lower, upper bool
		dst, lower, upper = c.bounds.AppendTo(dst, t)
		if lower {
			flags |= flagLower
		}
		if upper {
			flags |= flagUpper
		}
		c.length = len(dst) - at - 1
	}
	dst[at] = flags
	return dst
}
