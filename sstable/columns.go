package sstable

import (
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// Columns are rows of Iterators by columns. Those that were appended last are valid until their
// Iterator moves, those of Keep until Release. The zero value has no rows. Columns are not safe for
// concurrent use.
type Columns struct {
	rowgroup.Columns
	kept   []*Row // the first n have the blocks of Keep, the others are memory
	n      int
	missed bool // heap units of rows before were not in the cache
}

// Release removes all rows.
func (c *Columns) Release() {
	c.Clear()
	c.missed = false
	for _, k := range c.kept[:c.n] {
		c.missed = c.missed || k.pins.missed
		k.Release()
		k.pins.r = nil
	}
	c.n = 0
}

// Keep makes c own the blocks of the rows that NextSelectedColumns has appended to it last. With
// left, the iterator stays at the last of them, else it has no position and no selected rows. Keep
// returns false and does nothing if the group is longer than maxStoredBytes or was not in the cache.
func (it *Iterator) Keep(c *Columns, left bool) bool {
	if it.r.index.Groups[it.g].Len > maxStoredBytes || it.view.pins.stored != nil {
		return false
	}
	if c.n == len(c.kept) {
		c.kept = append(c.kept, new(Row))
	}
	k := c.kept[c.n]
	c.n++
	*k, it.view = it.view, *k
	k.Row.Moved(&k.pins)
	c.Moved(&k.Row)
	to, from := &it.view.pins, &k.pins
	to.r, to.fill, to.missed = from.r, from.fill, from.missed || c.missed
	c.missed = false
	it.viewed = false
	if left {
		to.head, to.hints, to.only = from.head.Pin(), from.hints, from.only
		it.view.Attach(it.h, to)
		return true
	}
	it.valid, it.keyed = false, false
	it.h, it.g, it.from, it.to = nil, -1, 0, 0
	it.selected = predicate.Bits{}
	return true
}
