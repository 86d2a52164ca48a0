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
	user := key[:len(key)-codec.TrailerLen]
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

// foundEmpty tells the data that a range has no entity from its start, or if the query has returned some already from
// the key that was sought last, to that of the entity with the internal key next, or to its end if next is nil.
func (c *Cursor) foundEmpty(r keyRange, next []byte) {
	switch {
	case c.returned == 0: // a query without a filter has passed none, and a probe seeks the start
	case c.q.Reverse:
		r.upper = c.at
	default:
		r.lower = c.at
	}
	switch user := next[:max(0, len(next)-codec.TrailerLen)]; {
	case next == nil:
	case c.q.Reverse:
		r.lower = append(bytes.Clone(user), 0)
	default:
		r.upper = user
	}
	c.data.FoundEmpty(r.lower, r.upper)
}

// probe looks for an empty range where a query with a filter of values began, if it has passed many tombstones.
// Its sources leave out entities, so the query itself cannot tell. An error of the probe is left to
// the query.
func (c *Cursor) probe() {
	if c.matcher == nil || c.tombstones < probeAfter {
		return
	}
	it := entries(c.data, c.first.lower, c.first.upper)
	defer func() { _ = it.Close() }()
	seek, step := it.SeekGE, it.Next
	if c.q.Reverse {
		seek, step = it.SeekLT, it.Prev
	}
	passed := 0
	for ok := seek(c.start(c.first)); ok; ok = step() {
		if it.Row() != nil {
			if passed >= minEmptyRange {
				c.foundEmpty(c.first, it.Key())
			}
			return
		}
		if passed++; passed%tombstonesEvery == 0 && c.ctx.Err() != nil {
			return
		}
	}
	if passed >= minEmptyRange && it.Err() == nil {
		c.foundEmpty(c.first, nil)
	}
}
