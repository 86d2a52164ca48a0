package rowgroup

import "encoding/binary"

// Arrange lays what the head holds of each row together, in place of one column
// after the other: the row that a get reads is then in one or two cache lines
// and not in as many as it has properties, and a scan reads memory in order: an
// eighth of a hot get of bench/peers or more, and a twentieth of a scan. It needs memory to
// work in, which it returns for the next time.
func (h *Head) Arrange(work []byte) []byte {
	a := arranger{from: append(work[:0], h.section...), to: h.section, at: h.values}
	for i := range h.slots {
		a.keep(&h.slots[i])
	}
	// What places the rows comes first: it has one entry more.
	var buf [32]*vector
	rows := append(buf[:0], &h.starts, &h.seqs, &h.times, &h.slotOf, &h.ranks)
	if len(h.slots) == 1 && h.slots[0].rows == h.rows && h.slotOf.step == 0 {
		a.interleave(h.slots[0].appendVectors(rows), h.rows, 1)
		return a.from
	}
	a.interleave(rows, h.rows, 1)
	for i := range h.slots {
		s := &h.slots[i]
		a.interleave(s.appendVectors(buf[:0]), s.rows, 0)
	}
	return a.from
}

// appendVectors appends what the columns of s hold of each row.
func (s *slot) appendVectors(dst []*vector) []*vector {
	for i := range s.columns {
		dst = append(dst, &s.columns[i].a)
	}
	return dst
}

// arranger moves parts of a section. It takes no more room than they had: a
// vector loses its header.
type arranger struct {
	from, to []byte
	at       int // where the next part goes
}

// keep moves what is not of single rows.
func (a *arranger) keep(s *slot) {
	for i := range s.columns {
		c := &s.columns[i]
		switch c.encoding {
		case encodingBits:
			at := a.at
			a.at += copy(a.to[at:], a.from[c.bytes:][:(s.rows+7)/8])
			c.bytes = uint32(at)
		case encodingDict:
			n := int(c.bytes - c.dict)
			size := n + le16(a.from[c.dict:], n/2-1)
			at := a.at
			a.at += copy(a.to[at:], a.from[c.dict:][:size])
			c.dict, c.bytes = uint32(at), uint32(at+n)
		}
	}
}

// interleave writes the first entries of all vectors, then the second ones, and
// so on. The first vector has some more entries, which follow.
func (a *arranger) interleave(all []*vector, rows, more int) {
	step := 0
	for _, v := range all {
		step += int(v.step)
	}
	at := a.at
	a.at += rows * step
	for i, v := range all {
		n, width := rows, int(v.step)
		if i == 0 {
			n += more
			a.at += more * width
		}
		if width > 0 {
			v.move(a.to[at:], a.from, n, step)
			v.off, v.step = uint32(at), uint32(step)
			at += width
		}
	}
}

// move writes the n entries of v, which are in from, step bytes apart.
func (v *vector) move(to, from []byte, n, step int) {
	from, width := from[v.off:], int(v.step)
	switch width {
	case 1:
		for i := range n {
			to[i*step] = from[i]
		}
	case 2:
		for i := range n {
			binary.LittleEndian.PutUint16(to[i*step:], binary.LittleEndian.Uint16(from[2*i:]))
		}
	case 4:
		for i := range n {
			binary.LittleEndian.PutUint32(to[i*step:], binary.LittleEndian.Uint32(from[4*i:]))
		}
	case 8:
		for i := range n {
			binary.LittleEndian.PutUint64(to[i*step:], binary.LittleEndian.Uint64(from[8*i:]))
		}
	default:
		for i := range n {
			copy(to[i*step:][:width], from[i*width:])
		}
	}
}
