package codec

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
)

// FuzzKey reads arbitrary bytes as a user key: a key that CheckKey accepts can be
// split, and encodes back to the same bytes.
func FuzzKey(f *testing.F) {
	f.Add(AppendKey(nil, 16, "dev-000001", "1700000000000"))
	f.Add(AppendKey(nil, 0, "", ""))
	f.Add(AppendKey(nil, 1<<24, "a\U0001F600", "\uD7FF\uE000\uFFFF"))
	f.Add([]byte("\x00\x00\x00\x10\xED\xA0\xBD\x01\x01"))
	f.Fuzz(func(t *testing.T, key []byte) {
		err := CheckKey(key)
		table, p, r, ok := SplitKey(key)
		_, _ = PartitionHash(key), CheckInternalKey(key)
		_ = AppendUTF8(AppendUTF8(nil, p), r)
		if err != nil {
			return
		}
		if !ok {
			t.Fatalf("CheckKey accepts %x, SplitKey does not", key)
		}
		partition, row := string(AppendUTF8(nil, p)), string(AppendUTF8(nil, r))
		if got := AppendKey(nil, table, partition, row); !bytes.Equal(got, key) {
			t.Fatalf("%x decodes to (%q, %q), which encodes to %x", key, partition, row, got)
		}
		if !utf8.ValidString(partition) || !utf8.ValidString(row) {
			t.Fatalf("%x decodes to (%q, %q), which is not UTF-8", key, partition, row)
		}
	})
}

// FuzzKeyText encodes arbitrary text: the keys decode to the same text, and sort by
// code units.
func FuzzKeyText(f *testing.F) {
	f.Add("a", "b", "a", "")
	f.Add("\uD7FF", "\U0001F600", "\uE000", "x")
	f.Fuzz(func(t *testing.T, p, r, p2, r2 string) {
		for _, s := range []string{p, r, p2, r2} {
			if !utf8.ValidString(s) || len(units(s)) > 1024 || strings.ContainsFunc(s, func(c rune) bool { return c < 0x20 }) {
				t.Skip()
			}
		}
		a, b := AppendKey(nil, 16, p, r), AppendKey(nil, 16, p2, r2)
		if err := CheckKey(a); err != nil {
			t.Fatalf("key of (%q, %q): %v", p, r, err)
		}
		want := slices.Compare(units(p), units(p2))
		if want == 0 {
			want = slices.Compare(units(r), units(r2))
		}
		if got := bytes.Compare(a, b); got != want {
			t.Fatalf("(%q, %q) to (%q, %q): %d, want %d", p, r, p2, r2, got, want)
		}
	})
}

// FuzzShape decodes arbitrary bytes as a shape.
func FuzzShape(f *testing.F) {
	f.Add(AppendShape(nil, NewShape(nil)))
	f.Add(AppendShape(nil, NewShape(sampleProps())))
	f.Add([]byte("\x02\x00\x04\x01\x00a\x05\x01\x00a"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, rest, err := DecodeShape(src)
		if err != nil {
			return
		}
		if got := append(AppendShape(nil, s), rest...); !bytes.Equal(got, src) {
			t.Fatalf("%x decodes and encodes to %x", src, got)
		}
		for i := range s.Len() {
			if s.Index(s.Name(i)) != i {
				t.Fatalf("Index(%q) = %d, want %d", s.Name(i), s.Index(s.Name(i)), i)
			}
		}
	})
}

// FuzzEntry decodes arbitrary bytes as an entry and others as the shape of its values,
// and reads the whole row if the checks accept it.
func FuzzEntry(f *testing.F) {
	for _, props := range []edm.Properties{nil, sampleProps(), {{Name: "a", Value: edm.String("x")}, {Name: "b", Value: edm.Binary(nil)}}} {
		s := NewShape(props)
		values, wide := AppendValues(nil, s, props)
		f.Add(AppendEntry(nil, Entry{Kind: KindPut, Wide: wide, Shape: 1, Timestamp: 1, Key: AppendKey(nil, 16, "p", "r"), Values: values}), AppendShape(nil, s))
	}
	f.Add(AppendEntry(nil, Entry{Kind: KindDelete, Key: AppendKey(nil, 16, "p", "r")}), []byte{})
	f.Add(AppendEntry(nil, Entry{Kind: KindShape, Shape: 1, Values: AppendShape(nil, NewShape(sampleProps()))}), []byte{})
	f.Fuzz(func(t *testing.T, src, shape []byte) {
		e, n, err := DecodeEntry(src)
		if err != nil {
			return
		}
		if got := AppendEntry(nil, e); n != len(got) || !bytes.Equal(got, src[:n]) {
			t.Fatalf("%x decodes to %+v of %d bytes, which encodes to %x", src, e, n, got)
		}
		if e.Kind != KindPut || CheckKey(e.Key) != nil {
			return
		}
		s, _, err := DecodeShape(shape)
		if err != nil || CheckValues(s, e.Wide, e.Values) != nil {
			return
		}
		var r Row
		r.ResetEntry(src, s)
		entity := edm.EntityOf(&r)
		for i, p := range entity.Properties {
			if v, ok := r.Lookup(p.Name); !ok || !v.Equal(p.Value) || v.Type() != s.Type(i) {
				t.Fatalf("Lookup(%q) = %#v, At gave %#v", p.Name, v, p.Value)
			}
		}
		if got, wide := AppendValues(nil, s, entity.Properties); wide != e.Wide || !bytes.Equal(got, e.Values) {
			t.Fatalf("values %x (wide %t) encode to %x (wide %t)", e.Values, e.Wide, got, wide)
		}
	})
}
