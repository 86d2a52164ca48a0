package scan

// MinChunkRows and MaxChunkBytes are limits of a chunk.
const (
	MinChunkRows   = minChunkRows
	MaxChunkBytes  = maxChunkBytes
	LongForward    = longForward
	LongBackward   = longBackward
	SortedForward  = sortedForward
	SortedBackward = sortedBackward
)

// LimitRows makes the next chunk small.
func (c *Cursor) LimitRows(n int) { c.rowLimit = n }

// Buffered returns the size of the buffers of c.
func (c *Cursor) Buffered() int {
	n := 0
	for _, s := range c.sources {
		n += cap(s.rows.data)
	}
	return n
}
