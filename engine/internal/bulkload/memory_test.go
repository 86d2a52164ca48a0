package bulkload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// memBytes returns about how much memory p takes.
func (p *part) memBytes() int {
	sum := len(p.rows) * rowBytes
	for _, s := range p.shapes {
		sum += 2 * s.MemBytes() // in the order of the entity, and sorted
	}
	for _, c := range p.chunks {
		sum += chunkBytes
		if cap(c.bytes) > chunkBytes {
			sum += cap(c.bytes)
		}
	}
	return sum
}

// TestMemory collects entities that need more memory than their encodings: those of a few bytes,
// those that leave no room for a second one in a chunk, and those of which each has other names.
func TestMemory(t *testing.T) {
	blob := edm.Binary(make([]byte, edm.MaxBinaryBytes))
	name := strings.Repeat("n", 200)
	for kind, c := range map[string]struct {
		entities   int
		properties func(i int) edm.Properties
	}{
		"small": {700_000, func(int) edm.Properties { return nil }},
		"large": {50, func(int) (list edm.Properties) {
			for i := range 15 {
				list = append(list, edm.Property{Name: fmt.Sprint("B", i), Value: blob})
			}
			return list
		}},
		"other names": {3000, func(n int) (list edm.Properties) {
			for i := range 40 {
				list = append(list, edm.Property{Name: fmt.Sprint(name, n, "_", i), Value: edm.Boolean(true)})
			}
			return list
		}},
	} {
		for _, sorted := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s sorted=%v", kind, sorted), func(t *testing.T) {
				const install = 16 << 20
				m := newMemory(install)
				defer m.free()
				parts := make(chan *part)
				most := make(chan int)
				go func() {
					n := 0
					for p := range parts {
						n = max(n, p.memBytes())
						m.put(p.chunks)
					}
					most <- n
				}()
				order := rand.New(rand.NewPCG(1, 1)).Perm(c.entities)
				l := &collector{
					ctx: context.Background(), o: &Options{ID: 16, Shapes: new(codec.ShapeCache), InstallBytes: install},
					memory: m, parts: parts, shapes: make(map[*codec.Shape]uint32),
				}
				err := l.collect(func(yield func(edm.Entity, error) bool) {
					for i := range c.entities {
						n := i
						if !sorted {
							n = order[i]
						}
						if !yield(edm.Entity{Key: edm.Key{Row: fmt.Sprintf("%08d", n)}, Properties: c.properties(i)}, nil) {
							return
						}
					}
				})
				close(parts)
				if n := <-most; err != nil || n > install+install/16+2*chunkBytes {
					t.Errorf("a part of a piece of %d bytes takes %d bytes of memory: %v", install, n, err)
				}
			})
		}
	}
}

// TestNoMemory collects an entity for which there is no memory, because the context ends in the wait for it: the first one of a chunk,
// and one that does not fit the rest of a chunk. The entity must not be counted, and the collector must not go on without it.
func TestNoMemory(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := edm.Entity{Key: edm.Key{Partition: "p", Row: "1"}}
	for i := range 15 {
		e.Properties = append(e.Properties, edm.Property{Name: fmt.Sprint("B", i), Value: edm.Binary(make([]byte, 60_000))})
	}
	for chunks := range 2 {
		const install = 16 << 20
		m := newMemory(install)
		m.limit = chunks
		c := &collector{
			ctx: ctx, o: &Options{ID: 16, Shapes: new(codec.ShapeCache), InstallBytes: install},
			memory: m, parts: make(chan *part, partsAhead), shapes: make(map[*codec.Shape]uint32),
		}
		c.finder.Reset(c.o.Shapes)
		for range chunks {
			if err := c.add(&e); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.add(&e); !errors.Is(err, context.Canceled) || c.n != int64(chunks) {
			t.Errorf("%v after %d entities, want %v after %d", err, c.n, context.Canceled, chunks)
		}
		var taken []*chunk
		if c.part != nil {
			taken = c.part.chunks
		}
		m.put(taken)
		m.free()
		for _, k := range taken {
			if k.memory.Bytes() != nil {
				t.Error("a chunk is not freed")
			}
		}
	}
}
