package rowgroup

import (
	"fmt"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

const (
	TableBytes = 4              // of a table id
	MinKeyLen  = TableBytes + 2 // two empty components follow
	// minColumnRows is the fewest rows of one shape that are worth columns:
	// with fewer, the columns' headers take more than the columns save.
	minColumnRows = 8
)

// Compression says how heap units and extents are compressed.
type Compression uint8

// The compressions. Any reader reads all of them.
const (
	Fast   Compression = iota // s2
	Better                    // s2 at half the speed and some 3 % smaller
	None
)

// Builder gathers the rows of a group. Its memory is used again for the next
// one. The zero Builder is ready.
type Builder struct {
	logical   int // size before encoding
	partition int // length of the last row's partition key

	keys     []byte // user keys without their last byte
	keyEnds  []int
	starts   []stretch
	versions bool
	maxSeq   uint64

	seqs, times, slotOf, ranks []uint64

	heap   []byte   // values in order of rows
	places []uint64 // rows + 1 places in heap
	slots  []*slotBuilder
	spare  []*slotBuilder

	extents []bigValue
	big     []byte // their bytes

	summaries []columnSummary

	words []uint64 // work space of Add

	// Work space of AppendTo.
	props    edm.Properties
	reheap   []byte
	replaces []uint64
	units    []Unit
	prefixes []byte
	rests    []byte
	ends     []uint64
}

// stretch is the rows of a partition, from row first on.
type stretch struct{ first, partition int }

type bigValue struct{ row, property, from, to int }

// slotBuilder gathers the rows of a shape.
type slotBuilder struct {
	shape   *fileShape
	index   int // from 1
	rows    int
	big     bool // some value is an extent
	byRow   bool // of mode 2
	columns []columnBuilder
}

// columnBuilder gathers the values of a property.
type columnBuilder struct {
	typ   edm.Type
	words []uint64 // ends in the row's part of the heap for strings and binaries
	more  []uint64 // second halves of Guids
	dict  dictBuilder
	// bounds are complete only for strings, until Summarize.
	bounds columnBounds
	// inDict says that the dictionary is what will be stored.
	inDict bool
}

// Rows returns the number of rows gathered.
func (g *Builder) Rows() int { return len(g.seqs) }

// Logical returns the size of the rows before any encoding.
func (g *Builder) Logical() int { return g.logical }

// Partition returns the length of the last row's partition's key, 0 without
// rows.
func (g *Builder) Partition() int { return g.partition }

// Full reports whether the group has reached a size before encoding, or cannot
// take another row.
func (g *Builder) Full(limit int) bool {
	return g.logical >= limit || len(g.seqs) >= MaxRows
}

// Reset forgets the rows.
func (g *Builder) Reset() {
	for _, s := range g.slots {
		s.shape.slot = nil
	}
	g.spare = append(g.spare, g.slots...)
	g.logical, g.partition, g.versions, g.maxSeq = 0, 0, false, 0
	g.keys, g.keyEnds, g.starts = g.keys[:0], g.keyEnds[:0], g.starts[:0]
	g.seqs, g.times, g.slotOf, g.ranks = g.seqs[:0], g.times[:0], g.slotOf[:0], g.ranks[:0]
	g.heap, g.places, g.slots = g.heap[:0], g.places[:0], g.slots[:0]
	g.extents, g.big = g.extents[:0], g.big[:0]
}

// Add appends a row, nil for a tombstone. partition is the length of its
// partition's key, or 0 when it is that of the row before; again says that the
// row before has the same user key.
func (g *Builder) Add(user []byte, partition int, again bool, seq uint64, row codec.ShapedRow, shapes *Shapes) error {
	n := len(g.seqs)
	if partition > 0 {
		g.starts = append(g.starts, stretch{n, partition})
		g.partition = partition
	}
	if n == 0 {
		g.places = append(g.places, 0)
	}
	g.versions = g.versions || again && n > 0
	g.maxSeq = max(g.maxSeq, seq)
	g.keys = append(g.keys, user[:len(user)-1]...)
	g.keyEnds = append(g.keyEnds, len(g.keys))
	g.seqs = append(g.seqs, seq)
	g.logical += len(user) + 16
	if row == nil {
		g.times, g.slotOf, g.ranks = append(g.times, 0), append(g.slotOf, 0), append(g.ranks, 0)
	} else {
		s := g.slot(shapes.find(row.Shape()))
		g.times = append(g.times, uint64(row.Timestamp()))
		g.slotOf, g.ranks = append(g.slotOf, uint64(s.index)), append(g.ranks, uint64(s.rows))
		if err := g.addValues(s, row, n); err != nil {
			return err
		}
		s.rows++
	}
	g.places = append(g.places, uint64(len(g.heap)))
	return nil
}

func (g *Builder) key(row int) []byte {
	from := 0
	if row > 0 {
		from = g.keyEnds[row-1]
	}
	return g.keys[from:g.keyEnds[row]]
}

// slot returns the slot of a shape, a new one if it must.
func (g *Builder) slot(shape *fileShape) *slotBuilder {
	if shape.slot != nil {
		return shape.slot
	}
	s := new(slotBuilder)
	if n := len(g.spare); n > 0 {
		s = g.spare[n-1]
		g.spare = g.spare[:n-1]
	}
	g.slots = append(g.slots, s)
	columns := slices.Grow(s.columns[:0], shape.shape.Len())[:shape.shape.Len()]
	*s = slotBuilder{shape: shape, index: len(g.slots), columns: columns}
	for i := range columns {
		c := &columns[i]
		c.typ, c.words, c.more, c.inDict = shape.shape.Type(i), c.words[:0], c.more[:0], false
		c.bounds = columnBounds{}
		if c.text() {
			c.dict.reset()
		}
	}
	shape.slot = s
	return s
}

// unreadable is the error of a value that a row does not give.
func unreadable(row codec.ShapedRow, i int) error {
	err := row.Err()
	if err == nil {
		err = errNoValues
	}
	return fmt.Errorf("add: property %d: %w", i, err)
}

// addValues appends the values of a row to the columns and the heap.
func (g *Builder) addValues(s *slotBuilder, row codec.ShapedRow, n int) error {
	if r, ok := row.(*codec.Row); ok && len(r.Variable()) <= bigValueBytes {
		g.addEncoded(s, r)
		return nil
	}
	from := len(g.heap)
	for i := range s.columns {
		c := &s.columns[i]
		_, v := row.At(i)
		if v.Type() != c.typ {
			if v.IsNull() {
				return unreadable(row, i)
			}
			return fmt.Errorf("add: property %d is %v, its shape says %v", i, v.Type(), c.typ)
		}
		switch c.typ {
		case edm.TypeString, edm.TypeBinary:
			if err := g.addText(s, i, n, v.Bytes()); err != nil {
				return err
			}
			c.words = append(c.words, uint64(len(g.heap)-from))
		case edm.TypeGuid:
			c.words, c.more = append(c.words, v.Word()), append(c.more, v.Word2())
			g.logical += 16
		default:
			c.words = append(c.words, v.Word())
			g.logical += 8
		}
	}
	return nil
}

// addEncoded is addValues of a row without big values, whose texts stand in it
// as they will in the heap.
func (g *Builder) addEncoded(s *slotBuilder, row *codec.Row) {
	text, from := row.Variable(), uint64(0)
	g.heap = append(g.heap, text...)
	g.words = row.AppendWords(g.words[:0])
	words := g.words
	g.logical += 8 * len(words)
	for i := range s.columns {
		c := &s.columns[i]
		w := words[0]
		words, c.words = words[1:], append(c.words, w)
		if c.text() {
			g.logical -= 8
			g.noteText(c, text[from:w])
			from = w
		} else if c.typ == edm.TypeGuid {
			words, c.more = words[1:], append(c.more, words[0])
		}
	}
}

// noteText takes a String or Binary of a column into account.
func (g *Builder) noteText(c *columnBuilder, b []byte) {
	if c.typ == edm.TypeString {
		c.bounds.addText(b)
	}
	g.logical += len(b) + 2
	if !c.dict.stopped && len(b) <= bigValueBytes {
		c.dict.add(b)
	}
}

// addText appends the String or Binary that is property i of row n.
func (g *Builder) addText(s *slotBuilder, i, n int, b []byte) error {
	c := &s.columns[i]
	g.noteText(c, b)
	if len(b) <= bigValueBytes {
		g.heap = append(g.heap, b...)
		return nil
	}
	if len(b) > maxExtentBytes {
		return fmt.Errorf("add: value of %d bytes, limit %d", len(b), maxExtentBytes)
	}
	g.extents = append(g.extents, bigValue{n, i, len(g.big), len(g.big) + len(b)})
	g.big = append(g.big, b...)
	s.big = true
	c.dict.stop()
	return nil
}
