// Package scan executes queries: it reads the ranges of keys that a filter allows
// from the merged memtables and runs, and returns the rows that match.
package scan

import (
	"bytes"
	"context"
	"sync"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine/internal/emptyrange"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/store"
)

// Data is the data that a Cursor reads.
type Data interface {
	// AddSources adds sources with all keys of [lower, upper), tombstones included. The
	// files say which spans have no row that satisfies prune. A nil prune is satisfied by
	// all.
	AddSources(s *Sources, lower, upper []byte, prune *predicate.Program)
	// FoundDeleted is told that the query has passed n tombstones of files, and no entity, in [lower,
	// upper), which it must not keep. It is called for 256 tombstones and more.
	FoundDeleted(lower, upper []byte, n int)
	// FoundEmpty is told that the query has passed tombstones, and no entity, in [lower, upper), which it
	// must not keep. It is called for minEmptyRange tombstones and more, or minHole.
	FoundEmpty(lower, upper []byte)
	// Merged is told, when the query ends, that it had sources of files that overlap, how many more than one,
	// and how many entities it has passed in walks.
	Merged(files, entities int)
	// Empty returns ranges of keys in which the data has no entity.
	Empty() emptyrange.List
	// Close is called once, when the cursor does not need the sources any more.
	Close()
}

// Cursor implements store.ColumnCursor, store.Examiner and store.Explainer.
//
// It reads one window of keys after the other by columns. Where that gains nothing, it
// walks: it merges the rows of all sources and examines one after the other.
type Cursor struct {
	*state   // nil after Close
	examined int
	resume   edm.Key
	resumes  bool // resume is set
	err      error
}

// state is what a Cursor needs until it is closed. Its memory is used again: a query of
// some rows would else allocate 30 times, 2.7 KB, and need 9 % more CPU
// (bench, BenchmarkShortQuery).
type state struct {
	ctx    context.Context
	ended  <-chan struct{} // of ctx
	table  uint32
	data   Data
	q      store.Query
	bounds []byte     // memory for the bounds in rest
	rest   []keyRange // the current range and those to follow, in the order of the query
	first  keyRange   // of the ranges
	empty  emptyrange.List
	at     []byte // where the window, or a walk before its first seek, begins in rest[0]
	buf    []byte // memory for at
	win    window
	walk   int // entities to examine one by one before the next window
	long   int // the walk that begins next
	byRow  int // calls of NextColumns that return nil at once
	waited int // the greatest byRow since NextColumns has returned minColumns rows

	sources Sources
	it      merge.Iterator
	pos     position

	next       codec.ShapedRow    // the entity to examine next
	row        codec.ShapedRow    // the current row
	rows       rowColumns         // the current rows, by columns
	gathers    int                // heap units whose rows the next NextColumns gathers
	chosen     chosenColumns      // of rows
	matcher    *predicate.Matcher // nil matches all
	project    projection
	returned   int
	size       rowSize
	bytes      int  // of the rows returned, if the query has BudgetBytes
	full       bool // bytes has reached BudgetBytes
	tombstones int  // passed, and older versions
	walked     int  // entities of walks
	deleted    deletedRange
	hole       hole
}

var states = sync.Pool{New: func() any { return new(state) }}

// reset forgets everything but memory to be used again. The sources must be closed.
func (s *state) reset() {
	w := &s.win
	s.it.Init(nil, merge.Options{}) // it has no error
	s.project.reset()
	*s = state{
		bounds: s.bounds[:0], rest: s.rest[:0], buf: s.buf[:0], deleted: s.deleted.emptied(), hole: hole{from: s.hole.from[:0]},
		sources: s.sources, it: s.it,
		project: s.project,
		size:    rowSize{variable: s.size.variable, bytes: s.size.bytes},
		rows:    s.rows,
		win:     window{in: w.in, mem: w.mem, chosen: w.chosen, list: w.list, merged: w.merged},
	}
	s.sources.reset()
}

var (
	_ store.ColumnCursor = (*Cursor)(nil)
	_ store.Examiner     = (*Cursor)(nil)
	_ store.Explainer    = (*Cursor)(nil)
)

// position is the state of a cursor's iterator.
type position uint8

const (
	beforeRange position = iota // at has not been sought
	onExamined                  // on an entry that has been examined
	onNext                      // on the entry to examine next
	atEnd                       // nothing is left, or the query has ended
)

const (
	// checkEvery is how many entities are examined between checks of ctx.
	checkEvery = 64
	// tombstonesEvery is how many tombstones are passed between such checks.
	tombstonesEvery = 1024
	// minDeletedRange is the fewest tombstones that Data.FoundDeleted is told of.
	minDeletedRange = 256
	// minEmptyRange is the fewest tombstones at the start of a query that Data.FoundEmpty is told of: to pass them
	// takes as long as the call. minHole is that of tombstones between entities, where a later query passes
	// minEmptyRange of them, and seeks all sources.
	minEmptyRange = 64
	minHole       = 256
	// holeStep is how many tombstones are passed until it is noted where the hole begins.
	holeStep = 16
	// A query with a filter of values is worth a probe if it passes probeAfter tombstones before its first row. The
	// probe ends at maxProbed entities.
	probeAfter = 256
	maxProbed  = 64
	// A walk is of minWalk entities, so that it is worth the seeks of all sources, and
	// of twice as many as the walk before, up to maxWalk.
	minWalk = 128
	maxWalk = 4096
	// shortLimit is the greatest limit of a query that only walks. With windows, 1 to 100
	// rows of three overlapping runs need 15 % more CPU (bench, BenchmarkShortQuery): a
	// window is found first, and at the limit all sources seek the key to resume from.
	shortLimit = 256
)

// New returns a cursor for q, which store.CheckQuery has accepted.
func New(ctx context.Context, table uint32, data Data, q store.Query) *Cursor {
	c := &Cursor{state: states.Get().(*state)}
	c.ctx, c.ended, c.table, c.data, c.q, c.pos = ctx, ctx.Done(), table, data, q, atEnd
	c.empty = data.Empty()
	c.setRanges()
	if len(c.rest) == 0 {
		return c
	}
	var prune *predicate.Program
	if p := predicate.Residual(q.Filter); p != nil {
		c.matcher, prune = predicate.NewMatcher(p), p.ForBounds()
		c.win.sel = sstable.NewSelector(p)
	}
	c.project.init(q.Select)
	c.open(prune)
	c.long, c.gathers = minWalk, 1
	if len(c.win.files) == 0 || c.matcher == nil && q.Limit > 0 && q.Limit <= shortLimit {
		c.long = unlimited
	}
	return c
}

// open opens the sources of the ranges in rest, of which there is one at least.
func (c *Cursor) open(prune *predicate.Program) {
	lower, upper := c.rest[0].lower, c.rest[len(c.rest)-1].upper
	if c.q.Reverse {
		lower, upper = c.rest[len(c.rest)-1].lower, c.rest[0].upper
	}
	c.data.AddSources(&c.sources, lower, upper, prune)
	all := c.sources.all
	c.win.files, c.win.reverse = c.sources.files, c.q.Reverse
	c.win.mems = all[:len(all)-len(c.win.files)]
	c.it.Init(all, merge.Options{})
	c.first = c.rest[0]
	c.begin()
}

// begin moves before rest[0], if there is one.
func (c *Cursor) begin() {
	c.pos, c.win.sought = beforeRange, false
	if len(c.rest) > 0 {
		c.at = c.start(c.rest[0])
	}
}

// start returns the bound of r at which the query begins.
func (c *Cursor) start(r keyRange) []byte {
	if c.q.Reverse {
		return r.upper
	}
	return r.lower
}

// Failed returns a cursor without rows whose Err is err.
func Failed(err error) *Cursor { return &Cursor{err: err} }

// Next implements store.Cursor.
func (c *Cursor) Next() bool {
	if c.state == nil || c.pos == atEnd {
		return false
	}
	if c.rows.Len() > 0 {
		c.rows.Release()
	}
	if c.q.Limit > 0 && c.returned == c.q.Limit || c.full {
		return c.stop(nil)
	}
	if one := c.win.one; one != nil && c.q.Budget == 0 && !c.done() {
		if row := one.Iterator().NextSelectedRow(c.q.Reverse); row != nil {
			if c.win.counts() {
				c.examined++
			}
			return c.show(row)
		}
		c.endGroup()
	}
	for i := 0; ; i++ {
		if c.walk == 0 || i%checkEvery == 0 {
			if err := c.ctx.Err(); err != nil {
				return c.stop(err)
			}
		}
		if !c.win.open && c.left() <= 0 {
			return c.stop(nil)
		}
		switch {
		case c.win.open:
			switch row, what, examined := c.nextOfWindow(); what {
			case matched:
				c.examined += examined
				return c.show(row)
			case unmatched:
				c.examined += examined
				c.tombstones += 1 - examined
			case exhausted:
				return c.stop(nil)
			}
		case c.walk == 0:
			if len(c.rest) == 0 {
				return c.finish()
			}
			c.openWindow(true)
		default:
			if !c.advance() {
				return c.finish()
			}
			c.examined++
			c.pos = onExamined
			if c.walk--; c.walk == 0 {
				c.endWalk()
			}
			if c.matches(c.next) {
				return c.show(c.next)
			}
			if c.err = c.next.Err(); c.err != nil { // of a value that the filter read
				return c.finish()
			}
		}
	}
}

// done reports whether ctx has ended. It costs less than Err.
func (c *Cursor) done() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// left returns how many more entities may be examined.
func (c *Cursor) left() int {
	if c.q.Budget == 0 {
		return unlimited
	}
	return c.q.Budget - c.examined
}

func (c *Cursor) matches(row codec.ShapedRow) bool {
	return c.matcher == nil || c.matcher.Match(row.Shape(), row)
}

// show makes row the current row.
func (c *Cursor) show(row codec.ShapedRow) bool {
	if c.err = c.load(row); c.err != nil {
		return c.finish()
	}
	if c.returned == 0 {
		c.probe(row)
	}
	c.row = row
	c.returned++
	if c.q.BudgetBytes > 0 {
		c.bytes += c.sizeOf(row)
		c.full = c.bytes >= c.q.BudgetBytes
	}
	return true
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
			c.hole.begin(true)
			ok = c.seek()
		case onExamined:
			c.hole.begin(false)
			ok = c.step()
		case onNext, atEnd:
			return c.pos == onNext
		}
		for ok && c.inRange() {
			// A tombstone has no row.
			if c.next = c.it.Row(); c.next != nil {
				c.endHole(c.it.Key())
				if c.deleted.tombstones > 0 {
					c.deleted.end(c.data, c.q.Reverse)
				}
				c.pos = onNext
				c.walked++
				return true
			}
			if c.it.Index() >= len(c.win.mems) {
				c.deleted.add(c.it.Key())
			}
			if c.tombstones++; c.tombstones%tombstonesEvery == 0 && c.ctx.Err() != nil {
				return c.stopAtTombstone()
			}
			if c.hole.passed++; c.hole.passed%holeStep == 0 {
				ok = c.leaveHole()
			} else {
				ok = c.step()
			}
		}
		if c.it.Err() != nil {
			return false
		}
		c.endHole(nil)
		c.deleted.end(c.data, c.q.Reverse)
		c.rest = c.rest[1:]
		c.begin()
	}
	return false
}

// stopAtTombstone ends the query at a tombstone because ctx has ended. The next page
// begins at the tombstone.
func (c *Cursor) stopAtTombstone() bool {
	c.deleted.end(c.data, c.q.Reverse)
	c.err = c.ctx.Err()
	user := codec.UserKey(c.it.Key())
	_, partition, row, _ := codec.SplitKey(user)
	both := codec.AppendUTF8(c.buf[:0], partition)
	c.setResume(codec.AppendUTF8(both, row), len(both))
	c.rest = nil
	return false
}

// setResume sets the resume key to a PartitionKey of n bytes and a RowKey, in memory of
// buf.
func (c *Cursor) setResume(both []byte, n int) {
	text := string(both)
	c.resume, c.resumes, c.buf = edm.Key{Partition: text[:n], Row: text[n:]}, true, both
}

func (c *Cursor) seek() bool {
	if c.q.Reverse {
		return c.it.SeekLT(c.at)
	}
	return c.it.SeekGE(c.at)
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
	user := codec.UserKey(c.it.Key())
	if c.q.Reverse {
		return bytes.Compare(user, c.rest[0].lower) >= 0
	}
	return bytes.Compare(user, c.rest[0].upper) < 0
}

// stop ends the page before the end of the result and sets the resume key.
func (c *Cursor) stop(err error) bool {
	c.err = err
	if c.walk == 0 {
		c.leaveWindow()
		c.pos = beforeRange
	}
	if c.advance() {
		both := c.next.AppendPartition(c.buf[:0])
		c.setResume(c.next.AppendRow(both), len(both))
	} else if !c.resumes {
		// Nothing can follow, so that the end of ctx does not matter. An error of the
		// sources does: without a resume key it would look like the end of the result.
		c.err = c.it.Err()
	}
	return c.finish()
}

// finish ends the page.
func (c *Cursor) finish() bool {
	if err := c.it.Err(); err != nil && c.err == nil {
		c.err = err
	}
	if c.returned == 0 && c.err == nil {
		c.probe(nil)
	}
	c.pos = atEnd
	c.row = nil
	return false
}

// Row implements store.Cursor.
func (c *Cursor) Row() edm.Row {
	if c.state == nil || c.row == nil {
		return nil
	}
	if c.q.Select == nil {
		return c.row
	}
	return &c.project
}

// Resume implements store.Cursor.
func (c *Cursor) Resume() *edm.Key {
	if !c.resumes {
		return nil
	}
	return &c.resume
}

// Err implements store.Cursor.
func (c *Cursor) Err() error { return c.err }

// Examined implements store.Examiner.
func (c *Cursor) Examined() int { return c.examined }

// Close implements store.Cursor.
func (c *Cursor) Close() error {
	s := c.state
	if s == nil {
		return nil
	}
	c.state = nil
	s.rows.Release()
	s.rows.c = nil
	err := s.it.Close()
	if n := len(s.sources.files); n > 1 {
		s.data.Merged(n-1, s.walked)
	}
	s.data.Close()
	s.reset()
	states.Put(s)
	return err
}
