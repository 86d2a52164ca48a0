package rowgroup

import (
	"reflect"
	"strconv"
	"testing"
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
		{name: "Bounds", counted: boundsMemBytes, size: reflect.TypeFor[Bounds]().Size(), extra: 32},
		{name: "Head", counted: headMemBytes, size: reflect.TypeFor[Head]().Size(), extra: 32},
		{name: "columnID", counted: columnIDMemBytes, size: reflect.TypeFor[columnID]().Size(), extra: 40},
	} {
		if n := uintptr(c.counted); n < c.size || n > c.size+c.extra {
			t.Errorf("%s: %d bytes counted, the struct has %d", c.name, c.counted, c.size)
		}
	}
}
