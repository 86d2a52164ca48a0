package scan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// shapedRow is a row of a shape whose values are the indexes of its properties.
type shapedRow struct {
	codec.ShapedRow
	shape *codec.Shape
	reads int // calls of At
}

func newShapedRow(names []string) *shapedRow {
	var props edm.Properties
	for _, name := range names {
		props = append(props, edm.Property{Name: name, Value: edm.Int32(0)})
	}
	return &shapedRow{shape: codec.NewShape(props)}
}

func (r *shapedRow) Shape() *codec.Shape { return r.shape }

func (r *shapedRow) At(i int) (string, edm.Value) {
	r.reads++
	return r.shape.Name(i), edm.Int32(int32(i))
}

// names returns the names with the numbers from, from+step, and so on.
func names(n, from, step int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint("p", from+i*step))
	}
	return list
}

// TestProjection compares rows of several shapes with random selections.
func TestProjection(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		selected := names(r.IntN(20), r.IntN(10), 1+r.IntN(3))
		var p projection
		p.init(selected)
		for range 3 {
			row := newShapedRow(names(r.IntN(30), r.IntN(10), 1+r.IntN(3)))
			p.show(row)
			var want []string
			for i := range row.shape.Len() {
				if slices.Contains(selected, row.shape.Name(i)) {
					want = append(want, row.shape.Name(i))
				}
			}
			var got []string
			for i := range p.Len() {
				name, v := p.At(i)
				got = append(got, name)
				if at, _ := v.Int32(); row.shape.Name(int(at)) != name {
					t.Fatalf("value of %s is that of property %d", name, at)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%q of %d properties: got %q, want %q", selected, row.shape.Len(), got, want)
			}
			for i := range 100 {
				name := fmt.Sprint("p", i)
				v, ok := p.Lookup(name)
				if at, _ := v.Int32(); ok != slices.Contains(want, name) || ok && row.shape.Name(int(at)) != name {
					t.Fatalf("Lookup(%s) = %v, %v", name, v, ok)
				}
			}
		}
	}
}

// TestProjectionSearchesNamesOncePerShape takes the list of names away after the first row:
// neither another row of the shape nor Lookup may search it, because a client can select
// thousands of names.
func TestProjectionSearchesNamesOncePerShape(t *testing.T) {
	row := newShapedRow(names(40, 0, 1))
	var p projection
	p.init(names(5000, 0, 2))
	if p.set == nil {
		t.Fatal("a long list is searched name by name")
	}
	p.show(row)
	p.names, p.set = nil, nil
	p.show(row)
	found := 0
	for _, name := range names(5000, 0, 1) {
		if _, ok := p.Lookup(name); ok {
			found++
		}
	}
	if found != 20 || p.Len() != 20 || row.reads != 20 {
		t.Errorf("%d properties found, %d shown, %d values read, want 20 each", found, p.Len(), row.reads)
	}
}
