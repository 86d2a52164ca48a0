package sstable

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
)

// TestManyShapes reads rows of more shapes than a Reader keeps decoded.
func TestManyShapes(t *testing.T) {
	var entries []entry
	for i := range 80 {
		var props edm.Properties
		for p := range edm.MaxProperties {
			props = append(props, edm.Property{Name: fmt.Sprintf("P%d", 80*p+i), Value: edm.Int32(int32(p))})
		}
		entries = append(entries, newEntry("p", fmt.Sprintf("%03d", i), uint64(i+1), false, props))
	}
	f, _ := write(t, writerOptions(), entries)
	r := open(t, f, cache.New(1<<20))
	for range 2 {
		it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq})
		for i := range entries {
			if it.SeekGE(entries[i].user); it.Err() != nil {
				t.Fatal(it.Err())
			}
			if d := diff(&entries[i], it.Row()); d != "" {
				t.Fatalf("row %d: %s", i, d)
			}
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.shapes.MemBytes(); n > shapeBudget+100<<10 {
		t.Errorf("the reader keeps %d bytes of shapes", n)
	}
}

// TestFreeHeadsKeepNoFile reads the heads of a file that is then dropped and closed. The heads, which
// the cache keeps for other files, must not keep its shapes and its filter.
func TestFreeHeadsKeepNoFile(t *testing.T) {
	var entries []entry
	for i := range 300 {
		entries = append(entries, newEntry("p", fmt.Sprintf("%03d", i), 1, false, edm.Properties{{Name: fmt.Sprint("P", i), Value: edm.Int32(1)}}))
	}
	f, _ := write(t, writerOptions(), entries)
	blocks := cache.New(1 << 20)
	shape, filter := func() (weak.Pointer[codec.Shape], weak.Pointer[byte]) {
		r, err := Open(f, readerOptions(blocks))
		if err != nil {
			t.Fatal(err)
		}
		it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq, Fill: true})
		n := 0
		for ok := it.SeekGE(nil); ok; ok = it.Next() {
			if err := it.Row().Load(); err != nil {
				t.Fatal(err)
			}
			n++
		}
		if err := it.Close(); err != nil || n != len(entries) {
			t.Fatalf("%d rows, %v", n, err)
		}
		shape, filter := weak.Make(r.shapes.At(0)), weak.Make(&r.filter[0])
		blocks.Drop(1, testFile)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		return shape, filter
	}()
	for range 3 { // also what pools keep
		runtime.GC()
	}
	if shape.Value() != nil || filter.Value() != nil {
		t.Errorf("of a closed file are kept: a shape %t, the filter %t", shape.Value() != nil, filter.Value() != nil)
	}
	runtime.KeepAlive(blocks)
}
