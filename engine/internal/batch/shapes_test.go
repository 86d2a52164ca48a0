package batch

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
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
	var c shapes
	c.reset(&cache)
	c.begin(len(batch))
	for i, p := range batch {
		n, ok := c.check(i, p)
		if known := want[fmt.Sprint(p)] != nil; ok != known || ok && n != len(p) {
			t.Errorf("%d: Check(%v) = %d, %t, want %d, %t", i, p, n, ok, len(p), known)
		}
	}
	for i, p := range batch {
		shape := c.of(i, p)
		if w := want[fmt.Sprint(p)]; w != nil && shape != w || !shape.Matches(p) {
			t.Errorf("%d: %v has the shape %p, want %p", i, p, shape, w)
		}
	}
}

// TestRelease checks that a merge of very many properties and a batch of very many ops, which are refused, leave no memory.
func TestRelease(t *testing.T) {
	b := New(&DB{Shapes: new(codec.ShapeCache)})
	for _, c := range []struct {
		n    int
		kept bool
	}{{2 * edm.MaxProperties, true}, {100_000, false}} {
		b.props = make(edm.Properties, c.n)
		b.Release()
		if kept := cap(b.props) > 0; kept != c.kept {
			t.Errorf("memory of %d properties is kept: %t, want %t", c.n, kept, c.kept)
		}
	}
	props := edm.Properties{{Name: "N", Value: edm.Int32(1)}}
	b.db.Shapes.Of(props)
	ops := make([]store.Op, 100_000)
	for i := range ops {
		ops[i] = store.InsertOrReplace(edm.Entity{Key: edm.Key{Row: fmt.Sprint(i)}, Properties: props})
	}
	if err := b.Add("Table", ops); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("Add: %v", err)
	}
	b.Release()
	if n := cap(b.shapes.known); n > 2*edm.MaxBatchOps {
		t.Errorf("memory of the shapes of %d ops is kept", n)
	}
}

// TestCheckValues compares Check of values with edm.CheckValues.
func TestCheckValues(t *testing.T) {
	text := func(s string) edm.Value { return edm.StringBytes([]byte(s)) }
	values := []edm.Value{
		edm.DateTime(0), edm.DateTime(edm.MaxTicks + 1), edm.Fixed(edm.TypeBoolean, 1), edm.Fixed(edm.TypeBoolean, 2),
		edm.Int32(-1), edm.Fixed(edm.TypeInt32, 1<<31), edm.Int64(-1), edm.Double(1), edm.Guid(edm.GUID{}), edm.Fixed(edm.TypeGuid, 1),
		edm.Binary([]byte{0xFF}), edm.Binary(make([]byte, edm.MaxBinaryBytes)), edm.Binary(make([]byte, edm.MaxBinaryBytes+1)),
		text(""), text(strings.Repeat("a", edm.MaxStringUnits)), text(strings.Repeat("a", edm.MaxStringUnits+1)),
	}
	for n := range 20 {
		for at := range n {
			b := []byte(strings.Repeat("a", n))
			b[at] = 0x80
			values = append(values, edm.StringBytes(b))
		}
		values = append(values, text(strings.Repeat("a", n)), text(strings.Repeat("a", n)+"\u20ac"))
	}
	var cache codec.ShapeCache
	for _, v := range values {
		p := edm.Properties{{Name: "Name", Value: v}}
		cache.Of(p)
		var c shapes
		c.reset(&cache)
		c.begin(2)
		for i := range 2 {
			n, ok := c.check(i, p)
			if want := edm.CheckValues(p) == nil; ok != want {
				t.Errorf("op %d: Check of a %v of %d bytes: %t, want %t", i, v.Type(), len(v.Bytes()), ok, want)
			}
			wantBytes := len("Name")
			if v.Type() == edm.TypeString || v.Type() == edm.TypeBinary {
				wantBytes += len(v.Bytes())
			}
			if ok && n != wantBytes {
				t.Errorf("op %d: a %v counts %d bytes, want %d", i, v.Type(), n, wantBytes)
			}
		}
	}
}
