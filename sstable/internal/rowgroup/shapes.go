package rowgroup

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/codec"
)

// Shapes gives the shapes of a file their ids. Shapes with the same content
// have one id, wherever they come from.
type Shapes struct {
	last      *fileShape
	byPointer map[*codec.Shape]*fileShape
	byHash    map[uint64]*fileShape // of the encoded form; chained by next
	list      []*fileShape
	columns   []summaryColumn // of all shapes, at most maxSummaryColumns
	columnIDs map[summaryColumn]int
	size      int // bytes encoded
	scratch   []byte
}

// fileShape is a shape of a file, and its slot in the group being gathered.
type fileShape struct {
	shape   *codec.Shape
	pointer *codec.Shape // of the source that used it last
	id      int
	encoded []byte
	next    *fileShape
	columns []int        // place in Shapes.columns; maxSummaryColumns: none
	slot    *slotBuilder // nil when no row of the group has the shape
}

// maxPointers is how many shapes of sources a table keeps in memory.
const maxPointers = 1024

// NewShapes returns a table without shapes.
func NewShapes() *Shapes {
	return &Shapes{byPointer: make(map[*codec.Shape]*fileShape), byHash: make(map[uint64]*fileShape), columnIDs: make(map[summaryColumn]int)}
}

// Size returns the length of what AppendTo appends.
func (t *Shapes) Size() int { return 4 + t.size }

// find returns the entry of s, a new one if it must.
func (t *Shapes) find(s *codec.Shape) *fileShape {
	if t.last != nil && t.last.pointer == s {
		return t.last
	}
	e := t.byPointer[s]
	if e == nil {
		e = t.byContent(s)
		if len(t.byPointer) >= maxPointers {
			clear(t.byPointer) // sources decode some shapes again and again
		}
		t.byPointer[s] = e
	}
	e.pointer = s
	t.last = e
	return e
}

func (t *Shapes) byContent(s *codec.Shape) *fileShape {
	t.scratch = codec.AppendShape(t.scratch[:0], s)
	hash := xxhash.Sum64(t.scratch)
	for e := t.byHash[hash]; e != nil; e = e.next {
		if string(e.encoded) == string(t.scratch) {
			return e
		}
	}
	e := &fileShape{shape: s, id: len(t.list), encoded: append([]byte(nil), t.scratch...), next: t.byHash[hash]}
	e.columns = make([]int, s.Len())
	for i := range e.columns {
		e.columns[i] = t.columnID(summaryColumn{s.Name(i), s.Type(i)})
	}
	t.byHash[hash] = e
	t.list = append(t.list, e)
	t.size += len(e.encoded)
	return e
}

func (t *Shapes) columnID(c summaryColumn) int {
	id, ok := t.columnIDs[c]
	if !ok {
		if id = len(t.columns); id == maxSummaryColumns {
			return id
		}
		t.columnIDs[c] = id
		t.columns = append(t.columns, c)
	}
	return id
}

// AppendTo appends the shapes: their number, and each as codec.AppendShape
// writes it, in the order of their ids.
func (t *Shapes) AppendTo(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(t.list)))
	for _, e := range t.list {
		dst = append(dst, e.encoded...)
	}
	return dst
}
