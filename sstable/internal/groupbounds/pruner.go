package groupbounds

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/fields"
	"github.com/tablerock-db/tablerock/sstable/internal/valuebounds"
)

// Group is the bounds of one group at a time. It is not safe for concurrent use.
type Group struct {
	s           *Bounds
	first, last edm.Ticks
	asked       []askedColumn
	columns     []predicate.Column // for each of asked
}

// askedColumn is a column of the file whose bounds are asked for.
type askedColumn struct {
	id int
	at int // the record of the column in the last group that had one: mostly that of the next
}

// NewGroup returns the bounds of all columns.
func (s *Bounds) NewGroup() *Group {
	g := &Group{s: s, asked: make([]askedColumn, len(s.columns)), columns: make([]predicate.Column, len(s.columns))}
	for i := range g.asked {
		g.asked[i].id = i
	}
	return g
}

// Load makes group i the current one.
func (g *Group) Load(i int) {
	group := &g.s.groups[i]
	c := fields.Cursor{P: g.s.p, Off: int(group.off)}
	n := c.U16()
	g.first, g.last = edm.Ticks(c.U64()), edm.Ticks(c.U64())
	if g.s.stamp != 0 && g.first <= g.last {
		g.first, g.last = g.s.stamp, g.s.stamp
	}
	records := g.s.records[group.first:][:n]
	for k := range g.asked {
		g.columns[k] = g.load(&g.asked[k], records)
	}
}

// load returns the bounds of a column in the group with the records.
func (g *Group) load(a *askedColumn, records []uint32) (k predicate.Column) {
	p := g.s.p
	if a.at >= len(records) || int(binary.LittleEndian.Uint16(p[records[a.at]:])) != a.id {
		at := slices.IndexFunc(records, func(off uint32) bool { return int(binary.LittleEndian.Uint16(p[off:])) == a.id })
		if at < 0 {
			return predicate.Column{}
		}
		a.at = at
	}
	c := fields.Cursor{P: p, Off: int(records[a.at]) + 2}
	flags, typ := c.U8(), g.s.columns[a.id].Type
	k.Present, k.NaN = predicate.Some, flags&flagNaN != 0
	if flags&flagAllRows != 0 {
		k.Present = predicate.All
	}
	if flags&flagLower != 0 {
		k.Min = readBound(&c, typ)
	}
	if flags&flagUpper != 0 {
		k.Max = readBound(&c, typ)
	}
	return k
}

// Contains reports whether v, a value in the current group of g, which has all columns,
// is within the bounds of its column.
func (g *Group) Contains(name string, v edm.Value) bool {
	c := g.column(name, v.Type())
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
		return valuebounds.WordLess(v.Type(), a.Word(), a.Word2(), b.Word(), b.Word2())
	}
	return (c.Min.IsNull() || !below(v, c.Min)) && (c.Max.IsNull() || !below(c.Max, v))
}

func (g *Group) column(name string, t edm.Type) predicate.Column {
	if name == edm.TimestampName {
		return g.timestamps()
	}
	if id, ok := g.s.find(name, t); ok {
		return g.columns[id]
	}
	return g.s.absent()
}

// timestamps returns the bounds of the Timestamps.
func (g *Group) timestamps() predicate.Column {
	return predicate.Column{Present: predicate.All, Min: edm.DateTime(g.first), Max: edm.DateTime(g.last)}
}

// find returns the id of a column.
func (s *Bounds) find(name string, t edm.Type) (id int, ok bool) {
	for i := range s.columns {
		if c := &s.columns[i]; c.Type == t && c.Name == name {
			return i, true
		}
	}
	return 0, false
}

// absent returns the bounds of a column that the file does not list.
func (s *Bounds) absent() predicate.Column {
	if len(s.columns) < MaxColumns {
		return predicate.Column{}
	}
	return predicate.Column{Present: predicate.Some, NaN: true}
}

// Pruner decides by their bounds which groups a scan can skip. It is not safe for
// concurrent use.
type Pruner struct {
	bounds Group
	p      *predicate.Program
	// slots has, for each property of p and each type, the index in bounds.columns, or
	// noSlot if the file does not list the column.
	slots []int16
	stats predicate.Columns
}

const noSlot = -1

const types = int(edm.TypeGuid) + 1

// NewPruner returns a Pruner for a program.
func (s *Bounds) NewPruner(p *predicate.Program) *Pruner {
	names := p.Names()
	g := &Pruner{bounds: Group{s: s}, p: p, slots: make([]int16, types*len(names))}
	g.stats = g.column
	for i := range g.slots {
		g.slots[i] = noSlot
	}
	for id := range s.columns {
		c := &s.columns[id]
		if i := slices.Index(names, c.Name); i >= 0 {
			g.slots[i*types+int(c.Type)] = int16(len(g.bounds.asked))
			g.bounds.asked = append(g.bounds.asked, askedColumn{id: id})
		}
	}
	g.bounds.columns = make([]predicate.Column, len(g.bounds.asked))
	return g
}

// None reports whether no row of group i satisfies the program.
func (g *Pruner) None(i int) bool {
	g.bounds.Load(i)
	return g.bounds.first > g.bounds.last || g.p.Prune(g.stats) == predicate.None
}

// column returns the bounds of a property in the current group.
func (g *Pruner) column(property int, t edm.Type) predicate.Column {
	if property == predicate.Timestamp {
		return g.bounds.timestamps()
	}
	if slot := g.slots[property*types+int(t)]; slot != noSlot {
		return g.bounds.columns[slot]
	}
	return g.bounds.s.absent()
}
