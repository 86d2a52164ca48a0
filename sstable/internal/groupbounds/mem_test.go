package groupbounds

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
		{name: "Bounds", counted: boundsMemBytes, size: reflect.TypeFor[Bounds]().Size(), extra: 32},
		{name: "Column", counted: columnMemBytes, size: reflect.TypeFor[Column]().Size(), extra: 40},
	} {
		if n := uintptr(c.counted); n < c.size || n > c.size+c.extra {
			t.Errorf("%s: %d bytes counted, the struct has %d", c.name, c.counted, c.size)
		}
	}
}
