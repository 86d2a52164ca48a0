package scan

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/store/postgres/internal/layout"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

const (
	// maxChunkRows and maxChunkBytes limit the rows that one round trip reads. A row that
	// is longer than its share of maxChunkBytes ends the chunk: the next one has fewer rows,
	// down to minChunkRows, which can have any size.
	maxChunkRows  = 1024
	maxChunkBytes = 4 << 20
	minChunkRows  = 4
	// keptChunkBytes is the largest buffer that is kept for other cursors.
	keptChunkBytes = 1 << 20
)

// chunk is the result of one statement: rows in the order of the query.
type chunk struct {
	data []byte // for each row its user key and its column v
	rows []chunkRow
	cut  bool // the last row has no v: it is longer than its share
}

type chunkRow struct {
	at, key, v int // offset in data, lengths of the user key and of v
	ts         int64
}

func (r chunkRow) end() int { return r.at + r.key + r.v }

// key returns the user key of row i, valid until the next reset.
func (c *chunk) key(i int) []byte {
	r := c.rows[i]
	return c.data[r.at : r.at+r.key : r.at+r.key]
}

// value returns the column v of row i, valid until the next reset.
func (c *chunk) value(i int) []byte {
	r := c.rows[i]
	return c.data[r.at+r.key : r.end() : r.end()]
}

// bound returns the bound before the key of row i, or with after the one after it.
func (c *chunk) bound(i int, after bool) bound {
	_, p, r, _ := codec.SplitKey(c.key(i))
	b := bound{bytes.Clone(p), append(make([]byte, 0, len(r)+1), r...)}
	if after {
		b.r = append(b.r, 0)
	}
	return b
}

func (c *chunk) reset() { c.data, c.rows, c.cut = c.data[:0], c.rows[:0], false }

// add adds a row with the columns p, r, ts and v. Rows after one without v are not kept.
func (c *chunk) add(table string, reverse bool, values [][]byte) error {
	if c.cut {
		return nil
	}
	ts, err := wire.Int8Of(values[2])
	if err != nil {
		return err
	}
	at := len(c.data)
	c.data = layout.UserKey(c.data, values[0], values[1])
	row := chunkRow{at: at, key: len(c.data) - at, v: len(values[3]), ts: ts}
	key := c.data[at:]
	if err := codec.CheckKey(key); err != nil {
		return corrupt.Newf(table, 0, "%s: %v", layout.KeyText(key), err)
	}
	if n := len(c.rows); n > 0 && !sameIndexed(c.key(n-1), key) && (bytes.Compare(c.key(n-1), key) < 0) == reverse {
		return fmt.Errorf("%s: the database returned the row %s out of order", table, layout.KeyText(key))
	}
	c.cut = values[3] == nil
	c.data = append(c.data, values[3]...)
	c.rows = append(c.rows, row)
	return nil
}

// sort sorts the rows. They have the order of an index already, which has only prefixes of the
// keys.
func (c *chunk) sort(reverse bool) {
	slices.SortStableFunc(c.rows, func(a, b chunkRow) int {
		order := bytes.Compare(c.data[a.at:a.at+a.key], c.data[b.at:b.at+b.key])
		if reverse {
			return -order
		}
		return order
	})
}

// largest returns the length of the longest v.
func (c *chunk) largest() int {
	n := 0
	for _, r := range c.rows {
		n = max(n, r.v)
	}
	return n
}

var chunks = sync.Pool{New: func() any { return &chunk{} }}

// free keeps the buffers of c, which must not be used any more, for other cursors.
func (c *chunk) free() {
	if cap(c.data) <= keptChunkBytes {
		c.reset()
		chunks.Put(c)
	}
}
