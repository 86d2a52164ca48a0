package columnchunk

import (
	"encoding/binary"
	"math/bits"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// builder builds chunks, one after the other in the same memory.
type builder struct {
	buf []byte
	n   int // groups added
}

// Properties for Add that are no index.
const (
	None      = -1 // the rows do not have the property
	Timestamp = -2
)

// begin begins the chunk of a property from group first on.
func (b *builder) begin(first int, name string) {
	b.n = 0
	b.buf = append(b.buf[:0], make([]byte, firstAt)...)
	b.buf = binary.LittleEndian.AppendUint32(b.buf, uint32(first))
	b.buf = binary.LittleEndian.AppendUint32(b.buf, 0)
	b.buf = binary.LittleEndian.AppendUint16(b.buf, uint16(len(name)))
	b.buf = append(b.buf, name...)
}

// extend begins a chunk with the groups of c.
func (b *builder) extend(c chunk) {
	b.n = 0
	b.buf = append(b.buf[:0], c[:len(c)-wordBytes]...)
}

// added returns how many groups Add has added.
func (b *builder) added() int { return b.n }

// complete reports whether the chunk has all of the given number of groups, with their values.
func (b *builder) complete(groups int) bool {
	for i := range groups {
		if b.buf[i*entryBytes+24] == unread {
			return false
		}
	}
	return binary.LittleEndian.Uint32(b.buf[addedAt:]) == 1<<groups-1
}

// Texts are the values of a column of the kind rowgroup.Heap in all rows of a group: the first
// predicate.MaxPrefix bytes of each, with zeros behind a shorter one.
type Texts []byte

// addGroup is Set.Add for the group with index i, instead of what the chunk has of the group. If the
// chunk would be too long, or the group is not plain, the chunk says that only the group itself has
// the values.
func (b *builder) addGroup(i int, h *rowgroup.Head, property int, t edm.Type, plain bool, texts Texts) {
	from := b.beginGroup(i)
	if plain {
		e := b.entry(h.MaxSeq, h.Rows(), t)
		b.add(&e, h, property, texts)
		copy(b.buf[i*entryBytes:], e[:])
	}
	b.endGroup(i, from)
}

// addGathered is Set.AddGathered for the group with index i.
func (b *builder) addGathered(i int, g *Gathered) {
	from := b.beginGroup(i)
	e := b.entry(g.maxSeq, g.Rows, g.Type)
	b.addColumnOf(&e, g)
	copy(b.buf[i*entryBytes:], e[:])
	b.endGroup(i, from)
}

// beginGroup removes the entry of the group with index i and returns where its values begin.
func (b *builder) beginGroup(i int) (from int) {
	clear(b.buf[i*entryBytes:][:entryBytes])
	return len(b.buf)
}

// endGroup removes the group again if the chunk is too long with it.
func (b *builder) endGroup(i, from int) {
	if len(b.buf)+wordBytes > maxBytes {
		b.buf = b.buf[:from]
		clear(b.buf[i*entryBytes:][:entryBytes])
	}
	b.n++
	added := binary.LittleEndian.Uint32(b.buf[addedAt:])
	binary.LittleEndian.PutUint32(b.buf[addedAt:], added|1<<i)
}

// entry returns the entry of a group whose values are appended next.
func (b *builder) entry(maxSeq uint64, rows int, t edm.Type) (e [entryBytes]byte) {
	binary.LittleEndian.PutUint64(e[8:], maxSeq)
	binary.LittleEndian.PutUint32(e[16:], uint32(len(b.buf)))
	binary.LittleEndian.PutUint16(e[20:], uint16(rows))
	e[25] = byte(t)
	return e
}

func (b *builder) add(e *[entryBytes]byte, h *rowgroup.Head, property int, texts Texts) {
	switch property {
	case None:
		e[24] = absent
	case Timestamp:
		w := h.Timestamps()
		b.addWords(e, rowgroup.Words, &w, h.Rows())
	default:
		if c := h.Column(property); c.Kind != rowgroup.Heap {
			b.addColumn(e, c, h.Rows())
		} else if e[24] = unread; texts != nil {
			b.addTexts(e, texts)
		}
	}
}

func (b *builder) addColumn(e *[entryBytes]byte, c rowgroup.Column, rows int) {
	switch c.Kind {
	case rowgroup.Words:
		b.addWords(e, c.Kind, &c.Words, rows)
	case rowgroup.Booleans:
		e[24] = byte(c.Kind)
		b.buf = append(b.buf, c.Booleans...)
	case rowgroup.Codes:
		end := 0
		for code := range c.Entries() {
			end += len(c.Entry(code))
			b.buf = binary.LittleEndian.AppendUint16(b.buf, uint16(end))
		}
		for code := range c.Entries() {
			b.buf = append(b.buf, c.Entry(code)...)
		}
		b.addCodes(e, c.Entries(), end, &c.Words, rows)
	case rowgroup.ByRow, rowgroup.Heap:
	}
}

// addColumnOf adds the values of g, or says that no row has the property or that they were not read.
func (b *builder) addColumnOf(e *[entryBytes]byte, g *Gathered) {
	if g.Some != nil {
		e[28] = 1
		b.buf = append(b.buf, g.Some...)
	}
	switch e[24] = unread; g.Kind {
	case rowgroup.Words:
		b.addWords(e, g.Kind, &g.Words, g.Rows)
	case rowgroup.Codes:
		b.buf = append(b.buf, g.entries...)
		b.addCodes(e, g.count, len(g.entries)-2*g.count, &g.Words, g.Rows)
	case rowgroup.Heap:
		b.addTexts(e, g.texts)
	default:
		if g.Absent {
			e[24] = absent
		}
	}
}

// addCodes adds the codes of a dictionary whose entries, of some bytes, were appended.
func (b *builder) addCodes(e *[entryBytes]byte, entries, size int, w *predicate.Words, rows int) {
	e[27] = byte(entries - 1)
	binary.LittleEndian.PutUint16(e[22:], uint16(size))
	b.addWords(e, rowgroup.Codes, w, rows)
}

func (b *builder) addWords(e *[entryBytes]byte, kind rowgroup.ColumnKind, w *predicate.Words, rows int) {
	width := (bits.Len64(w.Mask) + 7) / 8
	binary.LittleEndian.PutUint64(e[:], w.Base)
	e[24], e[26] = byte(kind), byte(width)
	switch width {
	case 0:
		return
	case w.Step:
		b.buf = append(b.buf, w.Data[w.Off:][:rows*width]...)
		return
	}
	for i := range rows {
		at := w.Off + i*w.Step
		b.buf = append(b.buf, w.Data[at:at+width]...)
	}
}

func (b *builder) addTexts(e *[entryBytes]byte, texts Texts) {
	const longest = predicate.MaxPrefix
	common := longest - wordBytes
	for at := longest; at < len(texts); at += longest {
		common = codec.CommonLen(texts[:common], texts[at:][:common])
	}
	e[24], e[26] = byte(rowgroup.Heap), wordBytes
	binary.LittleEndian.PutUint16(e[22:], uint16(common))
	b.buf = append(b.buf, texts[:common]...)
	for at := 0; at < len(texts); at += longest {
		b.buf = binary.LittleEndian.AppendUint64(b.buf, binary.BigEndian.Uint64(texts[at+common:]))
	}
}

// chunk returns the chunk, valid until begin or extend. addGroup must not be called after it.
func (b *builder) chunk() chunk {
	b.buf = append(b.buf, make([]byte, wordBytes)...)
	return b.buf
}
