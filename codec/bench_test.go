package codec

import (
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

func BenchmarkKey(b *testing.B) {
	dst := make([]byte, 0, 64)
	key := AppendKey(nil, 16, "dev-000001", "1700000000000")
	b.Run("op=append", func(b *testing.B) {
		for b.Loop() {
			dst = AppendKey(dst[:0], 16, "dev-000001", "1700000000000")
		}
	})
	b.Run("op=check", func(b *testing.B) {
		for b.Loop() {
			if err := CheckKey(key); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("op=hash", func(b *testing.B) {
		for b.Loop() {
			PartitionHash(key)
		}
	})
}

// sink keeps results alive.
var sink uint64

func BenchmarkRow(b *testing.B) {
	props := sampleProps()[:12]
	s := NewShape(props)
	values, wide := AppendValues(nil, s, props)
	key := AppendKey(nil, 16, "dev-000001", "1700000000000")
	entry := AppendEntry(nil, Entry{Kind: KindPut, Wide: wide, Shape: 1, Key: key, Values: values})
	r := &Row{}
	r.Reset(key, 1, s, wide, values)
	same := make(edm.Properties, len(props))
	for i := range same {
		same[i].Name, same[i].Value = r.At(i)
	}
	var row edm.Row = r
	for _, c := range []struct {
		name string
		fn   func()
	}{
		{"at", func() {
			for i := range row.Len() {
				_, v := row.At(i)
				sink += v.Word() + uint64(len(v.Bytes()))
			}
		}},
		{"lookup", func() {
			for i := range same {
				v, _ := row.Lookup(same[i].Name)
				sink += v.Word() + uint64(len(v.Bytes()))
			}
		}},
		{"append", func() { values, _ = AppendValues(values[:0], s, props) }},
		{"matches/names=same", func() {
			if !s.Matches(same) {
				b.Fatal("no match")
			}
		}},
		{"matches/names=equal", func() {
			if !s.Matches(props) {
				b.Fatal("no match")
			}
		}},
		{"check", func() {
			if err := CheckValues(s, wide, values); err != nil {
				b.Fatal(err)
			}
		}},
		{"decodeEntry", func() {
			e, _, _ := DecodeEntry(entry)
			sink += uint64(len(e.Key))
		}},
		{"resetEntry", func() { r.ResetEntry(entry, s) }},
	} {
		b.Run("properties=12/op="+c.name, func(b *testing.B) {
			for b.Loop() {
				c.fn()
			}
		})
	}
}
