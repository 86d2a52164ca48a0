package codec

import (
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

// TestShapeCacheKeepsMany uses many shapes in turn. None may be made twice, or each
// write would define its shape again in the log.
func TestShapeCacheKeepsMany(t *testing.T) {
	const n = 400
	var cache ShapeCache
	var all []edm.Properties
	for i := range n {
		all = append(all, edm.Properties{
			{Name: "Common", Value: edm.Int32(1)}, {Name: fmt.Sprint("Own", i), Value: edm.Boolean(true)},
		})
	}
	made := make(map[*Shape]bool)
	for range 3 {
		for _, props := range all {
			made[cache.Of(props)] = true
		}
	}
	if len(made) != n {
		t.Errorf("%d shapes were made %d times, want once each", n, len(made))
	}
}

// TestShapeCacheLimit invents names. The memory of the cache must stay bounded.
func TestShapeCacheLimit(t *testing.T) {
	var cache ShapeCache
	for i := range 3000 {
		props := make(edm.Properties, edm.MaxProperties)
		for k := range props {
			props[k] = edm.Property{Name: fmt.Sprintf("Property%dOf%d", k, i), Value: edm.Boolean(true)}
		}
		s := cache.Of(props)
		if cache.Find(props) != s {
			t.Fatalf("shape %d is not cached", i)
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
		t.Errorf("%d bytes are cached, counted as %d", size, cache.used.Load())
	}
}
