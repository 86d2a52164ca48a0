package engine

import (
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// TestShapesLiveSideBySide writes many shapes in turn: none may be made twice,
// or each write would define its shape anew in the log.
func TestShapesLiveSideBySide(t *testing.T) {
	const n = 400
	var cache shapeCache
	var all []edm.Properties
	for i := range n {
		all = append(all, edm.Properties{
			{Name: "Common", Value: edm.Int32(1)}, {Name: fmt.Sprint("Own", i), Value: edm.Boolean(true)},
		})
	}
	made := make(map[*codec.Shape]bool)
	for range 3 {
		for _, props := range all {
			made[cache.of(props)] = true
		}
	}
	if len(made) != n {
		t.Errorf("%d shapes were made %d times", n, len(made))
	}
}

// TestForgets invents names: what is remembered of them is bounded.
func TestForgets(t *testing.T) {
	var cache shapeCache
	for i := range 3000 {
		props := make(edm.Properties, edm.MaxProperties)
		for k := range props {
			props[k] = edm.Property{Name: fmt.Sprintf("Property%dOf%d", k, i), Value: edm.Boolean(true)}
		}
		s := cache.of(props)
		if cache.find(props) != s {
			t.Fatalf("shape %d is not remembered", i)
		}
	}
	size := 0
	for i := range cache.sets {
		for k := range cache.sets[i].ways {
			if s := cache.sets[i].ways[k].Load(); s != nil {
				size += s.MemBytes()
			}
		}
	}
	if size == 0 || size > maxShapeBytes || int64(size) != cache.used.Load() {
		t.Errorf("%d bytes are remembered, counted as %d", size, cache.used.Load())
	}
}

// TestKnownOfBatch asks of properties that are nearly those asked of before.
func TestKnownOfBatch(t *testing.T) {
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
	var cache shapeCache
	want := map[string]*codec.Shape{}
	for _, p := range []edm.Properties{props("A", "B"), props("A", "C"), props("A"), other} {
		want[fmt.Sprint(p)] = cache.of(p)
	}
	batch := []edm.Properties{props("A", "B"), props("A", "B"), props("A", "C"), props("A"), other, null, props("B", "A"), props("A", "B")}
	var c opShapes
	c.reset(&cache, len(batch))
	for i, p := range batch {
		if got, known := c.known(i, p), want[fmt.Sprint(p)] != nil; got != known {
			t.Errorf("%d: %v is known: %v, want %v", i, p, got, known)
		}
	}
	for i, p := range batch {
		shape := c.of(i, p)
		if w := want[fmt.Sprint(p)]; w != nil && shape != w || !shape.Matches(p) {
			t.Errorf("%d: %v has the shape %p, want %p, which is its own", i, p, shape, w)
		}
	}
}
