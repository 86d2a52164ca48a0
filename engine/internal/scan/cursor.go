// Package scan executes queries: it reads the ranges of keys that a filter allows
// from the merged memtables and runs, and returns the rows that match.
package scan

import (
	"bytes"
	"context"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/store"
)

// Input is the data of a Cursor.
type Input struct {
	// Table is the id of the table.
	Table uint32
	// Sources returns sources, newest first, with all keys of [lower, upper),
	// tombstones included. They may leave out entries that do not satisfy prune,
	// if that reveals no older version. A nil prune is satisfied by all.
	Sources func(lower, upper []byte, prune *predicate.Program) []merge.Source
	// Close is called once, when the cursor does not need the sources any more.
	Close func()
}

// Cursor implements store.Cursor and store.Examiner.
type Cursor struct {
	ctx  context.Context
	in   Input
	q    store.Query
	rest []keyRange // the current range and those to follow, in the order of the query
	it   merge.Iterator
	pos  position

	next       codec.ShapedRow // the entity to examine next
	row        codec.ShapedRow // the current row
	match      matcher
	project    projection
	returned   int
	examined   int
	tombstones int // passed

	resume *edm.Key
	err    error
	closed bool
}

var (
	_ store.Cursor   = (*Cursor)(nil)
	_ store.Examiner = (*Cursor)(nil)
)

// position is the state of a cursor's iterator.
type position uint8

const (
	beforeRange position = iota // rest[0] has not been sought
	onExamined                  // on an entry that has been examined
	onNext                      // on the entry to examine next
	atEnd                       // nothing is left, or the query has ended
)

const (
	// checkEvery is how many entities are examined between checks of ctx.
	checkEvery = 64
	// tombstonesEvery is how many tombstones are passed between such checks.
	tombstonesEvery = 1024
)

// New returns a cursor for q, which store.CheckQuery has accepted.
func New(ctx context.Context, in Input, q store.Query) *Cursor {
	c := &Cursor{ctx: ctx, in: in, q: q, pos: atEnd}
	c.rest = queryRanges(in.Table, &q)
	if len(c.rest) == 0 {
		return c
	}
	c.match.init(q.Filter)
	c.project.init(q.Select)
	lower, upper := c.rest[0].lower, c.rest[len(c.rest)-1].upper
	if q.Reverse {
		lower, upper = c.rest[len(c.rest)-1].lower, c.rest[0].upper
	}
	c.it.Init(in.Sources(lower, upper, c.match.forBounds()), merge.Options{})
	c.pos = beforeRange
	return c
}

// Failed returns a cursor without rows whose Err is err.
func Failed(err error) *Cursor { return &Cursor{err: err, pos: atEnd, closed: true} }

// Next implements store.Cursor.
func (c *Cursor) Next() bool {
	if c.pos == atEnd || c.closed {
		return false
	}
	if c.q.Limit > 0 && c.returned == c.q.Limit {
		return c.stop(nil)
	}
	for i := 0; ; i++ {
		if i%checkEvery == 0 {
			if err := c.ctx.Err(); err != nil {
				return c.stop(err)
			}
		}
		if c.q.Budget > 0 && c.examined == c.q.Budget {
			return c.stop(nil)
		}
		if !c.advance() {
			return c.finish()
		}
		c.examined++
		c.pos = onExamined
		row := c.next
		matched := c.match.matches(row)
		if matched {
			c.err = c.load(row)
		} else {
			c.err = row.Err() // of a value that the filter read
		}
		if c.err != nil {
			return c.finish()
		}
		if matched {
			c.row = row
			c.returned++
			return true
		}
	}
}

// load reads the values that the caller can see, so that nothing that it does with the
// row fails.
func (c *Cursor) load(row codec.ShapedRow) error {
	if c.q.Select == nil {
		return row.Load()
	}
	return c.project.load(row)
}

// advance moves to the entity to examine next.
func (c *Cursor) advance() bool {
	for len(c.rest) > 0 {
		ok := false
		switch c.pos {
		case beforeRange:
			ok = c.seek()
		case onExamined:
			ok = c.step()
		case onNext, atEnd:
			return c.pos == onNext
		}
		for ok && c.inRange() {
			// A tombstone has no row.
			if c.next = c.it.Row(); c.next != nil {
				c.pos = onNext
				return true
			}
			if c.tombstones++; c.tombstones%tombstonesEvery == 0 && c.ctx.Err() != nil {
				return c.stopAtTombstone()
			}
			ok = c.step()
		}
		if c.it.Err() != nil {
			return false
		}
		c.rest = c.rest[1:]
		c.pos = beforeRange
	}
	return false
}

// stopAtTombstone ends the query at a tombstone because ctx has ended. The next page
// begins at the tombstone.
func (c *Cursor) stopAtTombstone() bool {
	c.err = c.ctx.Err()
	user, _, _ := codec.SplitTrailer(c.it.Key())
	_, partition, row, _ := codec.SplitKey(user)
	c.resume = &edm.Key{
		Partition: string(codec.AppendUTF8(nil, partition)),
		Row:       string(codec.AppendUTF8(nil, row)),
	}
	c.rest = nil
	return false
}

func (c *Cursor) seek() bool {
	if c.q.Reverse {
		return c.it.SeekLT(c.rest[0].upper)
	}
	return c.it.SeekGE(c.rest[0].lower)
}

func (c *Cursor) step() bool {
	if c.q.Reverse {
		return c.it.Prev()
	}
	return c.it.Next()
}

// inRange reports whether the iterator is in the current range. The sources end
// with the last range.
func (c *Cursor) inRange() bool {
	if len(c.rest) == 1 {
		return true
	}
	key := c.it.Key()
	if c.q.Reverse {
		return bytes.Compare(key, c.rest[0].lower) >= 0
	}
	return bytes.Compare(key, c.rest[0].upper) < 0
}

// stop ends the page before the end of the result and sets the resume key.
func (c *Cursor) stop(err error) bool {
	c.err = err
	if c.advance() {
		key := c.next.Key()
		c.resume = &key
	} else if failed := c.it.Err(); failed != nil {
		// Without a resume key, the end of ctx would look like the end of the
		// result.
		c.err = failed
	}
	return c.finish()
}

// finish ends the page.
func (c *Cursor) finish() bool {
	if err := c.it.Err(); err != nil && c.err == nil {
		c.err = err
	}
	c.pos = atEnd
	c.row = nil
	return false
}

// Row implements store.Cursor.
func (c *Cursor) Row() edm.Row {
	if c.row == nil {
		return nil
	}
	if c.q.Select == nil {
		return c.row
	}
	return &c.project
}

// Resume implements store.Cursor.
func (c *Cursor) Resume() *edm.Key { return c.resume }

// Err implements store.Cursor.
func (c *Cursor) Err() error { return c.err }

// Examined implements store.Examiner.
func (c *Cursor) Examined() int { return c.examined }

// Close implements store.Cursor.
func (c *Cursor) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	c.pos = atEnd
	c.row = nil
	err := c.it.Close()
	c.in.Close()
	return err
}
