package opshapes

import (
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// TestShapes looks up batches whose neighboring ops have nearly the same
// properties.
func TestShapes(t *testing.T) {
	props := func(names ...string) (out edm.Properties) {
		for _, name := range names {
			out = append(out, edm.Property{Name: name, Value: edm.Int32(1)})
		}
		return out
	}
	other := props("A", "B")
	other[1].Value = edm.Boolean(true)
	null := props("A", "B")
	null[1].Value = edm.Value{}
	var cache codec.ShapeCache
	want := map[string]*codec.Shape{}
	for _, p := range []edm.Properties{props("A", "B"), props("A", "C"), props("A"), other} {
		want[fmt.Sprint(p)] = cache.Of(p)
	}
	batch := []edm.Properties{props("A", "B"), props("A", "B"), props("A", "C"), props("A"), other, null, props("B", "A"), props("A", "B")}
	var c Shapes
	c.Reset(&cache, len(batch))
	for i, p := range batch {
		if got, known := c.Known(i, p), want[fmt.Sprint(p)] != nil; got != known {
			t.Errorf("%d: %v is known: %v, want %v", i, p, got, known)
		}
	}
	for i, p := range batch {
		shape := c.Of(i, p)
		if w := want[fmt.Sprint(p)]; w != nil && shape != w || !shape.Matches(p) {
			t.Errorf("%d: %v has the shape %p, want %p", i, p, shape, w)
		}
	}
}
