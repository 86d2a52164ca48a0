package scan

import (
	"bytes"

	"github.com/tablerock-db/tablerock/codec"
)

// deletedRange is a range of keys in which a walk passes tombstones of files, and no entity.
type deletedRange struct {
	tombstones  int
	first, last []byte // the user keys of those
}

// emptied returns a deletedRange without tombstones that has the memory of d.
func (d *deletedRange) emptied() deletedRange {
	return deletedRange{first: d.first[:0], last: d.last[:0]}
}

// add adds the tombstone with an internal key.
func (d *deletedRange) add(key []byte) {
	user := codec.UserKey(key)
	if d.tombstones++; d.tombstones == 1 {
		d.first = append(d.first[:0], user...)
	}
	d.last = append(d.last[:0], user...)
}

// end ends the range, and tells data of it if it has many tombstones.
func (d *deletedRange) end(data Data, reverse bool) {
	if d.tombstones >= minDeletedRange {
		lower, upper := d.first, d.last
		if reverse {
			lower, upper = upper, lower
		}
		data.FoundDeleted(lower, append(upper, 0), d.tombstones)
	}
	d.tombstones = 0
}

// hole is a range of keys in which a walk passes tombstones, of any source, and no entity.
type hole struct {
	passed  int  // tombstones, since the last empty range that was left out
	sought  bool // the walk began in it
	fromSet bool // if it did not: from is the key of one of the first tombstones
	from    []byte
}

// begin begins a hole, which a seek or the step behind an entity may have entered.
func (h *hole) begin(sought bool) { h.passed, h.sought, h.fromSet = 0, sought, false }

// leaveHole moves on from a tombstone, behind the empty range that it is in. It is called for each holeStep of
// tombstones.
func (c *Cursor) leaveHole() bool {
	user := codec.UserKey(c.it.Key())
	h := &c.hole
	if !h.sought && !h.fromSet {
		h.from, h.fromSet = append(h.from[:0], user...), true
	}
	if h.passed%minEmptyRange > 0 || c.empty.Empty() {
		return c.step()
	}
	lower, upper, ok := c.empty.Around(user)
	switch {
	case !ok:
		return c.step()
	case c.q.Reverse:
		h.passed = 0
		return c.it.SeekLT(lower)
	}
	h.passed = 0
	return c.it.SeekGE(upper)
}

// endHole tells the data of the hole before the entity with the internal key next, or before the end of the
// range if next is nil, if it has many tombstones. The sources of a query with a filter of values leave out
// entities, so that their holes tell nothing.
func (c *Cursor) endHole(next []byte) {
	h := &c.hole
	if h.passed < minEmptyRange || !h.sought && h.passed < minHole || c.matcher != nil {
		return
	}
	r := c.rest[0]
	switch {
	case h.sought && c.returned == 0: // nothing is before it
	case h.sought && c.q.Reverse:
		r.upper = c.at
	case h.sought:
		r.lower = c.at
	case c.q.Reverse:
		h.from = append(h.from, 0)
		r.upper = h.from
	default:
		r.lower = h.from
	}
	c.foundEmpty(r, next)
}

// foundEmpty tells the data that r has no entity up to the one with the internal key next, or up to its end
// if next is nil.
func (c *Cursor) foundEmpty(r keyRange, next []byte) {
	switch {
	case next == nil:
	case c.q.Reverse:
		r.lower = append(bytes.Clone(codec.UserKey(next)), 0)
	default:
		r.upper = codec.UserKey(next)
	}
	c.data.FoundEmpty(r.lower, r.upper)
}

// probe tells the data of the holes between the start of a query with a filter of values and its first row, or its end
// if row is nil, if the query has passed many tombstones there. Its own sources leave out entities, so a walk
// without the filter looks again. An error of that walk is left to the query.
func (c *Cursor) probe(row codec.ShapedRow) {
	if c.matcher == nil || c.tombstones < probeAfter {
		return
	}
	r := c.first
	if row != nil {
		e := row.Key()
		key := codec.AppendKey(nil, c.table, e.Partition, e.Row)
		if c.q.Reverse {
			r.lower = maxKey(r.lower, append(key, 0))
		} else {
			r.upper = minKey(r.upper, key)
		}
	}
	w := &Cursor{state: states.Get().(*state)}
	w.ctx, w.table, w.data, w.empty, w.q.Reverse = c.ctx, c.table, keptData{c.data}, c.empty, c.q.Reverse
	w.rest = append(w.rest, r)
	w.open(nil)
	for w.returned < maxProbed && w.advance() {
		w.pos = onExamined
		w.returned++
	}
	_ = w.Close()
}

// keptData is Data of which another cursor has the sources too.
type keptData struct{ Data }

// Close implements Data.
func (keptData) Close() {}
