package filter

import (
	"strings"
	"testing"
)

const (
	typicalText = "PartitionKey eq 'p' and RowKey ge 'row-0001' and RowKey lt 'row-0002' and Total gt 50 and Paid eq false"
	scanText    = "Total gt 50 and Paid eq false"
)

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"typical", typicalText},
		{"scan", scanText},
		{"or-100", strings.Repeat("(PartitionKey eq 'p' and RowKey eq 'row-0001') or ", 99) + "PartitionKey eq 'q'"},
	} {
		b.Run("filter="+c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for b.Loop() {
				MustParse(c.text)
			}
		})
	}
}

func BenchmarkMatch(b *testing.B) {
	entity := benchEntity()
	row := entity.View()
	index := func(name string) int {
		for i, p := range entity.Properties {
			if p.Name == name {
				return i
			}
		}
		return -1
	}
	for _, c := range []struct{ name, text string }{{"typical", typicalText}, {"scan", scanText}, {"one", "Count gt 5"}} {
		e := MustParse(c.text)
		if !e.Match(row) {
			b.Fatalf("%s does not match", c.text)
		}
		b.Run("filter="+c.name+"/by=name", func(b *testing.B) {
			for b.Loop() {
				e.Match(row)
			}
		})
		bound := e.compiled().program.Bind(index)
		b.Run("filter="+c.name+"/by=index", func(b *testing.B) {
			for b.Loop() {
				bound.Match(row)
			}
		})
	}
}
