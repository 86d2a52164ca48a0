package group

import (
	"encoding/binary"
	"math"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// Summaries tell what the columns of each group hold between which bounds, so
// that a scan can leave out groups in which nothing can match. A column is a
// name and a type, whatever shapes it is part of.
//
//	0  u32 columns, at most 256; with 256 there may be more that have no summary
//	   columns times: u8 type, u16 length of the name, the name
//	   groups times:
//	       0  u16 columns that rows of the group have
//	       2  u64 smallest timestamp, tombstones left out
//	      10  u64 largest timestamp
//	      18  for each of the columns:
//	              u16 column
//	              u8  flags: 1 = all rows have it, 2 = NaN may be among the values,
//	                  4 = a lower bound follows, 8 = an upper bound follows
//	              bounds: of a Guid 16 bytes in its order, of a String u8 length
//	              and at most 16 bytes, of Int32, Int64, Double, DateTime and Boolean
//	              u64; a Binary has none
const (
	maxSummaryColumns = 256 // part of the file format
	maxSummaryText    = 16  // part of the file format

	summaryGroupBytes = 18

	summaryAll   = 1 // part of the file format
	summaryNaN   = 2 // part of the file format
	summaryLower = 4 // part of the file format
	summaryUpper = 8 // part of the file format
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
	bounds bounds
}

// bounds hold the least and the greatest of some values of one type. Words
// are compared as the type wants it; NaN is apart.
type bounds struct {
	any, nan bool
	lo, hi   uint64
	lo2, hi2 uint64 // second halves of Guids
	textLo   textBound
	textHi   textBound
}

// textBound is the beginning of a String.
type textBound struct {
	bytes [maxSummaryText]byte
	n     int
	cut   bool // the string is longer
}

func (t *textBound) set(b []byte) {
	t.n = copy(t.bytes[:], b)
	t.cut = len(b) > t.n
}

func (t *textBound) get() []byte { return t.bytes[:t.n] }

// addText takes a String into account.
func (b *bounds) addText(text []byte) {
	if b.any {
		lo, hi := &b.textLo, &b.textHi
		// Most values are told apart by their first byte. From EE on, the order
		// of bytes is not that of code units.
		if len(text) > 0 && lo.n > 0 && hi.n > 0 && text[0] > lo.bytes[0] && text[0] < hi.bytes[0] && hi.bytes[0] < 0xEE {
			return
		}
		if edm.CompareBytes(text, lo.get()) < 0 {
			lo.set(text)
		}
		if edm.CompareBytes(text, hi.get()) > 0 {
			hi.set(text)
		}
		return
	}
	b.any = true
	b.textLo.set(text)
	b.textHi.set(text)
}

// addWords takes the values of a column into account that is no String and no
// Binary.
func (b *bounds) addWords(t edm.Type, words, more []uint64) {
	switch t {
	case edm.TypeGuid:
		for i, w := range words {
			b.addWord(t, w, more[i])
		}
	case edm.TypeDouble:
		for _, w := range words {
			if math.IsNaN(math.Float64frombits(w)) {
				b.nan = true
				continue
			}
			b.addWord(t, w, 0)
		}
	default: // the most, and without a branch
		lo, hi := int64(words[0]), int64(words[0])
		for _, w := range words {
			lo, hi = min(lo, int64(w)), max(hi, int64(w))
		}
		b.addWord(t, uint64(lo), 0)
		b.addWord(t, uint64(hi), 0)
	}
}

func (b *bounds) addWord(t edm.Type, w, w2 uint64) {
	switch {
	case !b.any:
		b.any, b.lo, b.hi, b.lo2, b.hi2 = true, w, w, w2, w2
	case lessWords(t, w, w2, b.lo, b.lo2):
		b.lo, b.lo2 = w, w2
	case lessWords(t, b.hi, b.hi2, w, w2):
		b.hi, b.hi2 = w, w2
	}
}

func lessWords(t edm.Type, a, a2, b, b2 uint64) bool {
	switch t {
	case edm.TypeDouble:
		return math.Float64frombits(a) < math.Float64frombits(b)
	case edm.TypeGuid:
		return a < b || a == b && a2 < b2
	}
	return int64(a) < int64(b)
}

// merge takes the values into account that o did.
func (b *bounds) merge(t edm.Type, o *bounds) {
	nan := b.nan || o.nan
	switch {
	case !b.any:
		*b = *o
	case o.any && t == edm.TypeString:
		if edm.CompareBytes(o.textLo.get(), b.textLo.get()) < 0 {
			b.textLo = o.textLo
		}
		if c := edm.CompareBytes(o.textHi.get(), b.textHi.get()); c > 0 || c == 0 && o.textHi.cut {
			b.textHi = o.textHi
		}
	case o.any:
		b.addWords(t, []uint64{o.lo, o.hi}, []uint64{o.lo2, o.hi2})
	}
	b.nan = nan
}

// roundUp returns a bound that is greater than all strings that begin with
// p, which it changes; ok is false if there is none.
func roundUp(p []byte) (bound []byte, ok bool) {
	for len(p) > 0 {
		last := len(p) - 1
		// Up to ED, and with ED itself as the greater one, code units have the
		// order of their bytes.
		if p[last] < 0xED {
			p[last]++
			return p, true
		}
		p = p[:last]
	}
	return nil, false
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
	b := &c.bounds
	if b.nan {
		flags |= summaryNaN
	}
	switch {
	case !b.any || t == edm.TypeBinary:
	case t == edm.TypeString:
		flags |= summaryLower
		dst = append(append(dst, byte(b.textLo.n)), b.textLo.get()...)
		hi, ok := b.textHi.get(), true
		if b.textHi.cut {
			hi, ok = roundUp(hi)
		}
		if ok {
			flags |= summaryUpper
			dst = append(append(dst, byte(len(hi))), hi...)
		}
	case t == edm.TypeGuid:
		flags |= summaryLower | summaryUpper
		for _, w := range []uint64{b.lo, b.lo2, b.hi, b.hi2} {
			dst = binary.BigEndian.AppendUint64(dst, w)
		}
	default:
		flags |= summaryLower | summaryUpper
		dst = binary.LittleEndian.AppendUint64(dst, b.lo)
		dst = binary.LittleEndian.AppendUint64(dst, b.hi)
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
func DecodeSummaries(p []byte, n int) (s *Summaries, what string) {
	c := &cursor{p: p}
	columns := c.u32()
	if columns > maxSummaryColumns {
		return nil, "summaries of too many columns"
	}
	s = &Summaries{columns: make([]summaryColumn, columns)}
	for i := range s.columns {
		t := edm.Type(c.u8())
		s.columns[i] = summaryColumn{string(c.bytes(c.u16())), t}
		if c.bad || !t.Valid() {
			return nil, "impossible column"
		}
	}
	if n > (len(p)-c.off)/summaryGroupBytes {
		return nil, "fewer summaries than groups"
	}
	s.groups = make([][]byte, n)
	for i := range s.groups {
		from := c.off
		if !s.decodeGroup(c, nil) {
			return nil, "impossible summary"
		}
		s.groups[i] = p[from:c.off]
	}
	if c.off != len(p) {
		return nil, "more summaries than groups"
	}
	return s, ""
}

// MemBytes returns about how much memory s takes.
func (s *Summaries) MemBytes() int {
	n := 24*len(s.groups) + 64*len(s.columns)
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
	if v.Type() == edm.TypeDouble && math.IsNaN(v.Double()) {
		return c.NaN
	}
	below := func(a, b edm.Value) bool {
		if v.Type() == edm.TypeString {
			return edm.CompareBytes(a.Bytes(), b.Bytes()) < 0
		}
		return lessWords(v.Type(), a.Word(), a.Word2(), b.Word(), b.Word2())
	}
	return (c.Min.IsNull() || !below(v, c.Min)) && (c.Max.IsNull() || !below(c.Max, v))
}
