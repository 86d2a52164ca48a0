// Package scan walks the entities of a query: the ranges of keys that it must
// look at, through the merge of all memtables and runs.
package scan

import (
	"bytes"
	"context"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/store"
)

// Input is what a Cursor walks.
type Input struct {
	// Table is the table's id.
	Table uint32
	// Sources returns sources, newest first, that hold every key of
	// [lower, upper) in their merge, tombstones included.
	Sources func(lower, upper []byte) []merge.Source
	// Close releases what the sources read. It is called once.
	Close func()
}

// Cursor implements store.Cursor and store.Examiner.
type Cursor struct {
	ctx  context.Context
	in   Input
	q    store.Query
	rest []keyRange // ranges not finished, in the direction of the walk
	it   merge.Iterator
	pos  position

	next     codec.ShapedRow // the entity to examine next
	row      codec.ShapedRow // the current row
	match    matcher
	project  projection
	returned int
	examined int
	graves   int // tombstones passed

	resume *edm.Key
	err    error
	closed bool
}

var (
	_ store.Cursor   = (*Cursor)(nil)
	_ store.Examiner = (*Cursor)(nil)
)

// position is where a cursor's iterator stands.
type position uint8

const (
	beforeRange position = iota // rest[0] has not been sought
	onExamined                  // on an entry that has been examined
	onNext                      // on the entry to examine next
	atEnd                       // nothing is left, or the walk has ended
)

// checkEvery is how many entities are examined between looks at ctx.
const checkEvery = 64

// gravesEvery is how many tombstones are passed between such looks.
const gravesEvery = 1024

// New returns a cursor over in for q, which store.CheckQuery has accepted.
func New(ctx context.Context, in Input, q store.Query) *Cursor {
	c := &Cursor{ctx: ctx, in: in, q: q, pos: atEnd}
	c.rest = queryRanges(in.Table, &q)
	if len(c.rest) == 0 {
		return c
	}
	c.match.init(q.Filter)
	c.project.names = q.Select
	lower, upper := c.rest[0].lower, c.rest[len(c.rest)-1].upper
	if q.Reverse {
		lower, upper = c.rest[len(c.rest)-1].lower, c.rest[0].upper
	}
	c.it.Init(in.Sources(lower, upper), merge.Options{})
	c.pos = beforeRange
	return c
}

// Failed returns a cursor that has met err.
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
		if err := settleRow(row, matched); err != nil {
			c.err = err
			return c.finish()
		}
		if matched {
			c.row = row
			c.returned++
			return true
		}
	}
}

// Readable reads all of a row and returns why it cannot be trusted.
func Readable(row codec.ShapedRow) error { return settleRow(row, true) }

// settleRow returns why what was read of a row cannot be trusted. With whole it
// reads the rest of the row, too: nothing that its reader does may fail.
func settleRow(row codec.ShapedRow, whole bool) error {
	if whole {
		return row.Load()
	}
	return row.Err()
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
			if c.graves++; c.graves%gravesEvery == 0 && c.ctx.Err() != nil {
				return c.stopAtGrave()
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

// stopAtGrave ends the walk among tombstones, because ctx has ended. The next
// page begins at the one that it stands on.
func (c *Cursor) stopAtGrave() bool {
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

// inRange reports whether the iterator stands within the current range. The
// last range ends where the sources end.
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

// stop ends the walk before the end of the result and remembers where the next
// page begins.
func (c *Cursor) stop(err error) bool {
	c.err = err
	if c.advance() {
		key := c.next.Key()
		c.resume = &key
	} else if failed := c.it.Err(); failed != nil {
		// Without a place to go on from, the end of ctx would look like the end
		// of the result.
		c.err = failed
	}
	return c.finish()
}

// finish ends the walk.
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
	c.project.show(c.row)
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
