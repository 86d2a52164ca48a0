package arena

import (
	"reflect"
	"testing"
)

// TestSlabs checks the length of slabs, that a huge one can be one page, that no two share
// memory, and that free ones are used again.
func TestSlabs(t *testing.T) {
	for _, c := range []struct {
		name  string
		slab  func() []byte
		bytes int
	}{{"Slab", Slab, SlabBytes}, {"HugeSlab", HugeSlab, HugeSlabBytes}} {
		t.Run(c.name, func(t *testing.T) {
			var all [][]byte
			for i := range hugeMapped + 2 {
				b := c.slab()
				if len(b) != c.bytes || cap(b) != c.bytes {
					t.Fatalf("%d bytes, capacity %d, want %d", len(b), cap(b), c.bytes)
				}
				if at := reflect.ValueOf(b).Pointer(); canMap && c.bytes == HugeSlabBytes && at%HugeSlabBytes != 0 {
					t.Errorf("a huge slab begins at %#x", at)
				}
				b[0], b[len(b)-1] = byte(i), byte(i)
				all = append(all, b)
			}
			addresses := map[uintptr]bool{}
			for i, b := range all {
				if b[0] != byte(i) || b[len(b)-1] != byte(i) {
					t.Errorf("slab %d shares memory with another", i)
				}
				addresses[reflect.ValueOf(b).Pointer()] = true
				FreeSlab(b)
			}
			if b := c.slab(); len(b) != c.bytes || canMap && !addresses[reflect.ValueOf(b).Pointer()] {
				t.Errorf("a new slab of %d bytes after %d were freed", len(b), len(all))
			}
		})
	}
}
