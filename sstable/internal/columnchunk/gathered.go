package columnchunk

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/dictionary"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// Gathered is the column of a property in one group whose rows have several shapes: its values
// are collected from the columns and rows of all of them. The zero Gathered has no group. It is
// not safe for concurrent use.
type Gathered struct {
	Column // of Kind ByRow, and not Absent, until it is complete

	sections []gatheredSection // by section, from 1
	present  predicate.Bits    // the rows that have the property
	dict     *dictionary.Builder
	texts    Texts
	data     []byte // of Words
	some     []byte // of Some
	head     []byte // the encoded dictionary
}

type gatheredSection struct {
	property int // -1 if the shape does not have it
	column   rowgroup.Column
}

// Reset forgets the group.
func (g *Gathered) Reset() { g.Column, g.sections = Column{}, g.sections[:0] }

// Begin begins the column of the property with the given name in the group of h, unless it has
// begun. It reports false if the shapes have the property in several types, or in one that chunks
// do not hold. If it reports true, Type is set, or the column is Absent.
func (g *Gathered) Begin(h *rowgroup.Head, name string) bool {
	if len(g.sections) > 0 {
		return g.Absent || g.Type != 0
	}
	var typ edm.Type
	for n := 1; n <= h.Sections(); n++ {
		shape := h.SectionShape(n)
		s := gatheredSection{property: shape.Index(name)}
		if s.property >= 0 {
			t := shape.Type(s.property)
			if typ != 0 && t != typ || t == edm.TypeGuid {
				g.sections = append(g.sections, gatheredSection{})
				return false
			}
			typ, s.column = t, h.SectionColumn(n, s.property)
		}
		g.sections = append(g.sections, s)
	}
	g.present = predicate.Bits{}
	for row := range h.Rows() {
		if g.section(h, row) != nil {
			g.present.Add(row)
		}
	}
	g.Column = Column{Absent: g.present.Empty(), Type: typ, Rows: h.Rows(), maxSeq: h.MaxSeq}
	if g.present.Len() < g.Rows {
		g.some = g.some[:0]
		for _, w := range g.present[:(g.Rows+63)/64] {
			g.some = binary.LittleEndian.AppendUint64(g.some, w)
		}
		g.Some = g.some[:(g.Rows+7)/8]
	}
	return true
}

// Present removes from set the rows that do not have the property. Begin must have reported true.
func (g *Gathered) Present(set *predicate.Bits) { set.And(&g.present) }

// All reports whether set, of rows that have the property, has all of them.
func (g *Gathered) All(set *predicate.Bits) bool { return *set == g.present }

// InHead reports whether GatherWords can complete the column without a read outside the head.
func (g *Gathered) InHead() bool {
	for i := range g.sections {
		if s := &g.sections[i]; s.property >= 0 && (s.column.Kind == rowgroup.ByRow || s.column.Kind == rowgroup.Codes) {
			return false
		}
	}
	return !g.Absent
}

// Complete reports whether a chunk with the column has its values.
func (g *Gathered) Complete() bool { return g.Absent || g.Kind != rowgroup.ByRow }

// GatherWords completes a column of numbers or Booleans, whose Kind becomes Words, unless a value
// cannot be read, as r.Err then says. r reads the group.
func (g *Gathered) GatherWords(r *rowgroup.Row) {
	h := r.Head()
	g.data = slices.Grow(g.data[:0], wordBytes*g.Rows)[:wordBytes*g.Rows]
	// The order of the numbers decides how few bytes their differences need.
	bias := uint64(1) << 63
	if g.Type == edm.TypeDouble {
		bias = 0
	}
	lo, hi := uint64(math.MaxUint64), uint64(0)
	for row := range g.Rows {
		s := g.section(h, row)
		if s == nil {
			continue
		}
		var w uint64
		switch ordinal := h.Ordinal(row); s.column.Kind {
		case rowgroup.Words:
			w = s.column.Words.At(ordinal)
		case rowgroup.Booleans:
			w = uint64(s.column.Booleans[ordinal/8] >> (ordinal % 8) & 1)
		default:
			r.Set(row)
			_, v := r.At(s.property)
			w = v.Word()
		}
		w ^= bias
		lo, hi = min(lo, w), max(hi, w)
		binary.LittleEndian.PutUint64(g.data[wordBytes*row:], w)
	}
	if r.Err() != nil {
		return
	}
	for row := range g.Rows {
		if p := g.data[wordBytes*row:]; g.section(h, row) != nil {
			binary.LittleEndian.PutUint64(p, binary.LittleEndian.Uint64(p)-lo)
		}
	}
	g.setWords(lo^bias, hi-lo)
	g.Kind = rowgroup.Words
}

// section returns the section of a row, nil if the row does not have the property.
func (g *Gathered) section(h *rowgroup.Head, row int) *gatheredSection {
	if n := h.Section(row); n > 0 && g.sections[n-1].property >= 0 {
		return &g.sections[n-1]
	}
	return nil
}

// setWords sets Words to the differences in data from base, of which limit is the largest.
func (g *Gathered) setWords(base, limit uint64) {
	g.Words = predicate.Words{Data: g.data, Base: base, Mask: uint64(1)<<bits.Len64(limit) - 1, Step: wordBytes}
}

// Text returns the String or Binary of a row that has the property. If it cannot be read, r.Err says so.
func (g *Gathered) Text(r *rowgroup.Row, row int) []byte {
	r.Set(row)
	_, v := r.At(g.section(r.Head(), row).property)
	return v.Bytes()
}

// BeginTexts begins to collect a column of Strings or Binaries.
func (g *Gathered) BeginTexts() {
	if g.dict == nil {
		g.dict = &dictionary.Builder{Whole: true}
	}
	g.dict.Reset()
	n := predicate.MaxPrefix * g.Rows
	g.texts = slices.Grow(g.texts[:0], n)[:n]
	clear(g.texts)
}

// AddText adds the value of a row, behind those that were added.
func (g *Gathered) AddText(row int, b []byte) {
	copy(g.texts[predicate.MaxPrefix*row:][:predicate.MaxPrefix], b)
	if !g.dict.Stopped() {
		g.dict.Add(b)
	}
}

// EndTexts completes the column after the values of all rows that have the property. Its Kind
// becomes Codes if few of them are different, else Heap, and then only a chunk has Words and Common.
func (g *Gathered) EndTexts() {
	if !g.dict.Stopped() && 2*g.dict.Entries() <= g.present.Len() {
		g.setCodes()
		return
	}
	g.Kind = rowgroup.Heap
	// A row without the property must not make the common prefix shorter.
	value := g.texts[predicate.MaxPrefix*g.present.After(-1):][:predicate.MaxPrefix]
	for row := range g.Rows {
		if !g.present.Has(row) {
			copy(g.texts[predicate.MaxPrefix*row:], value)
		}
	}
}

func (g *Gathered) setCodes() {
	const header = 3 // of dictionary.Builder.AppendTo
	g.head = g.dict.AppendTo(g.head[:0])
	g.entries, g.count = g.head[header:], int(g.head[0])+1
	codes := g.dict.Codes()
	g.data = g.data[:0]
	for row, k := 0, 0; row < g.Rows; row++ {
		code := uint64(0)
		if g.present.Has(row) {
			code = codes[k]
			k++
		}
		g.data = binary.LittleEndian.AppendUint64(g.data, code)
	}
	g.Kind = rowgroup.Codes
	g.setWords(0, uint64(g.count-1))
}
