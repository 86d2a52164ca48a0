package rowgroup

import (
	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/sstable/internal/compression"
)

// fillTimes gives each tombstone the timestamp of a neighbour, which does not make the
// vector wider.
func (g *Builder) fillTimes() {
	last, known := uint64(0), false
	for row, s := range g.sectionOf {
		switch {
		case s == 0:
			g.times[row] = last
		case !known:
			known = true
			for before := range row {
				g.times[before] = g.times[row]
			}
		}
		last = g.times[row]
	}
}

// layout decides how each section is stored. It returns the resulting heap and the
// offsets of the rows in it.
func (g *Builder) layout() (heap []byte, heapOffsets []uint64) {
	same := true
	for _, s := range g.sections {
		g.addWaiting(s)
		s.byRow = s.rows < minColumnRows && !s.big && len(s.columns) > 0
		same = same && !s.byRow
		for i := range s.columns {
			c := &s.columns[i]
			c.inDict = !s.byRow && c.text() && c.dict.Pays(s.rows, vectorHeaderBytes)
			same = same && !c.inDict
		}
	}
	if same {
		return g.heap, g.heapOffsets
	}
	g.newHeap = g.newHeap[:0]
	g.newOffsets = append(g.newOffsets[:0], 0)
	for row, n := range g.sectionOf {
		if n > 0 {
			s := g.sections[n-1]
			values := g.heap[g.heapOffsets[row]:g.heapOffsets[row+1]]
			if s.byRow {
				g.appendRow(s, int(g.ordinals[row]), values)
			} else {
				g.appendHeapValues(s, int(g.ordinals[row]), values)
			}
		}
		g.newOffsets = append(g.newOffsets, uint64(len(g.newHeap)))
	}
	return g.newHeap, g.newOffsets
}

// appendRow appends a row of a section of mode modeRows to the new heap.
func (g *Builder) appendRow(s *sectionBuilder, ordinal int, values []byte) {
	g.props = g.props[:0]
	from := uint64(0)
	for i := range s.columns {
		c := &s.columns[i]
		w := c.words[ordinal]
		var v edm.Value
		switch c.typ {
		case edm.TypeString, edm.TypeBinary:
			v = edm.Binary(values[from:w])
			if c.typ == edm.TypeString {
				v = edm.StringBytes(values[from:w])
			}
			from = w
		case edm.TypeGuid:
			v = edm.GuidWords(w, c.more[ordinal])
		default:
			v = edm.Fixed(c.typ, w)
		}
		g.props = append(g.props, edm.Property{Name: s.shape.shape.Name(i), Value: v})
	}
	at := len(g.newHeap)
	g.newHeap = append(g.newHeap, 0)
	var wide bool
	g.newHeap, wide = codec.AppendValues(g.newHeap, s.shape.shape, g.props)
	if wide {
		g.newHeap[at] = 1
	}
}

// appendHeapValues appends the values of a row that are in no dictionary to the new
// heap.
func (g *Builder) appendHeapValues(s *sectionBuilder, ordinal int, values []byte) {
	at, from := len(g.newHeap), uint64(0)
	for i := range s.columns {
		c := &s.columns[i]
		if !c.text() {
			continue
		}
		to := c.words[ordinal]
		if !c.inDict {
			g.newHeap = append(g.newHeap, values[from:to]...)
			c.words[ordinal] = uint64(len(g.newHeap) - at)
		}
		from = to
	}
}

// cutHeapUnits decides where heap units begin. Except for the first unit, a unit
// begins with a row that has bytes in the heap, so that none is empty.
func (g *Builder) cutHeapUnits(heapOffsets []uint64, m compression.Method) {
	target := heapUnitBytes
	if m == compression.Small {
		target = smallHeapUnitBytes
	}
	g.heapUnits = g.heapUnits[:0]
	for row := range g.seqs {
		size := int(heapOffsets[row+1] - heapOffsets[row])
		if size == 0 {
			continue
		}
		n := len(g.heapUnits)
		switch {
		case n == 0:
			g.heapUnits = append(g.heapUnits, HeapUnit{})
		case g.heapUnits[n-1].Raw >= target || g.heapUnits[n-1].Raw+size > target*3/2:
			g.heapUnits = append(g.heapUnits, HeapUnit{First: row, base: int(heapOffsets[row])})
		}
		g.heapUnits[len(g.heapUnits)-1].Raw += size
	}
}

// maxSkip is the most heap units in a row that are stored raw without an attempt to compress
// them. Where compression is not worth it, a random load needs a tenth less CPU than with an
// attempt for each unit (bench/peers, load/order=random).
const maxSkip = 15

// unitCompression returns how to store the next heap unit. With Fast, units that follow one
// that was not worth compressing are stored raw.
func (g *Builder) unitCompression(m compression.Method) compression.Method {
	if g.skip > 0 && m == compression.Fast {
		return compression.None
	}
	return m
}

// countUnit counts a heap unit for unitCompression. Each attempt in vain doubles the number
// of units before the next one.
func (g *Builder) countUnit(compressed bool) {
	switch {
	case g.skip > 0:
		g.skip--
	case compressed:
		g.skipped = 0
	default:
		g.skipped = min(2*g.skipped+1, maxSkip)
		g.skip = g.skipped
	}
}
