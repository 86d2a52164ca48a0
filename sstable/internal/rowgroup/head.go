package rowgroup

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/sstable/internal/checksum"
	"github.com/tablerock-db/tablerock/sstable/internal/compression"
	"github.com/tablerock-db/tablerock/sstable/internal/fields"
)

// Head is a decoded head. Decode has checked every offset in it, so that later uses
// stay in bounds. A decoded Head is safe for concurrent use.
type Head struct {
	// The fields that a filter reads come first, in few cache lines.
	keys
	data        []byte
	MaxSeq      uint64
	sectionOf   vector // from 1; 0 is a tombstone
	sections    []shapeSection
	ValueBlocks []ValueBlock
	HeapUnits   []HeapUnit
	heapOffsets vector
	times       vector
	seqs        vector
	ordinals    vector // unused if all rows have one section
	shapes      *codec.ShapeList
	off         int64    // offset of the group in the file
	values      int      // offset in data of the byte after the keys
	columns     []column // of all sections

	// The memory of slices that are not longer. A hot get needs a sixth less CPU if all of a
	// head is in one place (bench, get/key=present).
	firstSections [1]shapeSection
	firstUnits    [6]HeapUnit
	firstColumns  [15]column
}

// HeapUnit describes a heap unit.
type HeapUnit struct {
	Index      int   // in Head.HeapUnits
	First, End int   // rows
	Off        int64 // in the file
	Stored     int   // bytes there, sum included
	Raw        int   // bytes decoded
	base       int   // offset in the heap
}

// ValueBlock describes the block of one big value.
type ValueBlock struct {
	Row, Property int
	Off           int64 // in the file
	Stored        int   // bytes there, sum included
	Raw           int   // bytes decoded
}

type shapeSection struct {
	shape    *codec.Shape // nil in mode modeRows
	rows     int
	heap     bool // rows have bytes in the heap
	mode     uint8
	lastHeap int16  // the last column in the heap, -1 if there is none
	id       uint32 // of the shape
	columns  []column
}

// Sizes in memory.
const (
	headMemBytes       = 1704 // includes the fields that package sstable adds
	heapUnitMemBytes   = 56
	valueBlockMemBytes = 40
	sectionMemBytes    = 48
	columnMemBytes     = 56
)

// MemBytes returns how much memory h takes beside its bytes. It includes the shapes
// of its columns if the list that they come from may forget them.
func (h *Head) MemBytes() int {
	n := headMemBytes + valueBlockMemBytes*cap(h.ValueBlocks) + sectionMemBytes*cap(h.sections)
	if c := cap(h.HeapUnits); c > len(h.firstUnits) {
		n += heapUnitMemBytes * c
	}
	if c := cap(h.columns); c > len(h.firstColumns) {
		n += columnMemBytes * c
	}
	for i := range h.sections {
		if s := h.sections[i].shape; s != nil {
			n += h.shapes.MemBytesOf(s)
		}
	}
	return n
}

// Decode reads the head in data, whose sum the caller has verified. off is the offset
// of the group in the file, group its length, and before the length of the heap units
// before the head. Decode reuses the memory of h, and h keeps data.
func (h *Head) Decode(data []byte, off int64, before, group int, shapes *codec.ShapeList) error {
	c := &fields.Cursor{P: data[:len(data)-SumBytes]}
	if h.data == nil {
		h.sections, h.HeapUnits, h.columns = h.firstSections[:0], h.firstUnits[:0], h.firstColumns[:0]
	}
	h.data, h.off = data, off
	h.rows = c.U16()
	prefixGroups, heapUnits, sections, valueBlocks := c.U16(), c.U16(), c.U16(), c.U16()
	if h.rows < 1 || h.rows > MaxRows || prefixGroups < 1 || prefixGroups > h.rows || heapUnits > h.rows || sections > h.rows {
		return errors.New("invalid counts")
	}
	if err := h.keys.decode(c, prefixGroups); err != nil {
		return err
	}
	h.values = c.Off
	h.MaxSeq = binary.LittleEndian.Uint64(data[24:])
	h.seqs, h.times, h.sectionOf = readVector(c, h.rows), readVector(c, h.rows), readVector(c, h.rows)
	h.ordinals = vector{}
	if h.sectionOf.step != 0 {
		h.ordinals = readVector(c, h.rows)
	}
	h.heapOffsets = readVector(c, h.rows+1)
	heapUnitDir, valueBlockDir := c.Bytes(heapUnits*heapUnitDirBytes), c.Bytes(valueBlocks*valueBlockDirBytes)
	if c.Bad {
		return errors.New("head ends early")
	}
	if err := h.decodeHeapUnits(heapUnitDir, before, group); err != nil {
		return err
	}
	if err := h.decodeSections(c, sections, shapes); err != nil {
		return err
	}
	if c.Bad || c.Off != len(c.P) {
		return errors.New("bytes after the last column of the head")
	}
	if err := h.checkRows(); err != nil {
		return err
	}
	if !h.checkTimes() {
		return errors.New("Timestamp out of range")
	}
	if len(h.HeapUnits) == 0 && !h.checkNoHeap() {
		return errors.New("values in a heap, and there is no heap unit")
	}
	return h.decodeValueBlocks(valueBlockDir, group)
}

// decodeHeapUnits reads the directory of heap units. The head is after before bytes of
// them.
func (h *Head) decodeHeapUnits(dir []byte, before, group int) error {
	h.HeapUnits = slices.Grow(h.HeapUnits[:0], len(dir)/heapUnitDirBytes)
	next, last := 0, -1
	for ; len(dir) > 0; dir = dir[heapUnitDirBytes:] {
		if next == before {
			next, last = next+len(h.data), next
		}
		u := HeapUnit{
			Index:  len(h.HeapUnits),
			First:  le16(dir, 0),
			End:    h.rows,
			Off:    h.off + int64(binary.LittleEndian.Uint32(dir[4:])),
			Stored: int(binary.LittleEndian.Uint32(dir[8:])),
		}
		if len(dir) > heapUnitDirBytes {
			u.End = le16(dir[heapUnitDirBytes:], 0)
		}
		if u.First >= u.End || u.End > h.rows || u.Off != h.off+int64(next) || u.Stored <= SumBytes || u.Stored > group-next || le16(dir, 1) != 0 {
			return errors.New("heap unit directory has invalid offsets")
		}
		from, to := h.heapOffsets.at(h.data, u.First), h.heapOffsets.at(h.data, u.End)
		if from > to || to-from > maxHeapUnitBytes || to > maxHeapBytes || u.Stored-SumBytes > int(to-from) {
			return errors.New("heap unit directory has invalid lengths")
		}
		u.base, u.Raw = int(from), int(to-from)
		next += u.Stored
		h.HeapUnits = append(h.HeapUnits, u)
	}
	if last != before && before > 0 {
		return errors.New("head is within a heap unit")
	}
	if n := len(h.HeapUnits); n == 0 && (h.heapOffsets.step != 0 || h.heapOffsets.base != 0) || n > 0 && (h.HeapUnits[0].First != 0 || h.HeapUnits[0].base != 0) {
		return errors.New("heap units do not begin with the first row")
	}
	return nil
}

func (h *Head) decodeValueBlocks(dir []byte, group int) error {
	h.ValueBlocks = h.ValueBlocks[:0]
	last := -1
	for ; len(dir) > 0; dir = dir[valueBlockDirBytes:] {
		e := ValueBlock{
			Row: le16(dir, 0), Property: le16(dir, 1),
			Off:    h.off + int64(binary.LittleEndian.Uint32(dir[4:])),
			Stored: int(binary.LittleEndian.Uint32(dir[8:])),
			Raw:    int(binary.LittleEndian.Uint32(dir[12:])),
		}
		position := e.Row<<16 | e.Property
		if position <= last || e.Row >= h.rows || e.Raw <= bigValueBytes || e.Raw > maxValueBlockBytes ||
			e.Stored <= SumBytes || e.Stored-SumBytes > e.Raw || e.Off+int64(e.Stored) > h.off+int64(group) {
			return errors.New("value block directory is invalid")
		}
		last = position
		s := h.sectionAt(e.Row)
		if s == nil || s.mode != modeColumns || e.Property >= len(s.columns) || !s.columns[e.Property].heap() {
			return errors.New("value block of a property that is no String or Binary")
		}
		h.ValueBlocks = append(h.ValueBlocks, e)
	}
	return nil
}

func (h *Head) decodeSections(c *fields.Cursor, n int, shapes *codec.ShapeList) error {
	h.shapes, h.sections, h.columns = shapes, h.sections[:0], h.columns[:0]
	for range n {
		id, rows, mode := c.U32(), c.U16(), c.U8()
		if int64(id) >= int64(shapes.Len()) || rows < 1 || rows > h.rows {
			return errors.New("section of an unknown shape")
		}
		s := shapeSection{id: id, rows: rows, mode: mode, heap: mode == modeRows}
		switch mode {
		case modeRows: // there can be one for each row, and a get needs one of them
		case modeColumns:
			s.shape = shapes.At(int(id))
			from := len(h.columns)
			h.columns = slices.Grow(h.columns, s.shape.Len())
			for i := range s.shape.Len() {
				var col column
				if !col.decode(c, s.shape, i, rows) {
					return errors.New("column with an unknown or unsuitable encoding")
				}
				h.columns = append(h.columns, col)
			}
			last, ok := linkHeap(h.columns[from:])
			if !ok {
				return errors.New("columns divide the heap incorrectly")
			}
			s.heap, s.lastHeap = last >= 0, int16(last)
		default:
			return errors.New("section of an unknown mode")
		}
		h.sections = append(h.sections, s)
	}
	// Set the columns of the sections after the last append, because append may move
	// them.
	from := 0
	for i := range h.sections {
		if s := &h.sections[i]; s.mode == modeColumns {
			to := from + s.shape.Len()
			s.columns = h.columns[from:to:to]
			from = to
		}
	}
	return nil
}

// checkRows checks the section and the ordinal of every row.
func (h *Head) checkRows() error {
	if h.sectionOf.step == 0 {
		if s := h.sectionOf.base; s > uint64(len(h.sections)) || s > 0 && h.sections[s-1].rows != h.rows {
			return errors.New("rows of an unknown section")
		}
		return nil
	}
	for row := range h.rows {
		s := h.sectionOf.at(h.data, row)
		if s > uint64(len(h.sections)) || s > 0 && h.ordinals.at(h.data, row) >= uint64(h.sections[s-1].rows) {
			return errors.New("row of an unknown section")
		}
	}
	return nil
}

// checkTimes checks the Timestamps of all rows except tombstones.
func (h *Head) checkTimes() bool {
	if h.times.within(h.data, h.rows, 0, int64(edm.MaxTicks)) {
		return true
	}
	for row := range h.rows {
		if !h.Tombstone(row) && !h.Timestamp(row).Valid() {
			return false
		}
	}
	return true
}

// checkNoHeap checks that no row needs bytes of the heap: the group has none.
func (h *Head) checkNoHeap() bool {
	for row := range h.rows {
		s := h.sectionAt(row)
		if s != nil && s.heap && (s.mode == modeRows || !checkHeap(h.data, s.columns, int(s.lastHeap), h.Ordinal(row), 0)) {
			return false
		}
	}
	return true
}

// sectionAt returns the section of a row, nil for a tombstone.
func (h *Head) sectionAt(row int) *shapeSection {
	if s := h.sectionOf.at(h.data, row); s > 0 {
		return &h.sections[s-1]
	}
	return nil
}

// Ordinal returns the index of a row among the rows of its section.
func (h *Head) Ordinal(row int) int {
	if h.sectionOf.step == 0 {
		return row
	}
	return int(h.ordinals.at(h.data, row))
}

// heapUnitAt returns the heap unit of a row, nil if the group has none.
func (h *Head) heapUnitAt(row int) *HeapUnit {
	n := len(h.HeapUnits)
	if n == 0 {
		return nil
	}
	i := row * n / h.rows // nearly: units have about as many rows, and those before are not read
	for row < h.HeapUnits[i].First {
		i--
	}
	for row >= h.HeapUnits[i].End {
		i++
	}
	return &h.HeapUnits[i]
}

// CheckHeapUnit checks that the values of rows from to to-1 of u are within the decoded
// unit, whose sum the caller has verified. It does not check that Strings are UTF-8.
func (h *Head) CheckHeapUnit(u *HeapUnit, raw []byte, from, to int) error {
	base, at := uint64(u.base), h.heapOffsets.at(h.data, from)
	for row := from; row < to; row++ {
		end := h.heapOffsets.at(h.data, row+1)
		if at < base || end < at || end > base+uint64(u.Raw) {
			return errors.New("row outside its heap unit")
		}
		heap := raw[at-base : end-base]
		at = end
		s := h.sectionAt(row)
		switch {
		case s == nil || !s.heap:
			if len(heap) != 0 {
				return errors.New("heap bytes of a row without values in the heap")
			}
		case s.mode == modeRows:
			if len(heap) == 0 || heap[0] > 1 {
				return errors.New("row of an unknown form")
			}
			if err := codec.CheckValues(h.shapes.At(int(s.id)), heap[0] == 1, heap[1:]); err != nil {
				return err
			}
		default:
			if !checkHeap(h.data, s.columns, int(s.lastHeap), h.Ordinal(row), len(heap)) {
				return errors.New("values outside their row")
			}
		}
	}
	return nil
}

// Assign gives all rows one sequence number and one Timestamp. It returns false for a group
// that a loaded file cannot have: its rows have sequence number 0, one Timestamp, and
// different keys.
func (h *Head) Assign(seq uint64, stamp edm.Ticks) bool {
	if h.MaxSeq != 0 || h.seqs.step != 0 || h.seqs.base != 0 || h.times.step != 0 || h.versions {
		return false
	}
	h.MaxSeq, h.seqs.base, h.times.base = seq, seq, uint64(stamp)
	return true
}

// Rows returns the number of rows.
func (h *Head) Rows() int { return h.rows }

// Sequence returns the sequence number of a row.
func (h *Head) Sequence(row int) uint64 { return h.seqs.at(h.data, row) }

// Tombstone reports whether a row is one.
func (h *Head) Tombstone(row int) bool { return h.sectionOf.at(h.data, row) == 0 }

// Version returns the sequence number and the kind of a row.
func (h *Head) Version(row int) (seq uint64, kind codec.Kind) {
	if h.Tombstone(row) {
		return h.seqs.at(h.data, row), codec.KindDelete
	}
	return h.seqs.at(h.data, row), codec.KindPut
}

// Timestamp returns the time of the last write. It is undefined for a tombstone.
func (h *Head) Timestamp(row int) edm.Ticks { return edm.Ticks(h.times.at(h.data, row)) }

// AppendTo appends the encoded group, whose offset in the file is off, and returns the
// length of its head and of the heap units before that.
func (g *Builder) AppendTo(dst []byte, off int64, b checksum.Binding, m compression.Method) (out []byte, before, head int) {
	heap, heapOffsets := g.layout()
	g.cutHeapUnits(heapOffsets, m)
	from := len(dst)
	block := func(raw []byte, m compression.Method) (at int64, stored int) {
		start := len(dst)
		dst = b.AppendSum(compression.Append(dst, raw, m), start, off+int64(start-from))
		return int64(start - from), len(dst) - start
	}
	units := func(units []HeapUnit) {
		for i := range units {
			u := &units[i]
			u.Off, u.Stored = block(heap[u.base:u.base+u.Raw], g.unitCompression(m))
			g.countUnit(u.Stored < u.Raw)
		}
	}
	n := g.unitsBefore()
	units(g.heapUnits[:n])
	before = len(dst) - from
	dst = g.appendKeys(dst)
	dst = appendUnsigned(dst, g.seqs)
	g.fillTimes()
	dst = appendSigned(dst, g.times)
	dst = appendUnsigned(dst, g.sectionOf)
	if slices.Min(g.sectionOf) != slices.Max(g.sectionOf) {
		dst = appendUnsigned(dst, g.ordinals)
	}
	dst = appendUnsigned(dst, heapOffsets)
	dir := len(dst)
	dst = append(dst, make([]byte, len(g.heapUnits)*heapUnitDirBytes+len(g.valueBlocks)*valueBlockDirBytes)...)
	for _, s := range g.sections {
		dst = s.appendTo(dst)
	}
	end := len(dst) // of the head; its sum is written when the directories are complete
	dst = append(dst, make([]byte, SumBytes)...)
	units(g.heapUnits[n:])
	entry := func(row, property int, at int64, stored int) {
		binary.LittleEndian.PutUint16(dst[dir:], uint16(row))
		binary.LittleEndian.PutUint16(dst[dir+2:], uint16(property))
		binary.LittleEndian.PutUint32(dst[dir+4:], uint32(at))
		binary.LittleEndian.PutUint32(dst[dir+8:], uint32(stored))
		dir += heapUnitDirBytes
	}
	for _, u := range g.heapUnits {
		entry(u.First, 0, u.Off, u.Stored)
	}
	for _, e := range g.valueBlocks {
		at, stored := block(g.big[e.from:e.to], m)
		entry(e.row, e.property, at, stored)
		binary.LittleEndian.PutUint32(dst[dir:], uint32(e.to-e.from))
		dir += 4
	}
	binary.LittleEndian.PutUint64(dst[end:], b.Sum(dst[from+before:end], off+int64(before)))
	return dst, before, end + SumBytes - from - before
}

// unitsBefore returns how many heap units are before the head. A reader of one row reads
// the head, its unit and the units between. A value block is after all units.
func (g *Builder) unitsBefore() int {
	n := len(g.heapUnits) / 2
	if len(g.valueBlocks) > 0 || n > 0 && g.heapUnits[n].base+n*SumBytes > maxBefore {
		return 0
	}
	return n
}

// HeapUnits returns the heap units of the group that AppendTo encoded, valid until Reset.
func (g *Builder) HeapUnits() []HeapUnit { return g.heapUnits }

// AppendKey appends the user key of a row.
func (g *Builder) AppendKey(dst []byte, row int) []byte {
	return append(append(dst, g.key(row)...), codec.EndOfComponent)
}

// appendTo appends the section with its columns.
func (s *sectionBuilder) appendTo(dst []byte) []byte {
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
