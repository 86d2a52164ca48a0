package rowgroup

import (
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// fillTimes gives tombstones the timestamp of a neighbour: with another one the
// vector would be wider.
func (g *Builder) fillTimes() {
	last, known := uint64(0), false
	for row, s := range g.slotOf {
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

// layout decides how each slot is stored and returns the heap that follows
// from it, and the places of the rows in it.
func (g *Builder) layout() (heap []byte, places []uint64) {
	same := true
	for _, s := range g.slots {
		s.byRow = s.rows < minColumnRows && !s.big && len(s.columns) > 0
		same = same && !s.byRow
		for i := range s.columns {
			c := &s.columns[i]
			c.inDict = !s.byRow && c.text() && c.dict.pays(s.rows, vectorHeaderBytes)
			same = same && !c.inDict
		}
	}
	if same {
		return g.heap, g.places
	}
	g.reheap = g.reheap[:0]
	g.replaces = append(g.replaces[:0], 0)
	for row, n := range g.slotOf {
		if n > 0 {
			s := g.slots[n-1]
			part := g.heap[g.places[row]:g.places[row+1]]
			if s.byRow {
				g.appendRow(s, int(g.ranks[row]), part)
			} else {
				g.appendPart(s, int(g.ranks[row]), part)
			}
		}
		g.replaces = append(g.replaces, uint64(len(g.reheap)))
	}
	return g.reheap, g.replaces
}

// appendRow appends a row of a slot of mode 2 to the heap.
func (g *Builder) appendRow(s *slotBuilder, rank int, part []byte) {
	g.props = g.props[:0]
	from := uint64(0)
	for i := range s.columns {
		c := &s.columns[i]
		w := c.words[rank]
		var v edm.Value
		switch c.typ {
		case edm.TypeString, edm.TypeBinary:
			v = edm.Binary(part[from:w])
			if c.typ == edm.TypeString {
				v = edm.StringBytes(part[from:w])
			}
			from = w
		case edm.TypeGuid:
			v = edm.GuidWords(w, c.more[rank])
		default:
			v = edm.Fixed(c.typ, w)
		}
		g.props = append(g.props, edm.Property{Name: s.shape.shape.Name(i), Value: v})
	}
	at := len(g.reheap)
	g.reheap = append(g.reheap, 0)
	var wide bool
	g.reheap, wide = codec.AppendValues(g.reheap, s.shape.shape, g.props)
	if wide {
		g.reheap[at] = 1
	}
}

// appendPart appends those values of a row to the heap that are in no
// dictionary.
func (g *Builder) appendPart(s *slotBuilder, rank int, part []byte) {
	at, from := len(g.reheap), uint64(0)
	for i := range s.columns {
		c := &s.columns[i]
		if !c.text() {
			continue
		}
		to := c.words[rank]
		if !c.inDict {
			g.reheap = append(g.reheap, part[from:to]...)
			c.words[rank] = uint64(len(g.reheap) - at)
		}
		from = to
	}
}

// cutUnits decides where heap units begin. Rows without a part of the heap
// never begin one but the first, so that none is empty.
func (g *Builder) cutUnits(places []uint64) {
	g.units = g.units[:0]
	for row := range g.seqs {
		size := int(places[row+1] - places[row])
		if size == 0 {
			continue
		}
		n := len(g.units)
		switch {
		case n == 0:
			g.units = append(g.units, Unit{})
		case g.units[n-1].Raw >= unitBytes || g.units[n-1].Raw+size > unitBytes*3/2:
			g.units = append(g.units, Unit{First: row, base: int(places[row])})
		}
		g.units[len(g.units)-1].Raw += size
	}
}

// appendStored appends a heap unit or an extent as it is stored.
func appendStored(dst, raw []byte, comp Compression) []byte {
	from, n := len(dst), len(raw)
	dst = slices.Grow(dst, s2.MaxEncodedLen(n)+SumBytes)
	into := dst[from:cap(dst)]
	switch comp {
	case Fast:
		n = len(s2.Encode(into, raw))
	case Better:
		n = len(s2.EncodeBetter(into, raw))
	case None:
	}
	if n > len(raw)-len(raw)/16 || n == len(raw) { // not worth decoding
		n = copy(into, raw)
	}
	return dst[:from+n]
}
