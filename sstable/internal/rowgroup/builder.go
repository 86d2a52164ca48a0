package rowgroup

import (
	"fmt"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/sstable/internal/dictionary"
	"github.com/tablerock-db/tablerock/sstable/internal/groupbounds"
	"github.com/tablerock-db/tablerock/sstable/internal/valuebounds"
)

// minColumnRows is the fewest rows of one shape that are stored as columns. With
// fewer rows, the headers of the columns take more than the columns save.
const minColumnRows = 8

// Builder collects the rows of a group and encodes it. Reset keeps its memory for the
// next group. The zero Builder is ready to use. A Builder is not safe for concurrent use.
type Builder struct {
	logical   int // size before encoding
	partition int // length of the last row's partition key

	keys         []byte // user keys without their last byte
	keyEnds      []int
	prefixGroups []prefixGroup
	versions     bool
	maxSeq       uint64

	seqs, times, sectionOf, ordinals []uint64

	heap        []byte   // values in row order
	heapOffsets []uint64 // where each row begins in heap, and the end of the last
	sections    []*sectionBuilder
	spare       []*sectionBuilder

	valueBlocks []bigValue
	big         []byte // bytes of valueBlocks

	bounds groupbounds.Builder

	// skip is how many heap units are stored raw before the next attempt to compress one, and
	// skipped what it was after the last attempt: 0 if that was worth it. Reset keeps them.
	skip, skipped int

	// Scratch of AppendTo.
	props      edm.Properties
	newHeap    []byte
	newOffsets []uint64
	heapUnits  []HeapUnit
	prefixes   []byte
	rests      []byte
	restEnds   []byte
	ends       []uint64
}

// prefixGroup is the rows of one partition, from row first on.
type prefixGroup struct{ first, partition int }

type bigValue struct{ row, property, from, to int }

// sectionBuilder collects the rows of one shape.
type sectionBuilder struct {
	shape   *fileShape
	index   int // from 1, as sectionOf has it
	rows    int
	big     bool // some value has a value block
	byRow   bool // mode modeRows
	columns []columnBuilder
	// Of the rows whose values are not in the columns yet: the fixed sections, and where
	// the texts begin in the heap. overhead is the logical size of a row without texts.
	fixed    []byte
	texts    []int
	overhead int
}

// columnBuilder collects the values of one property.
type columnBuilder struct {
	typ   edm.Type
	words []uint64 // of a String or Binary its end within the row's bytes of the heap
	more  []uint64 // second halves of Guids
	dict  dictionary.Builder
	// bounds are complete for Strings only, until AppendBounds.
	bounds valuebounds.Bounds
	// inDict means that the column is stored as a dictionary.
	inDict bool
}

// Rows returns the number of rows added.
func (g *Builder) Rows() int { return len(g.seqs) }

// Logical returns the size of the rows before encoding.
func (g *Builder) Logical() int { return g.logical }

// Partition returns the length of the partition key of the last row, 0 if there is no
// row.
func (g *Builder) Partition() int { return g.partition }

// Full reports whether the size before encoding has reached limit, or the group has as
// many rows as it may.
func (g *Builder) Full(limit int) bool {
	return g.logical >= limit || len(g.seqs) >= MaxRows
}

// Reset removes all rows.
func (g *Builder) Reset() {
	for _, s := range g.sections {
		s.shape.section = nil
	}
	g.spare = append(g.spare, g.sections...)
	g.logical, g.partition, g.versions, g.maxSeq = 0, 0, false, 0
	g.keys, g.keyEnds, g.prefixGroups = g.keys[:0], g.keyEnds[:0], g.prefixGroups[:0]
	g.seqs, g.times, g.sectionOf, g.ordinals = g.seqs[:0], g.times[:0], g.sectionOf[:0], g.ordinals[:0]
	g.heap, g.heapOffsets, g.sections = g.heap[:0], g.heapOffsets[:0], g.sections[:0]
	g.valueBlocks, g.big = g.valueBlocks[:0], g.big[:0]
}

// Add appends a row; a nil row is a tombstone. partition is the length of the row's
// partition key, or 0 if the row before has the same partition. again means that the
// row before has the same user key. An error of a value that row cannot read is
// wrapped.
func (g *Builder) Add(user []byte, partition int, again bool, seq uint64, row codec.ShapedRow, shapes *Shapes) error {
	n := len(g.seqs)
	if partition > 0 {
		g.prefixGroups = append(g.prefixGroups, prefixGroup{n, partition})
		g.partition = partition
	}
	if n == 0 {
		g.heapOffsets = append(g.heapOffsets, 0)
	}
	g.versions = g.versions || again && n > 0
	g.maxSeq = max(g.maxSeq, seq)
	g.keys = append(g.keys, user[:len(user)-1]...)
	g.keyEnds = append(g.keyEnds, len(g.keys))
	g.seqs = append(g.seqs, seq)
	g.logical += len(user) + 16
	if row == nil {
		g.times, g.sectionOf, g.ordinals = append(g.times, 0), append(g.sectionOf, 0), append(g.ordinals, 0)
	} else {
		s := g.section(shapes.find(row.Shape()))
		g.times = append(g.times, uint64(row.Timestamp()))
		g.sectionOf, g.ordinals = append(g.sectionOf, uint64(s.index)), append(g.ordinals, uint64(s.rows))
		if err := g.addValues(s, row, n); err != nil {
			return err
		}
		s.rows++
	}
	g.heapOffsets = append(g.heapOffsets, uint64(len(g.heap)))
	return nil
}

func (g *Builder) key(row int) []byte {
	from := 0
	if row > 0 {
		from = g.keyEnds[row-1]
	}
	return g.keys[from:g.keyEnds[row]]
}

// section returns the section of a shape. It creates the section if needed.
func (g *Builder) section(shape *fileShape) *sectionBuilder {
	if shape.section != nil {
		return shape.section
	}
	s := new(sectionBuilder)
	if n := len(g.spare); n > 0 {
		s = g.spare[n-1]
		g.spare = g.spare[:n-1]
	}
	g.sections = append(g.sections, s)
	columns := slices.Grow(s.columns[:0], shape.shape.Len())[:shape.shape.Len()]
	*s = sectionBuilder{shape: shape, index: len(g.sections), columns: columns, fixed: s.fixed[:0], texts: s.texts[:0]}
	for i := range columns {
		c := &columns[i]
		c.typ, c.words, c.more, c.inDict = shape.shape.Type(i), c.words[:0], c.more[:0], false
		c.bounds = valuebounds.Bounds{}
		switch {
		case c.text():
			c.dict.Reset()
			s.overhead += 2
		case c.typ == edm.TypeGuid:
			s.overhead += 16
		default:
			s.overhead += 8
		}
	}
	shape.section = s
	return s
}

// unreadable returns the error of property i, whose value row could not read.
func unreadable(row codec.ShapedRow, i int) error {
	err := row.Err()
	if err == nil {
		err = errNoValues
	}
	return fmt.Errorf("add: property %d: %w", i, err)
}

// addValues appends the values of a row to the columns and the heap.
func (g *Builder) addValues(s *sectionBuilder, row codec.ShapedRow, n int) error {
	if r, ok := row.(*codec.Row); ok {
		if fixed, texts, ok := r.Narrow(); ok && len(texts) <= bigValueBytes {
			g.addEncoded(s, fixed, texts)
			return nil
		}
	}
	g.addWaiting(s)
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

// addEncoded is addValues for a narrow row without value blocks, whose Strings and
// Binaries have the same layout in the heap. Its values wait for addWaiting.
func (g *Builder) addEncoded(s *sectionBuilder, fixed, texts []byte) {
	s.fixed, s.texts = append(s.fixed, fixed...), append(s.texts, len(g.heap))
	g.heap = append(g.heap, texts...)
	g.logical += len(texts) + s.overhead
}

// addWaiting appends the values that wait to the columns, column by column. Row by row, a
// file without compression takes 20 to 25 % more CPU (BenchmarkWrite), an ordered load some 3 %.
func (g *Builder) addWaiting(s *sectionBuilder) {
	if len(s.texts) == 0 {
		return
	}
	var before []uint64 // ends of the texts before those of a column
	for i := range s.columns {
		c := &s.columns[i]
		n := len(c.words)
		c.words, c.more = s.shape.shape.AppendColumn(c.words, c.more, i, s.fixed)
		if !c.text() {
			continue
		}
		ends := c.words[n:]
		for k, row := range s.texts {
			from := row
			if before != nil {
				from += int(before[k])
			}
			c.note(g.heap[from : row+int(ends[k])])
		}
		before = ends
	}
	s.fixed, s.texts = s.fixed[:0], s.texts[:0]
}

// note adds a String or Binary to the bounds and the dictionary.
func (c *columnBuilder) note(b []byte) {
	if c.typ == edm.TypeString {
		c.bounds.AddText(b)
	}
	if !c.dict.Stopped() && len(b) <= bigValueBytes {
		c.dict.Add(b)
	}
}

// addText appends the String or Binary that is property i of row n.
func (g *Builder) addText(s *sectionBuilder, i, n int, b []byte) error {
	c := &s.columns[i]
	c.note(b)
	g.logical += len(b) + 2
	if len(b) <= bigValueBytes {
		g.heap = append(g.heap, b...)
		return nil
	}
	if len(b) > maxValueBlockBytes {
		return fmt.Errorf("add: value of %d bytes, limit %d", len(b), maxValueBlockBytes)
	}
	g.valueBlocks = append(g.valueBlocks, bigValue{n, i, len(g.big), len(g.big) + len(b)})
	g.big = append(g.big, b...)
	s.big = true
	c.dict.Stop()
	return nil
}
