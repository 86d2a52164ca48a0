package rowgroup

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/sstable/internal/valuebounds"
)

// columnID identifies a column of the file.
type columnID struct {
	name string
	typ  edm.Type
}

// columnBounds are the bounds of one column in a group.
type columnBounds struct {
	column int
	rows   int
	bounds valuebounds.Bounds
}

// AppendBounds appends the bounds of the group. Call it before AppendTo.
func (g *Builder) AppendBounds(dst []byte, shapes *Shapes) []byte {
	g.bounds = g.bounds[:0]
	rows, first, last := 0, uint64(math.MaxInt64), uint64(0)
	for row, s := range g.sectionOf {
		if s > 0 {
			rows++
			first, last = min(first, g.times[row]), max(last, g.times[row])
		}
	}
	for _, s := range g.sections {
		g.addWaiting(s)
		for i, id := range s.shape.columns {
			if id < maxBoundsColumns {
				g.addColumnBounds(id, &s.columns[i], s.rows)
			}
		}
	}
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(g.bounds)))
	dst = binary.LittleEndian.AppendUint64(dst, first)
	dst = binary.LittleEndian.AppendUint64(dst, last)
	for i := range g.bounds {
		c := &g.bounds[i]
		dst = c.appendTo(dst, shapes.columns[c.column].typ, c.rows == rows)
	}
	return dst
}

func (g *Builder) addColumnBounds(id int, c *columnBuilder, rows int) {
	if !c.text() {
		c.bounds.AddWords(c.typ, c.words, c.more)
	}
	for i := range g.bounds {
		if s := &g.bounds[i]; s.column == id {
			s.rows += rows
			s.bounds.Merge(c.typ, &c.bounds)
			return
		}
	}
	g.bounds = append(g.bounds, columnBounds{id, rows, c.bounds})
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
	dst, lower, upper := c.bounds.AppendTo(dst, t)
	if lower {
		flags |= flagLower
	}
	if upper {
		flags |= flagUpper
	}
	dst[at] = flags
	return dst
}

// AppendColumns appends the list of columns with which the bounds section begins.
func (t *Shapes) AppendColumns(dst []byte) []byte {
	n := min(len(t.columns), maxBoundsColumns)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	for _, c := range t.columns[:n] {
		dst = append(dst, byte(c.typ))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(c.name)))
		dst = append(dst, c.name...)
	}
	return dst
}

// Bounds are the decoded bounds of all groups of a file. They are safe for concurrent
// use.
type Bounds struct {
	columns []columnID
	p       []byte
	groups  []boundsOfGroup
	records []uint32 // where the record of each column of each group begins in p
	// stamp is the Timestamp of all rows, 0 if the groups say theirs.
	stamp edm.Ticks
}

// boundsOfGroup is where the bounds of a group begin in the section, and which of records is
// its first one.
type boundsOfGroup struct{ off, first uint32 }

// Assign gives all rows one Timestamp. Call it before the first use.
func (s *Bounds) Assign(stamp edm.Ticks) { s.stamp = stamp }

// DecodeBounds reads the bounds section of a file of n groups. The result keeps p.
func DecodeBounds(p []byte, n int) (s *Bounds, err error) {
	c := &cursor{p: p}
	columns := c.u32()
	if columns > maxBoundsColumns {
		return nil, errors.New("bounds of too many columns")
	}
	s = &Bounds{columns: make([]columnID, columns), p: p}
	for i := range s.columns {
		t := edm.Type(c.u8())
		s.columns[i] = columnID{string(c.bytes(c.u16())), t}
		if c.bad || !t.Valid() {
			return nil, errors.New("invalid column")
		}
	}
	if n > (len(p)-c.off)/boundsGroupBytes {
		return nil, errors.New("bounds of fewer groups than the file has")
	}
	s.groups = make([]boundsOfGroup, n)
	last := make([]int, columns) // for each column, the last group that has it, from 1
	for i := range s.groups {
		s.groups[i] = boundsOfGroup{uint32(c.off), uint32(len(s.records))}
		columns := c.u16()
		if columns > len(s.columns) {
			return nil, errors.New("bounds of more columns than the file has")
		}
		c.bytes(boundsGroupBytes - 2)
		if i == 0 { // most groups have the same columns
			s.records = make([]uint32, 0, min(int64(n)*int64(columns), int64(len(p)/minRecordBytes)))
		}
		for range columns {
			s.records = append(s.records, uint32(c.off))
			id, ok := s.checkColumn(c)
			if !ok || last[id] == i+1 {
				return nil, errors.New("invalid bounds")
			}
			last[id] = i + 1
		}
	}
	if c.bad || c.off != len(p) {
		return nil, errors.New("bytes after the bounds of the last group, or too few for it")
	}
	return s, nil
}

// checkColumn reads the record of a column. It returns the column, and whether the record is
// well formed.
func (s *Bounds) checkColumn(c *cursor) (id int, ok bool) {
	id, flags := c.u16(), c.u8()
	if c.bad || id >= len(s.columns) || flags > flagAllRows|flagNaN|flagLower|flagUpper {
		return 0, false
	}
	for _, flag := range []byte{flagLower, flagUpper} {
		if flags&flag != 0 {
			c.skipBound(s.columns[id].typ)
		}
	}
	return id, !c.bad
}

// minRecordBytes is the length of a record with neither a lower nor an upper bound.
const minRecordBytes = 3

// Sizes in memory. That of a columnID includes its name.
const (
	boundsMemBytes        = 120
	boundsOfGroupMemBytes = 8
	recordMemBytes        = 4
	columnIDMemBytes      = 64
)

// MemBytes returns about how much memory s takes beside the section.
func (s *Bounds) MemBytes() int {
	return boundsMemBytes + boundsOfGroupMemBytes*len(s.groups) + recordMemBytes*cap(s.records) + columnIDMemBytes*len(s.columns)
}

// skipBound skips a bound of values of type t.
func (c *cursor) skipBound(t edm.Type) {
	switch t {
	case edm.TypeString:
		c.bytes(int(c.u8()))
	case edm.TypeGuid:
		c.bytes(guidBytes)
	case edm.TypeBinary:
		c.bad = true
	default:
		c.bytes(8)
	}
}

// bound reads a bound of values of type t.
func (c *cursor) bound(t edm.Type) edm.Value {
	switch t {
	case edm.TypeString:
		return edm.StringBytes(c.bytes(int(c.u8())))
	case edm.TypeGuid:
		if b := c.bytes(16); b != nil {
			return edm.GuidWords(binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]))
		}
		return edm.Value{}
	case edm.TypeBinary:
		c.bad = true
		return edm.Value{}
	}
	return edm.Fixed(t, c.u64())
}
