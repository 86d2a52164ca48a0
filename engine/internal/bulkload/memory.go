package bulkload

import (
	"context"
	"fmt"

	"github.com/tablerock-db/tablerock/internal/arena"
)

// A chunk has encoded entities. It grows on the Go heap if one does not fit.
type chunk struct {
	memory *arena.Memory
	bytes  []byte
}

const (
	// chunkBytes is the smallest size of memory outside the Go heap.
	chunkBytes = 1 << 20
	// chunkTail is how much of a chunk may remain unused. Few entities are larger.
	chunkTail = 8 << 10
)

// memory is the chunks of two pieces. The collector takes them, and the builder gives them
// back.
type memory struct {
	spare      chan *chunk
	made       int
	limit      int // chunks
	perInstall int // chunks of a piece
}

func newMemory(installBytes int64) *memory {
	n := int((installBytes + chunkBytes - 1) / chunkBytes)
	return &memory{spare: make(chan *chunk, 2*n), limit: 2 * n, perInstall: n}
}

// take returns an empty chunk. It waits until the builder gives one back if there are as
// many as allowed.
func (m *memory) take(ctx context.Context) (*chunk, error) {
	if m.made < m.limit {
		select {
		case c := <-m.spare:
			return c, nil
		default:
		}
		memory, err := arena.New(chunkBytes)
		if err != nil {
			return nil, fmt.Errorf("memory for entities: %w", err)
		}
		m.made++
		return &chunk{memory: memory, bytes: memory.Bytes()[:0]}, nil
	}
	select {
	case c := <-m.spare:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *memory) put(chunks []*chunk) {
	for _, c := range chunks {
		c.bytes = c.memory.Bytes()[:0]
		m.spare <- c
	}
}

// free frees all chunks, which must be given back.
func (m *memory) free() {
	for range m.made {
		(<-m.spare).memory.Free(chunkBytes)
	}
}
