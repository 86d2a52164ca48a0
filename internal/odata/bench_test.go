package odata_test

import (
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
)

// tenProperties is a typical entity of an application.
func tenProperties(tb testing.TB) edm.Entity {
	return edm.Entity{
		Key:       edm.Key{Partition: "dev-000417", Row: "0001706932800"},
		Timestamp: ticks(tb, "2024-02-03T04:05:06.7891234Z"),
		Properties: edm.Properties{
			{Name: "Time", Value: edm.DateTime(ticks(tb, "2024-02-03T04:05:06.123Z"))},
			{Name: "Count", Value: edm.Int32(417)},
			{Name: "Total", Value: edm.Int64(90071992547)},
			{Name: "Celsius", Value: edm.Double(21.375)},
			{Name: "Active", Value: edm.Boolean(true)},
			{Name: "Id", Value: edm.Guid(guid(tb, "a455c695-df98-5678-aaaa-81d3367e5a34"))},
			{Name: "Site", Value: edm.String("north hall")},
			{Name: "Comment", Value: edm.String("the quick brown fox jumps over the lazy dog")},
			{Name: "Status", Value: edm.String("ok")},
			{Name: "Raw", Value: edm.Binary([]byte("0123456789abcdef"))},
		},
	}
}

func BenchmarkAppendEntity(b *testing.B) {
	e := tenProperties(b)
	row := e.View()
	for _, c := range []struct {
		name string
		o    odata.Options
	}{
		{"level=none", odata.Options{}},
		{"level=minimal", odata.Options{Level: odata.Minimal}},
		{"level=minimal/ascii=true", odata.Options{Level: odata.Minimal, ASCII: true}},
		{"level=full", inBook(odata.Options{Level: odata.Full})},
		{"level=minimal/select=4", odata.Options{Level: odata.Minimal, Select: []string{"RowKey", "Total", "Site", "none"}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			dst := odata.AppendEntity(nil, row, c.o)
			b.SetBytes(int64(len(dst)))
			b.ReportAllocs()
			for b.Loop() {
				dst = odata.AppendEntity(dst[:0], row, c.o)
			}
		})
	}
}

func BenchmarkParseEntity(b *testing.B) {
	e := tenProperties(b)
	src := odata.AppendEntity(nil, e.View(), odata.Options{Level: odata.Minimal})
	b.Run("memory=own", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := odata.ParseEntity(src, odata.ParseOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("memory=reused/names=mixed", func(b *testing.B) {
		slices.Reverse(e.Properties)
		other := odata.AppendEntity(nil, e.View(), odata.Options{Level: odata.Minimal})
		b.SetBytes(int64(len(src)))
		b.ReportAllocs()
		var p odata.Parser
		for b.Loop() {
			p.Reset()
			if _, err := p.ParseEntity(src, odata.ParseOptions{}); err != nil {
				b.Fatal(err)
			}
			src, other = other, src
		}
	})
	b.Run("memory=reused/names=optional", func(b *testing.B) {
		few := e
		few.Properties = slices.Delete(slices.Clone(e.Properties), 2, 4)
		other := odata.AppendEntity(nil, few.View(), odata.Options{Level: odata.Minimal})
		b.SetBytes(int64(len(src)))
		b.ReportAllocs()
		var p odata.Parser
		for b.Loop() {
			p.Reset()
			if _, err := p.ParseEntity(src, odata.ParseOptions{}); err != nil {
				b.Fatal(err)
			}
			src, other = other, src
		}
	})
	b.Run("memory=reused/names=same", func(b *testing.B) {
		b.SetBytes(int64(len(src)))
		b.ReportAllocs()
		var p odata.Parser
		for b.Loop() {
			p.Reset()
			if _, err := p.ParseEntity(src, odata.ParseOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAppendDouble(b *testing.B) {
	for _, c := range []struct {
		name string
		f    float64
	}{{"digits=short", 21.375}, {"digits=whole", 417}, {"digits=17", 0.30000000000000004}} {
		b.Run(c.name, func(b *testing.B) {
			var buf [32]byte
			for b.Loop() {
				odata.AppendDouble(buf[:0], c.f)
			}
		})
	}
}
