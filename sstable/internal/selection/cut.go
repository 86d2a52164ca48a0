package selection

import (
	"bytes"

	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/rowgroup"
)

// Cut is where windows that share a group cut its matches. It compares their keys from the last
// result on: one window ends where the next one begins. It is not safe for concurrent use.
type Cut struct {
	group int    // -1 if the other fields mean nothing
	asked []byte // the last key
	row   int    // the first row with a match whose key is not less than asked, or the limit
	key   []byte // of row
	buf   []byte
}

// Reset makes c forget its group.
func (c *Cut) Reset() { c.group = -1 }

// RowGE returns a row that is not behind the first match in a group whose user key is not less
// than key, and behind all matches before it. h is the head of the group, and limit a row that is
// behind all matches.
func (c *Cut) RowGE(group int, h *rowgroup.Head, matches *predicate.Bits, limit int, key []byte) int {
	if c.group != group {
		c.group, c.asked = group, c.asked[:0]
		c.set(h, matches.After(-1), limit)
	}
	for bytes.Compare(key, c.asked) < 0 { // in reverse
		before := matches.Before(c.row)
		if before < 0 {
			break
		}
		c.buf = h.AppendKey(c.buf[:0], before)
		if bytes.Compare(c.buf, key) < 0 {
			break
		}
		c.set(h, before, limit)
	}
	for c.row < limit && bytes.Compare(c.key, key) < 0 {
		c.set(h, matches.After(c.row), limit)
	}
	c.asked = append(c.asked[:0], key...)
	return c.row
}

// set makes row, which has a match, the row of c, or limit if row is negative.
func (c *Cut) set(h *rowgroup.Head, row, limit int) {
	if c.row = row; row < 0 {
		c.row = limit
		return
	}
	c.key = h.AppendKey(c.key[:0], row)
}
