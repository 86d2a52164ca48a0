package rowgroup

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

// TestMemBytes compares the sizes that MemBytes counts with those of the structs.
func TestMemBytes(t *testing.T) {
	if strconv.IntSize != 64 {
		t.Skip("the sizes are those of a 64-bit system")
	}
	for _, c := range []struct {
		name    string
		counted int
		size    uintptr
		extra   uintptr // counted beside the struct
	}{
		{name: "HeapUnit", counted: heapUnitMemBytes, size: reflect.TypeFor[HeapUnit]().Size()},
		{name: "ValueBlock", counted: valueBlockMemBytes, size: reflect.TypeFor[ValueBlock]().Size()},
		{name: "shapeSection", counted: sectionMemBytes, size: reflect.TypeFor[shapeSection]().Size()},
		{name: "column", counted: columnMemBytes, size: reflect.TypeFor[column]().Size()},
		{name: "Head", counted: headMemBytes, size: reflect.TypeFor[Head]().Size(), extra: 32},
	} {
		if n := uintptr(c.counted); n < c.size || n > c.size+c.extra {
			t.Errorf("%s: %d bytes counted, the struct has %d", c.name, c.counted, c.size)
		}
	}
}

// TestHeadMemory decodes heads of few and many columns into new memory: short slices have the
// memory in the head, and others have little more than they need, because a cached head keeps
// them.
func TestHeadMemory(t *testing.T) {
	for _, properties := range []int{1, 5, 13, 60} {
		var rows []string
		for i := range 90 {
			rows = append(rows, fmt.Sprintf("%03d", i))
		}
		h, _ := build(t, userKeys([]string{"p"}, rows), func(row int) edm.Properties {
			props := make(edm.Properties, properties)
			for i := range props {
				value := fmt.Sprint(row, " ", i, strings.Repeat("x", 200/properties))
				props[i] = edm.Property{Name: fmt.Sprintf("P%02d", i), Value: edm.String(value)}
			}
			return props
		})
		for name, c := range map[string][3]int{
			"heap units": {len(h.HeapUnits), cap(h.HeapUnits), len(h.firstUnits)},
			"columns":    {len(h.columns), cap(h.columns), len(h.firstColumns)},
		} {
			if n, has, first := c[0], c[1], c[2]; n == 0 || n <= first && has != first || n > first && has-n > 1+n/8 {
				t.Errorf("%d properties: %s: length %d, capacity %d, %d in the head", properties, name, n, has, first)
			}
		}
	}
}

// TestHeadOfManyShapes decodes a head whose rows have different shapes: a reader of one row does not pay for the shapes of all.
func TestHeadOfManyShapes(t *testing.T) {
	var rows []string
	for i := range 90 {
		rows = append(rows, fmt.Sprintf("%03d", i))
	}
	h, data := build(t, userKeys([]string{"p"}, rows), func(row int) edm.Properties {
		return edm.Properties{{Name: fmt.Sprintf("P%03d", row), Value: edm.Int32(1)}}
	})
	before := bytes.Index(data, h.data)
	n := testing.AllocsPerRun(10, func() {
		if err := h.Decode(h.data, h.off, before, len(data), h.shapes); err != nil {
			t.Error(err)
		}
	})
	if n > 0 {
		t.Errorf("Decode allocates %v times for %d shapes", n, len(rows))
	}
	var r Row
	r.Attach(h, nil)
	for _, row := range []int{7, 8, 89, 0, 7} {
		r.Set(row)
		if name, want := r.Shape().Name(0), fmt.Sprintf("P%03d", row); r.Len() != 1 || name != want {
			t.Errorf("row %d: %d properties, the first is %s, want %s", row, r.Len(), name, want)
		}
	}
}
