package rowgroup

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/sstable/internal/groupbounds"
)

// Shapes assigns ids to the shapes of a file. Shapes with the same content have the
// same id, whatever their source. They are not safe for concurrent use.
type Shapes struct {
	last          *fileShape
	byPointer     map[*codec.Shape]*fileShape
	byHash        map[uint64]*fileShape // of the encoded form; chained by next
	list          []*fileShape
	columns       []groupbounds.Column // of all shapes, at most groupbounds.MaxColumns
	columnNumbers map[groupbounds.Column]int
	size          int // encoded bytes
	scratch       []byte
}

// fileShape is a shape of the file, and its section in the current group.
type fileShape struct {
	shape   *codec.Shape
	pointer *codec.Shape // the equal shape of the source that used it last
	id      int
	encoded []byte
	next    *fileShape
	columns []int           // index in Shapes.columns; groupbounds.MaxColumns if it is not there
	section *sectionBuilder // nil if no row of the group has the shape
}

// maxPointers limits how many shapes of sources Shapes remembers by their address.
const maxPointers = 1024

// NewShapes returns empty Shapes.
func NewShapes() *Shapes {
	return &Shapes{byPointer: make(map[*codec.Shape]*fileShape), byHash: make(map[uint64]*fileShape), columnNumbers: make(map[groupbounds.Column]int)}
}

// Size returns the length of the bytes that AppendTo appends.
func (t *Shapes) Size() int { return 4 + t.size }

// find returns the entry of s. It creates the entry if needed.
func (t *Shapes) find(s *codec.Shape) *fileShape {
	if t.last != nil && t.last.pointer == s {
		return t.last
	}
	e := t.byPointer[s]
	if e == nil {
		e = t.byContent(s)
		if len(t.byPointer) >= maxPointers {
			clear(t.byPointer) // sources decode the same shapes repeatedly
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
		e.columns[i] = t.columnNumber(groupbounds.Column{Name: s.Name(i), Type: s.Type(i)})
	}
	t.byHash[hash] = e
	t.list = append(t.list, e)
	t.size += len(e.encoded)
	return e
}

func (t *Shapes) columnNumber(c groupbounds.Column) int {
	id, ok := t.columnNumbers[c]
	if !ok {
		if id = len(t.columns); id == groupbounds.MaxColumns {
			return id
		}
		t.columnNumbers[c] = id
		t.columns = append(t.columns, c)
	}
	return id
}

// AppendTo appends the number of shapes, then each shape as codec.AppendShape writes
// it, in the order of the ids.
func (t *Shapes) AppendTo(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(t.list)))
	for _, e := range t.list {
		dst = append(dst, e.encoded...)
	}
	return dst
}
