package rowgroup

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
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
	bounds valueBounds
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
		c.bounds.addWords(c.typ, c.words, c.more)
	}
	for i := range g.bounds {
		if s := &g.bounds[i]; s.column == id {
			s.rows += rows
			s.bounds.merge(c.typ, &c.bounds)
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
	if c.bounds.hasNaN() {
		flags |= flagNaN
	}
	dst, lower, upper := c.bounds.appendTo(dst, t)
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
	groups  [][]byte
}

// DecodeBounds reads the bounds section of a file of n groups. The result keeps p.
func DecodeBounds(p []byte, n int) (s *Bounds, err error) {
	c := &cursor{p: p}
	columns := c.u32()
	if columns > maxBoundsColumns {
		return nil, errors.New("bounds of too many columns")
	}
	s = &Bounds{columns: make([]columnID, columns)}
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
	s.groups = make([][]byte, n)
	for i := range s.groups {
		from := c.off
		if !s.decodeGroup(c, nil) {
			return nil, errors.New("invalid bounds")
		}
		s.groups[i] = p[from:c.off]
	}
	if c.off != len(p) {
		return nil, errors.New("bytes after the bounds of the last group")
	}
	return s, nil
}

// Sizes in memory. That of a columnID includes its name.
const (
	sliceMemBytes    = 24
	columnIDMemBytes = 64
)

// MemBytes returns about how much memory s takes.
func (s *Bounds) MemBytes() int {
	n := sliceMemBytes*len(s.groups) + columnIDMemBytes*len(s.columns)
	for _, g := range s.groups {
		n += len(g)
	}
	return n
}

// decodeGroup reads the bounds of a group into g, which may be nil.
func (s *Bounds) decodeGroup(c *cursor, g *Pruner) bool {
	n := c.u16()
	first, last := c.u64(), c.u64()
	if g != nil {
		g.first, g.last, g.known = edm.Ticks(first), edm.Ticks(last), g.known[:0]
	}
	for range n {
		id, flags := c.u16(), c.u8()
		if c.bad || id >= len(s.columns) || flags > 15 {
			return false
		}
		k := knownColumn{columnID: s.columns[id], Column: predicate.Column{Present: predicate.Some, NaN: flags&flagNaN != 0}}
		if flags&flagAllRows != 0 {
			k.Present = predicate.All
		}
		if flags&flagLower != 0 {
			k.Min = c.bound(k.typ)
		}
		if flags&flagUpper != 0 {
			k.Max = c.bound(k.typ)
		}
		if g != nil {
			g.known = append(g.known, k)
		}
	}
	return !c.bad
}

// Pruner decides by their bounds which groups a scan can skip. It is not safe for
// concurrent use.
type Pruner struct {
	s           *Bounds
	p           *predicate.Program
	first, last edm.Ticks
	known       []knownColumn
	stats       func(name string, t edm.Type) predicate.Column
}

type knownColumn struct {
	columnID
	predicate.Column
}

// NewPruner returns a Pruner for a program.
func (s *Bounds) NewPruner(p *predicate.Program) *Pruner {
	g := &Pruner{s: s, p: p}
	g.stats = g.Column
	return g
}

// Load makes group i the current one.
func (g *Pruner) Load(i int) { g.s.decodeGroup(&cursor{p: g.s.groups[i]}, g) }

// None reports whether no row of group i satisfies the program.
func (g *Pruner) None(i int) bool {
	g.Load(i)
	return g.first > g.last || g.p.Prune(g.stats) == predicate.None
}

// Column returns the bounds of a column in the current group.
func (g *Pruner) Column(name string, t edm.Type) predicate.Column {
	for i := range g.known {
		if k := &g.known[i]; k.typ == t && k.name == name {
			return k.Column
		}
	}
	switch name {
	case edm.PartitionKeyName, edm.RowKeyName:
		return predicate.Column{Present: predicate.All}
	case edm.TimestampName:
		return predicate.Column{Present: predicate.All, Min: edm.DateTime(g.first), Max: edm.DateTime(g.last)}
	}
	if len(g.s.columns) < maxBoundsColumns {
		return predicate.Column{}
	}
	for _, c := range g.s.columns {
		if c.typ == t && c.name == name {
			return predicate.Column{}
		}
	}
	return predicate.Column{Present: predicate.Some, NaN: true}
}

// Contains reports whether v, a value in the current group, is within the bounds of
// its column.
func (g *Pruner) Contains(name string, v edm.Value) bool {
	c := g.Column(name, v.Type())
	if c.Present == predicate.None {
		return false
	}
	if v.Type() == edm.TypeDouble && math.IsNaN(math.Float64frombits(v.Word())) {
		return c.NaN
	}
	below := func(a, b edm.Value) bool {
		if v.Type() == edm.TypeString {
			return edm.Compare(a.Bytes(), b.Bytes()) < 0
		}
		return wordLess(v.Type(), a.Word(), a.Word2(), b.Word(), b.Word2())
	}
	return (c.Min.IsNull() || !below(v, c.Min)) && (c.Max.IsNull() || !below(c.Max, v))
}
