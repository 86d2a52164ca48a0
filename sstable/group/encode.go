package group

import (
	"encoding/binary"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// AppendTo appends the group, which will stand at off, and returns the length
// of its head.
func (g *Builder) AppendTo(dst []byte, off int64, b Binding, comp Compression) (out []byte, head int) {
	heap, places := g.layout()
	g.cutUnits(places)
	from := len(dst)
	dst = g.appendKeys(dst)
	dst = appendUnsigned(dst, g.seqs)
	g.fillTimes()
	dst = appendSigned(dst, g.times)
	dst = appendUnsigned(dst, g.slotOf)
	if slices.Min(g.slotOf) != slices.Max(g.slotOf) {
		dst = appendUnsigned(dst, g.ranks)
	}
	dst = appendUnsigned(dst, places)
	dir := len(dst)
	dst = append(dst, make([]byte, len(g.units)*unitDirBytes+len(g.extents)*extentDirBytes)...)
	for _, s := range g.slots {
		dst = s.appendTo(dst)
	}
	end := len(dst) // of the head, whose sum comes when the directories are complete
	dst = append(dst, make([]byte, SumBytes)...)
	section := func(place int, raw []byte) {
		start := len(dst)
		dst = b.AppendSum(appendStored(dst, raw, comp), start, off+int64(start-from))
		binary.LittleEndian.PutUint32(dst[place:], uint32(start-from))
		binary.LittleEndian.PutUint32(dst[place+4:], uint32(len(dst)-start))
	}
	for _, u := range g.units {
		binary.LittleEndian.PutUint16(dst[dir:], uint16(u.First))
		section(dir+4, heap[u.base:u.base+u.Raw])
		dir += unitDirBytes
	}
	for _, e := range g.extents {
		binary.LittleEndian.PutUint16(dst[dir:], uint16(e.row))
		binary.LittleEndian.PutUint16(dst[dir+2:], uint16(e.property))
		binary.LittleEndian.PutUint32(dst[dir+12:], uint32(e.to-e.from))
		section(dir+4, g.big[e.from:e.to])
		dir += extentDirBytes
	}
	binary.LittleEndian.PutUint64(dst[end:], b.Sum(dst[from:end], off))
	return dst, end + SumBytes - from
}

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
			c.inDict = !s.byRow && c.text() && c.dict.Pays(s.rows, vectorHeaderBytes)
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

// appendKeys appends the head up to the end of the keys.
func (g *Builder) appendKeys(dst []byte) []byte {
	n, stretches := g.Rows(), len(g.starts)
	prefix := func(i int) []byte { // what the keys of stretch i have in common
		first, last := g.key(g.starts[i].first), g.key(g.stretchEnd(i)-1)
		return first[:CommonLen(first, last)]
	}
	first := prefix(0)
	common := CommonLen(first, prefix(stretches-1))
	g.prefixes, g.ends = g.prefixes[:0], g.ends[:0]
	longest := 0
	for i := range stretches {
		p := prefix(i)
		g.prefixes = append(g.prefixes, p[common:]...)
		g.ends = append(g.ends, uint64(len(g.prefixes)))
		for row := g.starts[i].first; row < g.stretchEnd(i); row++ {
			longest = max(longest, len(g.key(row))-len(p))
		}
	}
	width := min(longest, 8)
	flags := byte(0)
	if g.versions {
		flags = flagVersions
	}
	for _, v := range []int{n, stretches, len(g.units), len(g.slots), len(g.extents)} {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(v))
	}
	dst = append(dst, byte(width), flags)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(common))
	restAt := len(dst)
	dst = binary.LittleEndian.AppendUint16(dst, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(g.prefixes)))
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, g.maxSeq)
	dst = append(dst, first[:common]...)
	for i, s := range g.starts {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(s.first))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(s.partition))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(g.ends[i]))
	}
	dst = append(dst, g.prefixes...)
	return g.appendSuffixes(dst, common, width, restAt)
}

func (g *Builder) stretchEnd(i int) int {
	if i+1 < len(g.starts) {
		return g.starts[i+1].first
	}
	return g.Rows()
}

// appendSuffixes appends the suffixes' array and their rests. The length of the
// rests goes to dst[restAt].
func (g *Builder) appendSuffixes(dst []byte, common, width, restAt int) []byte {
	n := g.Rows()
	array := len(dst)
	dst = append(dst, make([]byte, n*width)...)
	g.rests = g.rests[:0]
	from := uint64(0)
	restLen := -1
	for i := range g.starts {
		skip := common + int(g.ends[i]-from)
		from = g.ends[i]
		for row := g.starts[i].first; row < g.stretchEnd(i); row++ {
			suffix := g.key(row)[skip:]
			took := copy(dst[array+row*width:array+(row+1)*width], suffix)
			g.rests = append(g.rests, suffix[took:]...)
			switch l := len(suffix) - took; {
			case restLen < 0:
				restLen = l
			case restLen != l:
				restLen = restsVary
			}
		}
	}
	binary.LittleEndian.PutUint16(dst[restAt:], uint16(restLen))
	if restLen == restsVary {
		end := 0
		from = 0
		for i := range g.starts {
			skip := common + int(g.ends[i]-from)
			from = g.ends[i]
			for row := g.starts[i].first; row < g.stretchEnd(i); row++ {
				end += max(len(g.key(row))-skip-width, 0)
				dst = binary.LittleEndian.AppendUint16(dst, uint16(end))
			}
		}
	}
	return append(dst, g.rests...)
}

// appendTo appends the slot with its columns.
func (s *slotBuilder) appendTo(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(s.shape.id))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(s.rows))
	if s.byRow {
		return append(dst, modeRows)
	}
	dst = append(dst, modeColumns)
	last := -1
	for i := range s.columns {
		if c := &s.columns[i]; c.text() && !c.inDict {
			last = i
		}
	}
	for i := range s.columns {
		dst = s.columns[i].appendTo(dst, i == last)
	}
	return dst
}

func (c *columnBuilder) text() bool { return c.typ == edm.TypeString || c.typ == edm.TypeBinary }

func (c *columnBuilder) appendTo(dst []byte, last bool) []byte {
	switch {
	case c.inDict:
		return appendUnsigned(c.dict.AppendTo(append(dst, encodingDict)), c.dict.Codes())
	case last:
		return append(dst, encodingHeapLast)
	case c.text():
		return appendUnsigned(append(dst, encodingHeap), c.words)
	case c.typ == edm.TypeBoolean:
		dst = append(dst, encodingBits)
		at := len(dst)
		dst = append(dst, make([]byte, (len(c.words)+7)/8)...)
		for i, w := range c.words {
			dst[at+i/8] |= byte(w&1) << (i % 8)
		}
		return dst
	case c.typ == edm.TypeGuid:
		dst = append(dst, encodingGuid)
		for i, w := range c.words {
			dst = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, w), c.more[i])
		}
		return dst
	case c.typ == edm.TypeDouble:
		return appendUnsigned(append(dst, encodingWord), c.words)
	}
	return appendSigned(append(dst, encodingWord), c.words)
}
