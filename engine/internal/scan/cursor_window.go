package scan

import (
	"bytes"

	"github.com/tablerock-db/tablerock/codec"
)

// openWindow finds the next window. It skips it, opens it or begins a walk. byRows is that of
// sstable.Iterator.Select.
func (c *Cursor) openWindow(byRows bool) {
	if c.long == unlimited {
		c.walk = unlimited
		return
	}
	w := &c.win
	r := c.rest[0]
	if !c.empty.Empty() {
		if r = c.skipEmpty(r); bytes.Compare(r.lower, r.upper) >= 0 {
			c.rest = c.rest[1:]
			c.begin()
			return
		}
	}
	w.find(r, c.at)
	how, examined := w.plan(c.left(), byRows)
	switch how {
	case skip:
		c.examined += examined
		c.endWindow()
	case columns:
		c.examined += examined
		c.long = minWalk
	case walk:
		c.beginWalk()
	}
}

// skipEmpty moves at behind the empty range that it is in. It returns what follows in r, the first of rest, up to the
// next empty range, so that no window has one.
func (c *Cursor) skipEmpty(r keyRange) keyRange {
	if c.q.Reverse {
		r.upper = c.at
	} else {
		r.lower = c.at
	}
	r.lower, r.upper = c.empty.Trim(r.lower, r.upper)
	if bytes.Compare(r.lower, r.upper) >= 0 {
		return r
	}
	if at := c.start(r); !bytes.Equal(at, c.at) {
		c.moveTo(at)
		c.win.sought = false
	}
	if c.q.Reverse {
		r.lower = maxKey(r.lower, c.empty.Before(r.upper))
	} else if next := c.empty.After(r.lower); next != nil {
		r.upper = minKey(r.upper, next)
	}
	return r
}

// nextOfWindow is window.next. It leaves a group or window that has ended or failed.
func (c *Cursor) nextOfWindow() (row codec.ShapedRow, what outcome, examined int) {
	row, what, examined = c.win.next(c.left(), c.matches)
	switch what {
	case ended:
		c.endGroup()
	case failed:
		c.failWindow()
	}
	return row, what, examined
}

// failWindow leaves a window of which a source cannot be read.
func (c *Cursor) failWindow() {
	c.leaveWindow()
	c.beginWalk() // to the error
}

// endGroup moves to the next groups of the window, or else to its end.
func (c *Cursor) endGroup() {
	ok, examined, err := c.win.nextGroup()
	c.examined += examined
	switch {
	case err != nil:
		c.failWindow()
	case !ok:
		c.endWindow()
	}
}

// endWindow moves to the end of the window.
func (c *Cursor) endWindow() {
	c.win.close()
	c.moveTo(c.win.end())
	limit := c.rest[0].upper
	if c.q.Reverse {
		limit = c.rest[0].lower
	}
	if bytes.Equal(c.at, limit) {
		c.rest = c.rest[1:]
		c.begin()
	}
}

// leaveWindow closes an open window. What is left begins behind the last row.
func (c *Cursor) leaveWindow() {
	if !c.win.open {
		return
	}
	if key := c.win.appendPosition(c.buf[:0]); len(key) > 0 {
		c.at, c.buf = key, key
	}
	c.win.close()
}

// beginWalk begins a walk at c.at.
func (c *Cursor) beginWalk() {
	c.pos, c.walk = beforeRange, c.long
	c.long = min(2*c.long, maxWalk)
}

// endWalk ends a walk behind the entity that was examined last.
func (c *Cursor) endWalk() {
	c.moveTo(codec.UserKey(c.it.Key()))
	if !c.q.Reverse {
		c.at = append(c.at, 0) // the least key above it
		c.buf = c.at
	}
	c.win.sought = false
}

// moveTo sets at to a copy of key.
func (c *Cursor) moveTo(key []byte) {
	c.buf = append(c.buf[:0], key...)
	c.at = c.buf
}
