package codec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/race"
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
	race.SkipOneGoroutine(t)
	var cache ShapeCache
	for i := range 3000 {
		props := make(edm.Properties, edm.MaxProperties)
		for k := range props {
			props[k] = edm.Property{Name: fmt.Sprintf("Property%dOf%d", k, i), Value: edm.Boolean(true)}
		}
		s := cache.Of(props)
		if found, _ := cache.find(props); found != s {
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

// TestShapeCacheSorted sorts the properties of random shapes, with and without nulls.
func TestShapeCacheSorted(t *testing.T) {
	var cache ShapeCache
	rnd := rand.New(rand.NewPCG(seed, 8))
	for range 300 {
		props := randomProps(rnd, rnd.IntN(40), 5, rnd.IntN(2) == 0)
		for i := range props {
			if rnd.IntN(4) == 0 {
				props[i].Name = []string{"\uf900", "\U00010400", "\ud7fb"}[rnd.IntN(3)] + props[i].Name
			}
		}
		rnd.Shuffle(len(props), func(i, j int) { props[i], props[j] = props[j], props[i] })
		want := withoutNulls(props)
		slices.SortFunc(want, func(a, b edm.Property) int { return edm.Compare(a.Name, b.Name) })
		var buf edm.Properties
		for range 2 {
			got, sorted := cache.Sorted(&buf, props, cache.Of(props))
			if diff := cmp.Diff(want, withoutNulls(got)); diff != "" {
				t.Fatalf("-want +got:\n%s", diff)
			}
			if sorted != cache.Of(want) || !sorted.Matches(want) {
				t.Fatal("the sorted properties have another shape")
			}
		}
		buf = make(edm.Properties, 0, 2*len(props))
		if n := testing.AllocsPerRun(5, func() { _, _ = cache.Sorted(&buf, props, cache.Of(props)) }); n != 0 {
			t.Fatalf("%v allocations, want none", n)
		}
	}
	long := randomProps(rnd, MaxProperties+1, 5, false)
	slices.Reverse(long)
	shape := cache.Of(long)
	if got, s := cache.Sorted(new(edm.Properties), long, shape); &got[0] != &long[0] || s != shape {
		t.Error("a shape of too many properties was sorted")
	}
	if found, _ := cache.find(long); found != nil {
		t.Error("a shape of too many properties is cached")
	}
}

// TestShapeFinder looks up neighboring rows that differ in a name, in a type, in a null or in the
// number of properties.
func TestShapeFinder(t *testing.T) {
	prop := func(name string, v edm.Value) edm.Property { return edm.Property{Name: name, Value: v} }
	one := edm.Int32(1)
	rows := []edm.Properties{
		{prop("A", one), prop("B", one)},
		{prop("A", one), prop("B", edm.Boolean(true))},
		{prop("A", one), prop("C", one)},
		{prop("A", one)},
		{prop("A", one), prop("B", one)},
		{prop("B", one), prop("A", one)},
		{},
	}
	var c ShapeCache
	var f ShapeFinder
	f.Reset(&c)
	for i, row := range rows[:3] {
		if s := f.Find(row); s != nil {
			t.Errorf("row %d: found the shape of %v, which the cache does not have", i, row)
		}
	}
	want := make([]*Shape, len(rows))
	for i, row := range rows {
		want[i] = c.Of(row)
	}
	for i, row := range append(rows, rows...) {
		if s := f.Find(row); s != want[i%len(rows)] {
			t.Errorf("row %d: the shape of %v is %p, want %p", i, row, s, want[i%len(rows)])
		}
		if s := f.Find(append(row[:len(row):len(row)], prop("B", edm.Value{}))); s != nil {
			t.Errorf("row %d: found a shape for %v and a null", i, row)
		}
	}
	f.Reset(nil)
	for _, name := range f.names[:cap(f.names)] {
		if name != "" {
			t.Errorf("Reset keeps the name %q", name)
		}
	}
}
