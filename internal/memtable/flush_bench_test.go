package memtable

import (
	"testing"

	"github.com/tablerock-db/tablerock/codec"
)

// BenchmarkFlush copies the rows of a table in key order, as a flush does. The rows
// arrived in key order or in random order.
func BenchmarkFlush(b *testing.B) {
	for _, c := range benchShapes {
		for _, random := range []bool{false, true} {
			order := "sorted"
			if random {
				order = "random"
			}
			b.Run(c.name+"/order="+order, func(b *testing.B) {
				image, offs, _ := benchLog(b, c.key, random)
				t := benchTable(image)
				for i, off := range offs {
					t.Apply(off, uint64(i+1), 0)
				}
				var dst []byte
				for b.Loop() {
					it := t.NewIterator(IterOptions{AllVersions: true})
					n := 0
					for ok := it.SeekGE(nil); ok; ok = it.Next() {
						row := it.Row().(*codec.Row)
						dst = append(dst[:0], it.Key()...)
						for i := range row.Len() {
							_, v := row.At(i)
							dst = append(dst, v.Bytes()...)
						}
						n++
					}
					if n != len(offs) {
						b.Fatalf("%d rows", n)
					}
				}
				perEntry(b, len(offs))
			})
		}
	}
}
