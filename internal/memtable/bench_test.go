package memtable

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/arena"
)

const benchEntries = 300_000

// benchShapes are the distributions of keys to measure.
var benchShapes = []struct {
	name string
	key  func(n int) (partition, row string)
}{
	{"partitions=1000", func(n int) (string, string) {
		return fmt.Sprintf("dev-%06d", n/(benchEntries/1000)), fmt.Sprintf("%013d", 1700000000000+int64(n%(benchEntries/1000)*1000))
	}},
	{"partitions=300000", func(n int) (string, string) { return fmt.Sprintf("dev-%09d", n), "0" }},
	{"partitions=1", func(n int) (string, string) {
		return "dev-000000", fmt.Sprintf("%013d", 1700000000000+int64(n)*1000)
	}},
}

// benchLog writes benchEntries entities of about 233 bytes in key order or in random
// order and returns the image, the offsets and the keys in that order.
func benchLog(b *testing.B, key func(n int) (string, string), random bool) (image []byte, offs []uint32, keys [][]byte) {
	props := sampleProps()
	s := codec.NewShape(props)
	values, wide := codec.AppendValues(nil, s, props)
	order := rand.New(rand.NewPCG(seed, 9)).Perm(benchEntries)
	mem, err := arena.New(benchEntries * 320)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { mem.Free(0) })
	image = mem.Bytes()[:0]
	for i := range benchEntries {
		n := i
		if random {
			n = order[i]
		}
		pk, rk := key(n)
		k := codec.AppendKey(nil, 16, pk, rk)
		offs, keys = append(offs, uint32(len(image))), append(keys, k)
		image = codec.AppendEntry(image, codec.Entry{Kind: codec.KindPut, Wide: wide, Shape: 1, Key: k, Values: values})
	}
	return image, offs, keys
}

// sampleProps are the twelve properties of the measured data set.
func sampleProps() edm.Properties {
	return edm.Properties{
		{Name: "Measured", Value: edm.DateTime(132000000000000000)},
		{Name: "Status", Value: edm.Int32(7)},
		{Name: "Battery", Value: edm.Int32(93)},
		{Name: "Counter", Value: edm.Int64(123456789)},
		{Name: "Temperature", Value: edm.Double(21.5)},
		{Name: "Humidity", Value: edm.Double(0.43)},
		{Name: "Online", Value: edm.Boolean(true)},
		{Name: "Session", Value: edm.Guid(edm.GUID{1, 2, 3})},
		{Name: "Site", Value: edm.String("amsterdam north")},
		{Name: "Model", Value: edm.String("tx-400 rev b")},
		{Name: "Firmware", Value: edm.String("4.11.2-stable")},
		{Name: "Note", Value: edm.String("replaced the outer casing in spring")},
	}
}

func benchTable(image []byte) *Table {
	t := New(image)
	t.AddShape(1, 0, codec.NewShape(sampleProps()))
	return t
}

func perEntry(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/entry")
}

func BenchmarkApply(b *testing.B) {
	for _, c := range benchShapes {
		for _, order := range []string{"sequential", "random"} {
			b.Run(c.name+"/order="+order, func(b *testing.B) {
				image, offs, _ := benchLog(b, c.key, order == "random")
				var size int64
				for b.Loop() {
					t := benchTable(image)
					for i, off := range offs {
						t.Apply(off, uint64(i+1), 0)
					}
					size = t.Bytes()
				}
				perEntry(b, len(offs))
				b.ReportMetric(float64(size)/float64(len(offs)), "B/entry")
			})
		}
	}
}

// loaded returns a table loaded in random order, and its keys in another random
// order.
func loaded(b *testing.B, key func(n int) (string, string)) (*Table, [][]byte) {
	image, offs, keys := benchLog(b, key, true)
	t := benchTable(image)
	for i, off := range offs {
		t.Apply(off, uint64(i+1), 0)
	}
	rand.New(rand.NewPCG(seed, 10)).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	// In the order of use, because a caller's key is in its cache.
	all := make([]byte, 0, 48*len(keys))
	for i, k := range keys {
		all = append(all, k...)
		keys[i] = all[len(all)-len(k) : len(all) : len(all)]
	}
	return t, keys
}

func BenchmarkGet(b *testing.B) {
	for _, c := range benchShapes {
		t, keys := loaded(b, c.key)
		b.Run(c.name+"/hit=true", func(b *testing.B) {
			b.ReportAllocs()
			var row codec.Row
			i := 0
			for b.Loop() {
				k := keys[i%len(keys)]
				if _, _, ok := t.Get(k, codec.PartitionHash(k), codec.MaxSeq, &row); !ok {
					b.Fatalf("no %q", k)
				}
				i++
			}
		})
		b.Run(c.name+"/hit=false", func(b *testing.B) {
			b.ReportAllocs()
			var row codec.Row
			for _, k := range keys {
				k[len(k)-2]++
			}
			i := 0
			for b.Loop() {
				k := keys[i%len(keys)]
				if _, _, ok := t.Get(k, codec.PartitionHash(k), codec.MaxSeq, &row); ok && c.name != "partitions=300000" {
					b.Fatalf("found %q", k)
				}
				i++
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	for _, c := range benchShapes {
		t, keys := loaded(b, c.key)
		for _, what := range []string{"step", "key", "row"} {
			b.Run(c.name+"/touch="+what, func(b *testing.B) {
				it := t.NewIterator(IterOptions{Snapshot: codec.MaxSeq})
				sum := 0
				for b.Loop() {
					n := 0
					for ok := it.SeekGE(nil); ok; ok = it.Next() {
						switch n++; what {
						case "key":
							sum += len(it.Key())
						case "row":
							row := it.Row()
							for i := range row.Len() {
								_, v := row.At(i)
								sum += int(v.Word()) + len(v.Bytes())
							}
						}
					}
					if n != len(keys) {
						b.Fatalf("%d rows", n)
					}
				}
				perEntry(b, len(keys))
			})
		}
	}
}

// BenchmarkScanPartitions scans partitions of one row. With new=true, a tenth of
// them arrived after the first scan, so that they are in the tree of the directory.
func BenchmarkScanPartitions(b *testing.B) {
	for _, inTree := range []bool{false, true} {
		b.Run(fmt.Sprintf("new=%t", inTree), func(b *testing.B) {
			image, offs, keys := benchLog(b, benchShapes[1].key, true)
			t := benchTable(image)
			it := t.NewIterator(IterOptions{Snapshot: codec.MaxSeq})
			for i, off := range offs {
				if inTree && i == len(offs)/10*9 {
					it.SeekGE(nil)
				}
				t.Apply(off, uint64(i+1), 0)
			}
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for ok := it.SeekGE(nil); ok; ok = it.Next() {
					n++
				}
				for ok := it.SeekLT(nil); ok; ok = it.Prev() {
					n++
				}
				if n != 2*len(keys) {
					b.Fatalf("%d rows", n)
				}
			}
			perEntry(b, 2*len(keys))
		})
	}
}

// BenchmarkSeek reads the first 50 rows of a partition.
func BenchmarkSeek(b *testing.B) {
	t, keys := loaded(b, benchShapes[0].key)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		k := keys[i%len(keys)]
		i++
		p := k[:codec.PartitionLen(k)]
		it := t.NewIterator(IterOptions{Lower: p, Upper: append(p[:len(p)-1:len(p)-1], 2), Snapshot: codec.MaxSeq})
		n := 0
		for ok := it.SeekGE(nil); ok && n < 50; ok = it.Next() {
			n++
		}
		if n != 50 {
			b.Fatalf("%d rows of %q", n, p)
		}
	}
}
