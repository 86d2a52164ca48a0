package edm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

func BenchmarkCheckKey(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"text=ascii/bytes=10", "0123456789"},
		{"text=ascii/bytes=20", "01234567890123456789"},
		{"text=ascii/bytes=1024", strings.Repeat("k", 1024)},
		{"text=umlaut/bytes=21", "M\u00fcnchen 012345678901"},
		{"text=cjk/bytes=21", "\u6771\u4eac\u90fd\u6771\u4eac\u90fd\u6771"},
	} {
		k := edm.Key{Partition: c.text}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := edm.CheckKey(k); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheckValues(b *testing.B) {
	for _, c := range []struct {
		name  string
		value edm.Value
	}{
		{"type=Int64", edm.Int64(1)},
		{"type=DateTime", edm.DateTime(1)},
		{"type=String/text=ascii/bytes=30", edm.String(strings.Repeat("s", 30))},
		{"type=String/text=ascii/bytes=32768", edm.String(strings.Repeat("s", 32768))},
		{"type=String/text=cjk/bytes=32766", edm.String(strings.Repeat("\u6771", 10922))},
		{"type=String/text=cjk/bytes=98304", edm.String(strings.Repeat("\u6771", 32768))},
	} {
		p := edm.Properties{{Name: "Name", Value: c.value}}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := edm.CheckValues(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheckPropertyName(b *testing.B) {
	for _, name := range []string{"CustomerName", "Gr\u00f6\u00dfe"} {
		b.Run("name="+name, func(b *testing.B) {
			for b.Loop() {
				if err := edm.CheckPropertyName(name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheckProperties(b *testing.B) {
	for _, n := range []int{4, 6, 7, 8, 12, 40, 252} {
		p := wideEntity(n).Properties
		b.Run(fmt.Sprintf("properties=%d", n), func(b *testing.B) {
			for b.Loop() {
				if err := edm.CheckProperties(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheckEntity(b *testing.B) {
	for _, n := range []int{12, 252} {
		e := wideEntity(n)
		b.Run(fmt.Sprintf("properties=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := edm.CheckEntity(&e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEntitySize(b *testing.B) {
	e := wideEntity(12)
	for b.Loop() {
		edm.EntitySize(e.Key, e.Properties)
	}
}

func BenchmarkUTF16Len(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"text=ascii", strings.Repeat("s", 1023)},
		{"text=cjk", strings.Repeat("\u6771", 341)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				edm.UTF16Len(c.text)
			}
		})
	}
}

func BenchmarkCompare(b *testing.B) {
	for _, n := range []int{4, 20, 200} {
		x, y := strings.Repeat("k", n)+"a", strings.Repeat("k", n)+"b"
		b.Run(fmt.Sprintf("common=%d", n), func(b *testing.B) {
			for b.Loop() {
				edm.Compare(x, y)
			}
		})
	}
}

func BenchmarkParseTicks(b *testing.B) {
	for b.Loop() {
		if _, err := edm.ParseTicks("2017-08-22T22:12:09.25652Z"); err != nil {
			b.Fatal(err)
		}
	}
}
