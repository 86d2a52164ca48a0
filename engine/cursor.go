package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/lsm"
	"github.com/tablerock-db/tablerock/internal/memtable"
	"github.com/tablerock-db/tablerock/internal/merge"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/store"
)

// keyRange is a range of user keys, [lower, upper).
type keyRange struct{ lower, upper []byte }

// cursor implements store.Cursor: it walks the ranges of a query through the
// merge of all memtables and runs, at one moment.
type cursor struct {
	ctx  context.Context
	m    *moment
	own  bool // the cursor releases m
	q    store.Query
	rest []keyRange // ranges not finished, in the direction of the walk
	it   merge.Iterator[codec.ShapedRow]
	// pos says where it stands.
	pos position

	row      codec.ShapedRow
	match    matcher
	project  projection
	returned int
	examined int

	resume *edm.Key
	err    error
	closed bool
}

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

// Query implements store.Store.
func (db *DB) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	m := db.takeMoment()
	if m == nil {
		return failedCursor(store.ErrClosed)
	}
	return newCursor(ctx, m, m, table, q)
}

func failedCursor(err error) store.Cursor { return &cursor{err: err, pos: atEnd, closed: true} }

// newCursor returns a cursor over m, which it releases at Close if own is m.
func newCursor(ctx context.Context, m, own *moment, table string, q store.Query) store.Cursor {
	c := &cursor{ctx: ctx, m: m, own: own != nil, q: q, pos: atEnd}
	if c.err = c.open(table); c.err != nil {
		c.Close()
	}
	return c
}

func (c *cursor) open(table string) error {
	if err := edm.CheckTableName(table); err != nil {
		return err
	}
	info := c.m.catalog.lookup(table)
	if info == nil {
		return store.ErrTableNotFound
	}
	if from := c.q.From; from != nil && edm.CheckKey(*from) != nil {
		if err := errors.Join(checkUTF8(edm.Key{Partition: from.Partition}), checkUTF8(edm.Key{Row: from.Row})); err != nil {
			return err
		}
		// No entity has such a key, and its bytes would not be in order: the
		// filter knows which legal keys are beyond it.
		c.q.Filter = filter.And(c.q.Filter, beyond(*c.q.From, c.q.Reverse))
		c.q.From = nil
	}
	c.rest = queryRanges(info.id, &c.q)
	if len(c.rest) == 0 {
		return nil
	}
	c.match.init(c.q.Filter)
	c.project.names = c.q.Select
	lower, upper := c.rest[0].lower, c.rest[len(c.rest)-1].upper
	if c.q.Reverse {
		lower, upper = c.rest[len(c.rest)-1].lower, c.rest[0].upper
	}
	c.it.Init(c.m.sources(lower, upper), merge.Options{})
	c.pos = beforeRange
	return nil
}

// checkUTF8 returns the refusal of a key that is not valid UTF-8.
func checkUTF8(key edm.Key) error {
	var refused *edm.Error
	if err := edm.CheckKey(key); errors.As(err, &refused) && refused.Rule == edm.RuleUTF8 {
		return err
	}
	return nil
}

// beyond returns the filter that keeps the keys from from on, or with reverse
// those up to it.
func beyond(from edm.Key, reverse bool) *filter.Expr {
	if reverse {
		return filter.Keys(filter.Bound{}, filter.Bound{Kind: filter.AfterRow, Key: from})
	}
	return filter.Keys(filter.Bound{Kind: filter.BeforeRow, Key: from}, filter.Bound{})
}

// sources returns one source for every memtable and run that can hold keys in
// [lower, upper), newest first.
func (m *moment) sources(lower, upper []byte) []merge.Source[codec.ShapedRow] {
	o := lsm.IterOptions{Lower: lower, Upper: upper, Snapshot: m.seq, Fill: true}
	var out []merge.Source[codec.ShapedRow]
	for _, seg := range m.state.mems {
		if !seg.empty() {
			o := memtable.IterOptions{Lower: lower, Upper: upper, Snapshot: m.seq}
			out = append(out, lsm.MemSource(seg.table.NewIterator(o)))
		}
	}
	return m.state.version.AppendSources(out, o)
}

// queryRanges returns the ranges of keys that a query must look at, in the
// direction of its walk.
func queryRanges(table uint32, q *store.Query) []keyRange {
	var out []keyRange
	for _, r := range q.Filter.Ranges() {
		k := keyRange{lowerBound(table, r.From), upperBound(table, r.To)}
		if q.From != nil && !q.Reverse {
			from := codec.AppendKey(nil, table, q.From.Partition, q.From.Row)
			k.lower = maxKey(k.lower, from)
		}
		if q.From != nil && q.Reverse {
			to := codec.AppendRowEnd(nil, table, q.From.Partition, q.From.Row)
			k.upper = minKey(k.upper, to)
		}
		if bytes.Compare(k.lower, k.upper) < 0 {
			out = append(out, k)
		}
	}
	if q.Reverse {
		slices.Reverse(out)
	}
	return out
}

func maxKey(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return b
	}
	return a
}

func minKey(a, b []byte) []byte {
	if bytes.Compare(a, b) > 0 {
		return b
	}
	return a
}

func lowerBound(table uint32, b filter.Bound) []byte {
	if b.Kind == filter.Unbounded {
		return codec.AppendTable(nil, table)
	}
	return boundKey(table, b)
}

func upperBound(table uint32, b filter.Bound) []byte {
	if b.Kind == filter.Unbounded {
		return codec.AppendTable(nil, table+1)
	}
	return boundKey(table, b)
}

// boundKey returns the least key bytes that lie behind b.
func boundKey(table uint32, b filter.Bound) []byte {
	switch b.Kind {
	case filter.BeforePartition:
		return codec.AppendPartitionStart(nil, table, b.Key.Partition)
	case filter.BeforeRow:
		return codec.AppendRowStart(nil, table, b.Key.Partition, b.Key.Row)
	case filter.AfterRow:
		return codec.AppendRowEnd(nil, table, b.Key.Partition, b.Key.Row)
	case filter.AfterPartition:
		return codec.AppendPartitionEnd(nil, table, b.Key.Partition)
	case filter.Unbounded:
	}
	panic("engine: bound of unknown kind")
}

// Next implements store.Cursor.
func (c *cursor) Next() bool {
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
		row := c.it.Row()
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

// settleRow returns why what was read of a row cannot be trusted. With whole it
// reads the rest of the row, too: nothing that its reader does may fail.
func settleRow(row codec.ShapedRow, whole bool) error {
	r, onDisk := row.(*sstable.Row)
	switch {
	case !onDisk:
		return nil
	case whole:
		return r.Load()
	}
	return r.Err()
}

// advance moves to the entity to examine next.
func (c *cursor) advance() bool {
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
			if live(c.it.Key()) {
				c.pos = onNext
				return true
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

func (c *cursor) seek() bool {
	if c.q.Reverse {
		return c.it.SeekLT(c.rest[0].upper)
	}
	return c.it.SeekGE(c.rest[0].lower)
}

func (c *cursor) step() bool {
	if c.q.Reverse {
		return c.it.Prev()
	}
	return c.it.Next()
}

// inRange reports whether the iterator stands within the current range. The
// last range ends where the sources end.
func (c *cursor) inRange() bool {
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
func (c *cursor) stop(err error) bool {
	c.err = err
	if c.advance() {
		key := c.it.Row().Key()
		c.resume = &key
	}
	return c.finish()
}

// finish ends the walk.
func (c *cursor) finish() bool {
	if err := c.it.Err(); err != nil && c.err == nil {
		c.err = err
	}
	c.pos = atEnd
	c.row = nil
	return false
}

// Row implements store.Cursor.
func (c *cursor) Row() edm.Row {
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
func (c *cursor) Resume() *edm.Key { return c.resume }

// Err implements store.Cursor.
func (c *cursor) Err() error { return c.err }

// Close implements store.Cursor.
func (c *cursor) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	c.pos = atEnd
	c.row = nil
	err := c.it.Close()
	if c.own {
		c.m.release()
	}
	return err
}

// live reports whether the entry behind an internal key is an entity and not a
// tombstone.
func live(key []byte) bool {
	_, _, kind := codec.SplitTrailer(key)
	return kind == codec.KindPut
}
