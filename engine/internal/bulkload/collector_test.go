package bulkload

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

func newCollector(m *memory, parts chan *part, install int64) *collector {
	return &collector{
		ctx: context.Background(), o: &Options{ID: 16, Shapes: new(codec.ShapeCache), InstallBytes: install},
		memory: m, parts: parts, shapes: make(map[*codec.Shape]uint32),
	}
}

// TestSequenceEndsWithPart ends sequences in order with the entity that completes a part, and with
// the next one. Without the end of its piece, the builder would discard what it has.
func TestSequenceEndsWithPart(t *testing.T) {
	for after := range 2 {
		const install = 1 << 20
		m := newMemory(install)
		parts := make(chan *part, partsAhead)
		c := newCollector(m, parts, install)
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

// TestRowsOfParts collects entities of several shapes, some of which do not fit the rest of a chunk.
// Each row of a part must lead to its own entity.
func TestRowsOfParts(t *testing.T) {
	const entities, install = 200, 64 << 20
	for _, sorted := range []bool{true, false} {
		rnd := rand.New(rand.NewPCG(1, 2))
		list := make([]edm.Entity, entities)
		for i := range list {
			e := &list[i]
			e.Key = edm.Key{Partition: "p", Row: fmt.Sprintf("%08d", i)}
			for k := range rnd.IntN(6) {
				value := edm.Binary(bytes.Repeat([]byte{byte(i)}, rnd.IntN(60_000)))
				e.Properties = append(e.Properties, edm.Property{Name: fmt.Sprint("P", k), Value: value})
			}
			e.Properties = append(e.Properties, edm.Property{Name: "Q", Value: edm.Int32(int32(i))})
		}
		if !sorted {
			rnd.Shuffle(entities, func(i, j int) { list[i], list[j] = list[j], list[i] })
		}
		m := newMemory(install)
		parts := make(chan *part, entities)
		c := newCollector(m, parts, install)
		err := c.collect(func(yield func(edm.Entity, error) bool) {
			for _, e := range list {
				if !yield(e, nil) {
					return
				}
			}
		})
		close(parts)
		n, chunks, shapes := 0, 0, 0
		for p := range parts {
			for i := range p.rows {
				r, want := &p.rows[i], list[n]
				n++
				var row codec.Row
				row.ResetEntry(p.entry(r), p.shapes[r.shape])
				got := edm.EntityOf(&row)
				same := slices.EqualFunc(got.Properties, want.Properties, func(x, y edm.Property) bool { return x.Name == y.Name && x.Value.Equal(y.Value) })
				if got.Key != want.Key || !same {
					t.Fatalf("sorted %v: row %d is that of %v, want %v", sorted, n-1, got.Key, want.Key)
				}
			}
			chunks, shapes = max(chunks, len(p.chunks)), max(shapes, len(p.shapes))
			m.put(p.chunks)
		}
		m.free()
		if err != nil || n != entities || chunks < 3 || shapes < 3 {
			t.Errorf("sorted %v: %d rows of %d, at most %d chunks and %d shapes of a part, want 3 and more; error %v", sorted, n, entities, chunks, shapes, err)
		}
	}
}
