package server

import "sync"

// An answer of many entities is gathered in chunks, which are used again by later
// answers: one growing buffer of a page costs a third of a scan in copies and
// garbage.
const (
	chunkBytes = 64 << 10
	chunkSlack = 16 << 10 // for the entity that fills a chunk
)

// chunks are the full pieces of an answer, in order.
type chunks struct {
	full  [][]byte
	bytes int
}

var freeChunks = sync.Pool{New: func() any { return new([chunkBytes + chunkSlack]byte) }}

func newChunk() []byte { return freeChunks.Get().(*[chunkBytes + chunkSlack]byte)[:0] }

// put takes a full piece and returns an empty one.
func (c *chunks) put(b []byte) []byte {
	c.full = append(c.full, b)
	c.bytes += len(b)
	return newChunk()
}

// drop lets go of piece i.
func (c *chunks) drop(i int) {
	if b := c.full[i]; cap(b) == chunkBytes+chunkSlack {
		freeChunks.Put((*[chunkBytes + chunkSlack]byte)(b[:cap(b)]))
	}
	c.full[i] = nil
}

// release lets go of all pieces.
func (c *chunks) release() {
	for i := range c.full {
		c.drop(i)
	}
	c.full, c.bytes = c.full[:0], 0
}
