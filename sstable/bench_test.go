package sstable

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/cache"
	"github.com/tablerock-db/tablerock/vfs"
)

// words generates short texts of words whose frequency falls along the list.
type words struct {
	*rand.Rand
	zipf *rand.Zipf
	list []string
}

func newWords(r *rand.Rand) *words {
	w := &words{Rand: r, zipf: rand.NewZipf(r, 1.1, 4, 4095)}
	for range 4096 {
		var b strings.Builder
		for range 3 + r.IntN(7) {
			b.WriteByte(byte('a' + r.IntN(26)))
		}
		w.list = append(w.list, b.String())
	}
	return w
}

func (w *words) text(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.list[w.zipf.Uint64()])
	}
	return b.String()
}

// telemetry returns n entities of twelve properties, some 230 bytes each, perPartition
// in each partition.
func telemetry(n, perPartition int) []entry {
	r := rand.New(rand.NewPCG(1, 2))
	w := newWords(r)
	list := make([]entry, n)
	for i := range list {
		blob := make([]byte, 40+r.IntN(40))
		for j := range blob {
			if j%8 != 0 {
				blob[j] = byte(r.Uint32())
			}
		}
		pk, rk := fmt.Sprintf("dev-%06d", i/perPartition), fmt.Sprintf("%013d", 1700000000000+int64(i%perPartition)*1000)
		list[i] = newEntry(pk, rk, uint64(i+1), false, edm.Properties{
			{Name: "Time", Value: edm.DateTime(edm.Ticks(133_500_000_000_000_000 + int64(i)*9_999_871))},
			{Name: "Status", Value: edm.Int32(int32(r.IntN(6)))},
			{Name: "Code", Value: edm.Int32(int32(r.IntN(100000)))},
			{Name: "Counter", Value: edm.Int64(r.Int64N(1 << 40))},
			{Name: "Temperature", Value: edm.Double(r.NormFloat64() * 20)},
			{Name: "Load", Value: edm.Double(r.Float64())},
			{Name: "Active", Value: edm.Boolean(r.IntN(3) > 0)},
			{Name: "Session", Value: edm.GuidWords(r.Uint64(), r.Uint64())},
			{Name: "Site", Value: edm.String(w.text(1))},
			{Name: "Operator", Value: edm.String(w.text(2))},
			{Name: "Message", Value: edm.String(w.text(4))},
			{Name: "Note", Value: edm.String(w.text(2))},
			{Name: "Payload", Value: edm.Binary(blob)},
		})
	}
	return sortEntries(list)
}

const benchRows = 100_000

func benchFile(b *testing.B, perPartition int, o WriterOptions) ([]entry, vfs.File, Info) {
	entries := telemetry(benchRows, perPartition)
	f, info := write(b, o, entries)
	return entries, f, info
}

func BenchmarkWrite(b *testing.B) {
	for _, per := range []int{1000, 1} {
		for comp, name := range []string{"fast", "small", "none"} {
			b.Run(fmt.Sprintf("perPartition=%d/compression=%s", per, name), func(b *testing.B) {
				o := writerOptions()
				o.Compression = Compression(comp)
				benchWrite(b, telemetry(benchRows, per), o)
			})
		}
	}
	b.Run("sparse", func(b *testing.B) { benchWrite(b, sparseEntries(benchRows), writerOptions()) })
}

// sparseEntries returns n entities that have ten of 251 properties each.
func sparseEntries(n int) []entry {
	list := make([]entry, n)
	for i := range list {
		props := make(edm.Properties, 10)
		for j := range props {
			props[j] = edm.Property{Name: fmt.Sprintf("Property%03d", (i*7+j*31)%251), Value: edm.Int64(int64(i * j))}
		}
		list[i] = newEntry(fmt.Sprintf("%06d", i/1000), fmt.Sprintf("%06d", i), uint64(i+1), false, props)
	}
	return list
}

// benchWrite writes all entries to a file, again and again. An operation is one entry.
func benchWrite(b *testing.B, entries []entry, o WriterOptions) {
	var s shaper
	rows := make([]codec.ShapedRow, len(entries))
	for i := range entries {
		rows[i] = s.row(&entries[i])
	}
	var w *Writer
	var size int64
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		if w == nil {
			w = NewWriter(&discard{}, o)
		}
		if err := w.Add(entries[n].key, rows[n]); err != nil {
			b.Fatal(err)
		}
		if n++; n == len(entries) {
			info, err := w.Finish()
			if err != nil {
				b.Fatal(err)
			}
			size, n, w = info.Size, 0, nil
		}
	}
	if size > 0 {
		b.ReportMetric(float64(size)/benchRows, "B/row")
	}
}

// BenchmarkCopy measures a compaction of one file.
func BenchmarkCopy(b *testing.B) {
	_, f, _ := benchFile(b, 1000, writerOptions())
	it := open(b, f, nil).NewIterator(IterOptions{AllVersions: true})
	w := NewWriter(&discard{}, writerOptions())
	it.SeekGE(nil)
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Add(it.Key(), it.Row()); err != nil {
			b.Fatal(err)
		}
		if !it.Next() {
			w.Finish()
			w = NewWriter(&discard{}, writerOptions())
			it.SeekGE(nil)
		}
	}
}

// discard is a file that drops what is written.
type discard struct{ vfs.File }

func (*discard) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (*discard) Sync() error                            { return nil }

func BenchmarkGet(b *testing.B) {
	for _, per := range []int{1000, 1} {
		entries, f, _ := benchFile(b, per, writerOptions())
		order := rand.New(rand.NewPCG(3, 4)).Perm(len(entries))
		for _, mode := range []string{"miss", "bare", "touch", "cold"} {
			b.Run(fmt.Sprintf("perPartition=%d/mode=%s", per, mode), func(b *testing.B) {
				size := int64(256 << 20)
				if mode == "cold" {
					size = 0
				}
				r := open(b, f, cache.New(size))
				var row Row
				get := func(i int) {
					e := &entries[order[i%len(order)]]
					hash := codec.KeyHash(e.user)
					if mode == "miss" {
						hash++
					}
					_, _, ok, err := r.Get(e.user, hash, codec.MaxSeq, &row)
					if err != nil || ok == (mode == "miss") {
						b.Fatalf("%t %v", ok, err)
					}
					if mode == "touch" {
						touch(&row)
					}
					row.Release()
				}
				if mode != "cold" && mode != "miss" {
					for i := range entries {
						get(i)
					}
				}
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					if mode == "miss" {
						e := &entries[order[i%len(order)]]
						if r.MayContain(codec.KeyHash(e.user) * 0x9E3779B97F4A7C15) {
							i++
						}
						i++
						continue
					}
					get(i)
					i++
				}
			})
		}
	}
}

var sink uint64

// touch reads every property of a row through the interface.
func touch(row edm.Row) {
	s := uint64(0)
	for i := range row.Len() {
		_, v := row.At(i)
		switch v.Type() {
		case edm.TypeString, edm.TypeBinary:
			s += uint64(len(v.Bytes()))
		default:
			s += v.Word()
		}
	}
	sink += s
}

func BenchmarkScan(b *testing.B) {
	for _, per := range []int{1000, 1} {
		_, f, _ := benchFile(b, per, writerOptions())
		for _, mode := range []string{"step", "key", "fixed", "touch", "cold"} {
			b.Run(fmt.Sprintf("perPartition=%d/mode=%s", per, mode), func(b *testing.B) {
				size := int64(256 << 20)
				if mode == "cold" {
					size = 0
				}
				r := open(b, f, cache.New(size))
				it := r.NewIterator(IterOptions{Snapshot: codec.MaxSeq, Fill: true})
				for ok := it.SeekGE(nil); ok; ok = it.Next() {
					touch(it.Row())
				}
				it.SeekGE(nil)
				b.ReportAllocs()
				for b.Loop() {
					switch mode {
					case "key":
						sink += uint64(len(it.Key()))
					case "fixed":
						_, v := it.Row().At(3)
						sink += v.Word()
					case "touch", "cold":
						touch(it.Row())
					}
					if !it.Next() {
						it.SeekGE(nil)
					}
				}
			})
		}
	}
}
