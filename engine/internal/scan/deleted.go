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

// foundEmpty tells the data that a range has no entity from the key at, where the query began, to that of
// the entity with the internal key next, or to the end of the range if next is nil.
func (c *Cursor) foundEmpty(r keyRange, at, next []byte) {
	if c.q.Reverse {
		r.upper = at
	} else {
		r.lower = at
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
	at, seek, step := c.first.lower, it.SeekGE, it.Next
	if c.q.Reverse {
		at, seek, step = c.first.upper, it.SeekLT, it.Prev
	}
	passed := 0
	for ok := seek(at); ok; ok = step() {
		if it.Row() != nil {
			if passed >= minEmptyRange {
				c.foundEmpty(c.first, at, it.Key())
			}
			return
		}
		if passed++; passed%tombstonesEvery == 0 && c.ctx.Err() != nil {
			return
		}
	}
	if passed >= minEmptyRange && it.Err() == nil {
		c.foundEmpty(c.first, at, nil)
	}
}
