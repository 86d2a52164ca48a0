package codec

import (
	"fmt"
	"sync"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

// TestShapeListConcurrent adds shapes to a list that keeps few of them decoded, while
// other goroutines read those that were added.
func TestShapeListConcurrent(t *testing.T) {
	const n = 500
	var src []byte
	var offs []int
	var shapes []*Shape
	for i := range n {
		s := NewShape(edm.Properties{{Name: fmt.Sprint("Name", i), Value: edm.Int32(0)}, {Name: "Common", Value: edm.String("")}})
		offs, shapes = append(offs, len(src)), append(shapes, s)
		src = AppendShape(src, s)
	}
	budget := 10 * shapes[0].MemBytes()
	l := NewShapeList(src, budget)
	var readers sync.WaitGroup
	for reader := range 3 {
		readers.Go(func() {
			for i := reader; l.Len() < n; i++ {
				if have := l.Len(); have > 0 {
					at := i * 7 % have
					if got := l.At(at); got.Name(0) != shapes[at].Name(0) || got.Len() != 2 {
						t.Errorf("shape %d names %q", at, got.Name(0))
						return
					}
				}
			}
		})
	}
	for i, s := range shapes {
		l.Add(offs[i], s)
	}
	readers.Wait()
	for i := range n {
		if got := l.At(i).Name(0); got != shapes[i].Name(0) {
			t.Errorf("shape %d names %q, want %q", i, got, shapes[i].Name(0))
		}
	}
	if got, want := l.MemBytesOf(shapes[0]), shapes[0].MemBytes(); got != want {
		t.Errorf("a holder counts %d bytes for a shape that the list may forget, want %d", got, want)
	}
	if got := l.MemBytes(); got > budget+n*chunkShapeBytes {
		t.Errorf("%d bytes are kept, the budget is %d", got, budget)
	}
	// What is dropped is found in a list as short as the budget, not by a search of all.
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := make(map[uint32]bool)
	for _, i := range l.kept {
		kept[i] = true
	}
	for i := range n {
		if decoded := (*l.chunks.Load())[i/chunkShapes].decoded[i%chunkShapes].Load() != nil; decoded != kept[uint32(i)] {
			t.Errorf("shape %d: decoded %v, listed %v", i, decoded, kept[uint32(i)])
		}
	}
	if len(l.kept) > 10 {
		t.Errorf("%d shapes are listed as decoded, the budget is for 10", len(l.kept))
	}
}

// TestShapeListWithinBudget adds shapes, decoded and encoded, until the budget is used: until then
// the list alone counts them. It decodes none beyond the budget.
func TestShapeListWithinBudget(t *testing.T) {
	s := NewShape(edm.Properties{{Name: "Common", Value: edm.String("")}})
	src := AppendShape(nil, s)
	for _, added := range []*Shape{s, nil} {
		l := NewShapeList(src, 3*(s.MemBytes()+keptBytes))
		for i := range 3 {
			l.Add(0, added)
			if got := l.MemBytesOf(l.At(i)); got != 0 {
				t.Errorf("%d shapes: a holder counts %d bytes", i+1, got)
			}
		}
		l.Add(0, added)
		if got := l.MemBytesOf(l.At(0)); got != s.MemBytes() {
			t.Errorf("4 shapes: a holder counts %d bytes, want %d", got, s.MemBytes())
		}
		before := l.MemBytes()
		l.Add(0, nil)
		if n := l.MemBytes() - before; n != chunkShapeBytes {
			t.Errorf("the list decodes a shape beyond its budget: %d bytes more, want %d", n, chunkShapeBytes)
		}
		if got := l.At(4); got.Len() != 1 || got.Name(0) != "Common" {
			t.Errorf("shape 4 has %d properties", got.Len())
		}
	}
}
