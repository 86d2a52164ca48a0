package rowgroup

import (
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// TestShapesOfManySources finds the shapes of many sources, each of which has its own copies. A file has each shape once, and
// the memory does not grow with the sources.
func TestShapesOfManySources(t *testing.T) {
	shapes, distinct := NewShapes(), 3
	for source := range 2 * maxPointers {
		for i := range distinct {
			e := shapes.find(codec.NewShape(edm.Properties{{Name: fmt.Sprint("P", i), Value: edm.Int32(1)}}))
			if e.id != i || e.shape.Name(0) != fmt.Sprint("P", i) {
				t.Fatalf("source %d: shape %d has the id %d", source, i, e.id)
			}
		}
	}
	if n := len(shapes.AppendTo(nil)); len(shapes.list) != distinct || n != shapes.Size() {
		t.Errorf("%d shapes in %d bytes, want %d in %d", len(shapes.list), n, distinct, shapes.Size())
	}
	if n := len(shapes.byPointer); n > maxPointers {
		t.Errorf("%d shapes of sources are remembered, at most %d", n, maxPointers)
	}
}
