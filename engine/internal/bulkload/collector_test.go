package bulkload

import (
	"context"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// TestSequenceEndsWithPart ends sequences in order with the entity that completes a part, and with
// the next one. Without the end of its piece, the builder would discard what it has.
func TestSequenceEndsWithPart(t *testing.T) {
	for after := range 2 {
		const install = 1 << 20
		m := newMemory(install)
		parts := make(chan *part, partsAhead)
		c := &collector{
			ctx: context.Background(), o: &Options{ID: 16, Shapes: new(codec.ShapeCache), InstallBytes: install},
			memory: m, parts: parts, shapes: make(map[*codec.Shape]uint32),
		}
		value := edm.Binary(make([]byte, 1000))
		n, last := 0, -1
		err := c.collect(func(yield func(edm.Entity, error) bool) {
			for ; n != last; n++ {
				e := edm.Entity{Key: edm.Key{Row: fmt.Sprintf("%08d", n)}, Properties: edm.Properties{{Name: "V", Value: value}}}
				if !yield(e, nil) {
					return
				}
				if len(parts) == 1 && last < 0 {
					last = n + 1 + after
				}
			}
		})
		close(parts)
		rows, ends, entities := 0, 0, int64(0)
		for p := range parts {
			rows += len(p.rows)
			if p.end {
				ends, entities = ends+1, p.entities
			}
			m.put(p.chunks)
		}
		m.free()
		if err != nil || last < 0 || rows != n || ends != 1 || entities != int64(n) {
			t.Errorf("%d entities after a part: %d ends, the last after %d entities, and %d rows of %d entities; error %v", after, ends, entities, rows, n, err)
		}
	}
}
