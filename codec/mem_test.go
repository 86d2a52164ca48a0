package codec

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
	}{
		{"Shape", shapeBytes, reflect.TypeFor[Shape]().Size()},
		{"field", fieldBytes, reflect.TypeFor[field]().Size()},
		{"shape of a chunk", chunkShapeBytes, reflect.TypeFor[shapeChunk]().Size() / chunkShapes},
	} {
		if uintptr(c.counted) != c.size {
			t.Errorf("%s: %d bytes counted, the struct has %d", c.name, c.counted, c.size)
		}
	}
}
