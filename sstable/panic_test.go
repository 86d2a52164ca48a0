package sstable

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/vfs"
)

// panicFile panics in a read, once.
type panicFile struct {
	vfs.File
	reads, at int
}

func (f *panicFile) ReadAt(p []byte, off int64) (int, error) {
	if f.reads++; f.reads == f.at {
		panic("read")
	}
	return f.File.ReadAt(p, off)
}

// TestPanicOfLoader panics while a block of the cache is loaded, at each read. The goroutine may go on, as that of a request does,
// and the next reader of the block must load it: it must not wait for ever.
func TestPanicOfLoader(t *testing.T) {
	g := newGenerator(5)
	var entries []entry
	for i := range 90 {
		entries = append(entries, newEntry("p", fmt.Sprintf("%06d", i), uint64(i+1), false, edm.Properties{
			{Name: "a", Value: edm.Int64(int64(i))},
			{Name: "s", Value: edm.String(g.text(200))},
			{Name: "b", Value: edm.Binary(g.bytes(100 + i%40*200))},
		}))
	}
	file, _ := write(t, writerOptions(), entries)
	panics := 0
	for at := 1; at == panics+1; at++ {
		synctest.Test(t, func(t *testing.T) {
			f := &panicFile{File: file}
			blocks := cache.New(8 << 20)
			r := open(t, f, blocks)
			f.reads, f.at = 0, at
			if !readSome(t, r, entries) {
				return
			}
			panics++
			readSome(t, r, entries)
			blocks.Close()
		})
	}
	if panics < 10 {
		t.Errorf("%d reads panic", panics)
	}
}

// readSome reads rows in several ways and reports whether that panicked.
func readSome(t *testing.T, r *Reader, entries []entry) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	for i := 0; i < len(entries); i += 17 {
		func() {
			var row Row
			defer row.Release()
			if _, _, ok, err := r.Get(entries[i].user, codec.KeyHash(entries[i].user), codec.MaxSeq, &row); !ok || err != nil {
				t.Errorf("row %d: %t, %v", i, ok, err)
			} else if d := diff(&entries[i], &row); d != "" {
				t.Errorf("row %d: %s", i, d)
			}
		}()
	}
	it := r.NewIterator(IterOptions{
		Snapshot: codec.MaxSeq, Fill: true, Prune: predicate.Compile(predicate.NewCompare("a", predicate.Ge, edm.Int64(0))),
	})
	defer it.Close()
	if span, ok := it.SpanGE(nil); !ok || it.Excludes(&span) {
		t.Errorf("the first span: %t", ok)
	}
	n := 0
	for ok := it.SeekGE(nil); ok; ok = it.Next() {
		if d := diff(&entries[n], it.Row()); d != "" {
			t.Errorf("row %d: %s", n, d)
		}
		n++
	}
	if err := it.Err(); err != nil || n != len(entries) {
		t.Errorf("%d rows, %v", n, err)
	}
	return false
}
