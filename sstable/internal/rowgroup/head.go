package rowgroup

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// Head is a decoded head. Everything that it refers to by place has been
// checked: no later use of it can go out of bounds. Once decoded, it may be used
// concurrently.
type Head struct {
	keys
	section []byte
	off     int64 // of the group in the file
	MaxSeq  uint64
	values  int // where what follows the keys begins
	seqs    vector
	times   vector
	slotOf  vector // 0: tombstone
	ranks   vector // unused with one slot
	starts  vector

	Units   []Unit
	Extents []Extent
	slots   []slot
	first   [1]slot  // memory of slots
	columns []column // of all slots
}

// Unit is the place of a heap unit.
type Unit struct {
	Index      int   // of Head.Units
	First, End int   // rows
	Off        int64 // in the file
	Stored     int   // bytes there, sum included
	Raw        int   // bytes decoded
	base       int   // place in the heap
}

// Extent is the place of a big value.
type Extent struct {
	Row, Property int
	Off           int64 // in the file
	Stored        int   // bytes there, sum included
	Raw           int   // bytes decoded
	Text          bool  // of a String
}

type slot struct {
	shape   *codec.Shape
	rows    int
	heap    bool // rows have a part of the heap
	mode    uint8
	columns []column
}

// Sizes in memory.
const (
	headMemBytes   = 512 // with the fields that sstable adds
	unitMemBytes   = 56
	extentMemBytes = 48
	slotMemBytes   = 48
	columnMemBytes = 56
)

// MemBytes returns how much memory h takes beside its bytes. It includes the shapes
// of its rows, because the list that they come from may forget them.
func (h *Head) MemBytes() int {
	n := headMemBytes + unitMemBytes*cap(h.Units) + extentMemBytes*cap(h.Extents) + slotMemBytes*cap(h.slots) + columnMemBytes*cap(h.columns)
	for i := range h.slots {
		n += h.slots[i].shape.MemBytes()
	}
	return n
}

// Decode reads the head that section holds, whose sum holds and which stands
// at off. group is the length of the whole group, h's memory is used again, and
// section is kept. What is wrong is returned, "" when nothing is.
func (h *Head) Decode(section []byte, off int64, group int, shapes *codec.ShapeList) error {
	c := &cursor{p: section[:len(section)-SumBytes]}
	h.section, h.off = section, off
	h.rows = c.u16()
	stretches, units, slots, extents := c.u16(), c.u16(), c.u16(), c.u16()
	if h.rows < 1 || h.rows > MaxRows || stretches < 1 || stretches > h.rows || units > h.rows || slots > h.rows {
		return errors.New("impossible counts")
	}
	if err := h.keys.decode(c, stretches); err != nil {
		return err
	}
	h.values = c.off
	h.MaxSeq = binary.LittleEndian.Uint64(section[24:])
	h.seqs, h.times, h.slotOf = c.vector(h.rows), c.vector(h.rows), c.vector(h.rows)
	h.ranks = vector{}
	if h.slotOf.step != 0 {
		h.ranks = c.vector(h.rows)
	}
	h.starts = c.vector(h.rows + 1)
	unitDir, extentDir := c.bytes(units*unitDirBytes), c.bytes(extents*extentDirBytes)
	if c.bad {
		return errors.New("head ends early")
	}
	if err := h.decodeUnits(unitDir, len(section), group); err != nil {
		return err
	}
	if err := h.decodeSlots(c, slots, shapes); err != nil {
		return err
	}
	if c.bad || c.off != len(c.p) {
		return errors.New("head has another length than its parts")
	}
	if err := h.checkRows(); err != nil {
		return err
	}
	if !h.checkTimes() {
		return errors.New("Timestamp out of range")
	}
	if len(h.Units) == 0 && !h.checkNoHeap() {
		return errors.New("values in a heap that is not there")
	}
	return h.decodeExtents(extentDir, group)
}

// decodeUnits reads the directory of heap units, which follow the head.
func (h *Head) decodeUnits(dir []byte, next, group int) error {
	h.Units = h.Units[:0]
	for ; len(dir) > 0; dir = dir[unitDirBytes:] {
		u := Unit{
			Index:  len(h.Units),
			First:  le16(dir, 0),
			End:    h.rows,
			Off:    h.off + int64(binary.LittleEndian.Uint32(dir[4:])),
			Stored: int(binary.LittleEndian.Uint32(dir[8:])),
		}
		if len(dir) > unitDirBytes {
			u.End = le16(dir[unitDirBytes:], 0)
		}
		if u.First >= u.End || u.End > h.rows || u.Off != h.off+int64(next) || u.Stored <= SumBytes || u.Stored > group-next || le16(dir, 1) != 0 {
			return errors.New("unit directory names impossible places")
		}
		from, to := h.starts.at(h.section, u.First), h.starts.at(h.section, u.End)
		if from > to || to-from > maxUnitBytes || to > maxHeapBytes || u.Stored-SumBytes > int(to-from) {
			return errors.New("unit directory names impossible lengths")
		}
		u.base, u.Raw = int(from), int(to-from)
		next += u.Stored
		h.Units = append(h.Units, u)
	}
	if n := len(h.Units); n == 0 && (h.starts.step != 0 || h.starts.base != 0) || n > 0 && (h.Units[0].First != 0 || h.Units[0].base != 0) {
		return errors.New("units do not begin with the first row")
	}
	return nil
}

func (h *Head) decodeExtents(dir []byte, group int) error {
	h.Extents = h.Extents[:0]
	last := -1
	for ; len(dir) > 0; dir = dir[extentDirBytes:] {
		e := Extent{
			Row: le16(dir, 0), Property: le16(dir, 1),
			Off:    h.off + int64(binary.LittleEndian.Uint32(dir[4:])),
			Stored: int(binary.LittleEndian.Uint32(dir[8:])),
			Raw:    int(binary.LittleEndian.Uint32(dir[12:])),
		}
		place := e.Row<<16 | e.Property
		if place <= last || e.Row >= h.rows || e.Raw <= bigValueBytes || e.Raw > maxExtentBytes ||
			e.Stored <= SumBytes || e.Stored-SumBytes > e.Raw || e.Off+int64(e.Stored) > h.off+int64(group) {
			return errors.New("extent directory is impossible")
		}
		last = place
		s := h.slotAt(e.Row)
		if s == nil || s.mode != modeColumns || e.Property >= len(s.columns) || !s.columns[e.Property].heap() {
			return errors.New("extent of no string or binary")
		}
		e.Text = s.columns[e.Property].typ == edm.TypeString
		h.Extents = append(h.Extents, e)
	}
	return nil
}

func (h *Head) decodeSlots(c *cursor, n int, shapes *codec.ShapeList) error {
	if h.slots == nil {
		h.slots = h.first[:]
	}
	h.slots, h.columns = h.slots[:0], h.columns[:0]
	for range n {
		id, rows, mode := c.u32(), c.u16(), c.u8()
		if int64(id) >= int64(shapes.Len()) || rows < 1 || rows > h.rows {
			return errors.New("slot of an unknown shape")
		}
		s := slot{shape: shapes.At(int(id)), rows: rows, mode: mode, heap: mode == modeRows}
		switch mode {
		case modeRows:
		case modeColumns:
			from := len(h.columns)
			for i := range s.shape.Len() {
				var col column
				if !col.decode(c, s.shape, i, rows) {
					return errors.New("column of an unknown or unfit encoding")
				}
				h.columns = append(h.columns, col)
			}
			var ok bool
			if s.heap, ok = linkHeap(h.columns[from:]); !ok {
				return errors.New("columns divide the heap wrongly")
			}
		default:
			return errors.New("slot of an unknown mode")
		}
		h.slots = append(h.slots, s)
	}
	// Slots refer to the columns only when these no longer move.
	from := 0
	for i := range h.slots {
		if s := &h.slots[i]; s.mode == modeColumns {
			to := from + s.shape.Len()
			s.columns = h.columns[from:to:to]
			from = to
		}
	}
	return nil
}

// checkRows checks that every row has a place in its slot.
func (h *Head) checkRows() error {
	if h.slotOf.step == 0 {
		if s := h.slotOf.base; s > uint64(len(h.slots)) || s > 0 && h.slots[s-1].rows != h.rows {
			return errors.New("rows of an unknown slot")
		}
		return nil
	}
	for row := range h.rows {
		s := h.slotOf.at(h.section, row)
		if s > uint64(len(h.slots)) || s > 0 && h.ranks.at(h.section, row) >= uint64(h.slots[s-1].rows) {
			return errors.New("row of an unknown slot")
		}
	}
	return nil
}

// checkTimes checks the Timestamps of all rows but tombstones.
func (h *Head) checkTimes() bool {
	if h.times.within(h.section, h.rows, 0, int64(edm.MaxTicks)) {
		return true
	}
	for row := range h.rows {
		if !h.Tombstone(row) && !h.Timestamp(row).Valid() {
			return false
		}
	}
	return true
}

// checkNoHeap checks that every value is empty that would stand in the heap.
func (h *Head) checkNoHeap() bool {
	for row := range h.rows {
		s := h.slotAt(row)
		if s != nil && s.heap && (s.mode == modeRows || checkHeap(h.section, s.columns, h.rank(row), nil) != nil) {
			return false
		}
	}
	return true
}

// slotAt returns the slot of a row, nil for a tombstone.
func (h *Head) slotAt(row int) *slot {
	if s := h.slotOf.at(h.section, row); s > 0 {
		return &h.slots[s-1]
	}
	return nil
}

// rank returns the place of a row within its slot.
func (h *Head) rank(row int) int {
	if h.slotOf.step == 0 {
		return row
	}
	return int(h.ranks.at(h.section, row))
}

// UnitAt returns the unit that holds the heap part of a row, nil when there
// is none.
func (h *Head) UnitAt(row int) *Unit {
	for i := range h.Units {
		if row < h.Units[i].End {
			return &h.Units[i]
		}
	}
	return nil
}

// CheckUnit checks the heap parts of the rows of a decoded unit.
func (h *Head) CheckUnit(u *Unit, raw []byte) error {
	at := uint64(u.base)
	for row := u.First; row < u.End; row++ {
		end := h.starts.at(h.section, row+1)
		if h.starts.at(h.section, row) != at || end < at || end > uint64(u.base+u.Raw) {
			return errors.New("row outside its unit")
		}
		part := raw[at-uint64(u.base) : end-uint64(u.base)]
		at = end
		s := h.slotAt(row)
		switch {
		case s == nil || !s.heap:
			if len(part) != 0 {
				return errors.New("heap part of a row that has none")
			}
		case s.mode == modeRows:
			if len(part) == 0 || part[0] > 1 {
				return errors.New("row of an unknown form")
			}
			if err := codec.CheckValues(s.shape, part[0] == 1, part[1:]); err != nil {
				return err
			}
		default:
			if err := checkHeap(h.section, s.columns, h.rank(row), part); err != nil {
				return err
			}
		}
	}
	return nil
}

// Rows returns the number of rows.
func (h *Head) Rows() int { return h.rows }

// Sequence returns the sequence of a row.
func (h *Head) Sequence(row int) uint64 { return h.seqs.at(h.section, row) }

// Tombstone reports whether a row is one.
func (h *Head) Tombstone(row int) bool { return h.slotOf.at(h.section, row) == 0 }

// Version returns the sequence and the kind of a row.
func (h *Head) Version(row int) (seq uint64, kind codec.Kind) {
	if h.Tombstone(row) {
		return h.seqs.at(h.section, row), codec.KindDelete
	}
	return h.seqs.at(h.section, row), codec.KindPut
}

// Timestamp returns the moment of a row's write; that of a tombstone means
// nothing.
func (h *Head) Timestamp(row int) edm.Ticks { return edm.Ticks(h.times.at(h.section, row)) }

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
