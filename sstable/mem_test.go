package sstable

import (
	"reflect"
	"strconv"
	"testing"

	"github.com/tablerock-db/tablerock/internal/cache"
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
		{"Hint", hintBytes, reflect.TypeFor[cache.Hint]().Size()},
	} {
		if uintptr(c.counted) != c.size {
			t.Errorf("%s: %d bytes counted, the struct has %d", c.name, c.counted, c.size)
		}
	}
}
