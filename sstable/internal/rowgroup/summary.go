package rowgroup

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// summaryColumn is the identity of a column.
type summaryColumn struct {
	name string
	typ  edm.Type
}

// columnSummary is what is known of a column in a group.
type columnSummary struct {
	column int
	rows   int
	bounds columnBounds
}

// Summarize appends the summary of the group that was gathered. It comes
// before AppendTo.
func (g *Builder) Summarize(dst []byte, shapes *Shapes) []byte {
	g.summaries = g.summaries[:0]
	rows, first, last := 0, uint64(math.MaxInt64), uint64(0)
	for row, s := range g.slotOf {
		if s > 0 {
			rows++
			first, last = min(first, g.times[row]), max(last, g.times[row])
		}
	}
	for _, s := range g.slots {
		for i, id := range s.shape.columns {
			if id < maxSummaryColumns {
				g.summarize(id, &s.columns[i], s.rows)
			}
		}
	}
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(g.summaries)))
	dst = binary.LittleEndian.AppendUint64(dst, first)
	dst = binary.LittleEndian.AppendUint64(dst, last)
	for i := range g.summaries {
		c := &g.summaries[i]
		dst = c.appendTo(dst, shapes.columns[c.column].typ, c.rows == rows)
	}
	return dst
}

func (g *Builder) summarize(id int, c *columnBuilder, rows int) {
	if !c.text() {
		c.bounds.addWords(c.typ, c.words, c.more)
	}
	for i := range g.summaries {
		if s := &g.summaries[i]; s.column == id {
			s.rows += rows
			s.bounds.merge(c.typ, &c.bounds)
			return
		}
	}
	g.summaries = append(g.summaries, columnSummary{id, rows, c.bounds})
}

func (c *columnSummary) appendTo(dst []byte, t edm.Type, all bool) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(c.column))
	at := len(dst)
	dst = append(dst, 0)
	flags := byte(0)
	if all {
		flags |= summaryAll
	}
	if c.bounds.hasNaN() {
		flags |= summaryNaN
	}
	dst, lower, upper := c.bounds.appendTo(dst, t)
	if lower {
		flags |= summaryLower
	}
	if upper {
		flags |= summaryUpper
	}
	dst[at] = flags
	return dst
}

// AppendColumns appends the columns that summaries are about, with which the
// section begins.
func (t *Shapes) AppendColumns(dst []byte) []byte {
	n := min(len(t.columns), maxSummaryColumns)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	for _, c := range t.columns[:n] {
		dst = append(dst, byte(c.typ))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(c.name)))
		dst = append(dst, c.name...)
	}
	return dst
}

// Summaries are the decoded section. They may be used concurrently.
type Summaries struct {
	columns []summaryColumn
	groups  [][]byte
}

// DecodeSummaries reads the section of a file of n groups and keeps p. What is
// wrong is returned, "" when nothing is.
func DecodeSummaries(p []byte, n int) (s *Summaries, err error) {
	c := &cursor{p: p}
	columns := c.u32()
	if columns > maxSummaryColumns {
		return nil, errors.New("summaries of too many columns")
	}
	s = &Summaries{columns: make([]summaryColumn, columns)}
	for i := range s.columns {
		t := edm.Type(c.u8())
		s.columns[i] = summaryColumn{string(c.bytes(c.u16())), t}
		if c.bad || !t.Valid() {
			return nil, errors.New("impossible column")
		}
	}
	if n > (len(p)-c.off)/summaryGroupBytes {
		return nil, errors.New("fewer summaries than groups")
	}
	s.groups = make([][]byte, n)
	for i := range s.groups {
		from := c.off
		if !s.decodeGroup(c, nil) {
			return nil, errors.New("impossible summary")
		}
		s.groups[i] = p[from:c.off]
	}
	if c.off != len(p) {
		return nil, errors.New("more summaries than groups")
	}
	return s, nil
}

// Sizes in memory; a column's name is often as long as its struct.
const (
	sliceMemBytes         = 24
	summaryColumnMemBytes = 64
)

// MemBytes returns about how much memory s takes.
func (s *Summaries) MemBytes() int {
	n := sliceMemBytes*len(s.groups) + summaryColumnMemBytes*len(s.columns)
	for _, g := range s.groups {
		n += len(g)
	}
	return n
}

// decodeGroup reads a summary into g, unless that is nil.
func (s *Summaries) decodeGroup(c *cursor, g *Pruner) bool {
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
		k := knownColumn{summaryColumn: s.columns[id], Column: predicate.Column{Present: predicate.Some, NaN: flags&summaryNaN != 0}}
		if flags&summaryAll != 0 {
			k.Present = predicate.All
		}
		if flags&summaryLower != 0 {
			k.Min = c.bound(k.typ)
		}
		if flags&summaryUpper != 0 {
			k.Max = c.bound(k.typ)
		}
		if g != nil {
			g.known = append(g.known, k)
		}
	}
	return !c.bad
}

// Pruner judges groups by their summaries. It is not safe for concurrent use.
type Pruner struct {
	s           *Summaries
	p           *predicate.Program
	first, last edm.Ticks
	known       []knownColumn
	stats       func(name string, t edm.Type) predicate.Column
}

type knownColumn struct {
	summaryColumn
	predicate.Column
}

// NewPruner returns a Pruner for a program.
func (s *Summaries) NewPruner(p *predicate.Program) *Pruner {
	g := &Pruner{s: s, p: p}
	g.stats = g.Column
	return g
}

// Load makes group i the one that Column tells about.
func (g *Pruner) Load(i int) { g.s.decodeGroup(&cursor{p: g.s.groups[i]}, g) }

// None reports whether no row of group i satisfies the program.
func (g *Pruner) None(i int) bool {
	g.Load(i)
	return g.first > g.last || g.p.Prune(g.stats) == predicate.None
}

// Column returns what is known of a column in the group that was loaded.
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
	if len(g.s.columns) < maxSummaryColumns {
		return predicate.Column{}
	}
	for _, c := range g.s.columns {
		if c.typ == t && c.name == name {
			return predicate.Column{}
		}
	}
	return predicate.Column{Present: predicate.Some, NaN: true}
}

// Holds reports whether a value that is in the loaded group agrees with what
// Column says.
func (g *Pruner) Holds(name string, v edm.Value) bool {
	c := g.Column(name, v.Type())
	if c.Present == predicate.None {
		return false
	}
	if v.Type() == edm.TypeDouble && math.IsNaN(math.Float64frombits(v.Word())) {
		return c.NaN
	}
	below := func(a, b edm.Value) bool {
		if v.Type() == edm.TypeString {
			return edm.CompareBytes(a.Bytes(), b.Bytes()) < 0
		}
		return wordLess(v.Type(), a.Word(), a.Word2(), b.Word(), b.Word2())
	}
	return (c.Min.IsNull() || !below(v, c.Min)) && (c.Max.IsNull() || !below(c.Max, v))
}
