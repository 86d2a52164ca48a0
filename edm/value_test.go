package edm_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

func TestTypes(t *testing.T) {
	for typ := edm.TypeString; typ <= edm.TypeGuid; typ++ {
		got, ok := edm.ParseType(typ.String())
		if !ok || got != typ || !typ.Valid() {
			t.Errorf("ParseType(%q) = %v, %v, want %v", typ.String(), got, ok, typ)
		}
	}
	for _, s := range []string{"", "Edm.", "String", "edm.string", "Edm.Decimal"} {
		if got, ok := edm.ParseType(s); ok {
			t.Errorf("ParseType(%q) = %v, want none", s, got)
		}
	}
	for _, typ := range []edm.Type{0, 9, 255} {
		if typ.Valid() {
			t.Errorf("%v is valid, want not", typ)
		}
	}
	if got := edm.Type(9).String(); got != "Edm.Type(9)" {
		t.Errorf("Type(9) = %q", got)
	}
}

func TestGUID(t *testing.T) {
	const text = "a455c695-df98-5678-aaaa-81d3367e5a34"
	for _, c := range []struct {
		name, input string
		ok          bool
	}{
		{"lower", text, true},
		{"upper", "A455C695-DF98-5678-AAAA-81D3367E5A34", true},
		{"empty", "", false},
		{"compact", "a455c695df985678aaaa81d3367e5a34", false},
		{"braces", "{a455c695-df98-5678-aaaa-81d3367e5a34}", false},
		{"dash moved", "a455c69-5df98-5678-aaaa-81d3367e5a34", false},
		{"no hexadecimal", "g455c695-df98-5678-aaaa-81d3367e5a34", false},
		{"too long", text + "0", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := edm.ParseGUID(c.input)
			if (err == nil) != c.ok {
				t.Fatalf("ParseGUID(%q) = %v, %v, want success %v", c.input, g, err, c.ok)
			}
			if c.ok && g.String() != text {
				t.Errorf("ParseGUID(%q) = %v, want %v", c.input, g, text)
			}
			if got, ok := edm.Guid(g).Guid(); got != g || !ok {
				t.Errorf("Guid(%v).Guid() = %v, %v", g, got, ok)
			}
		})
	}
	for i, c := range text {
		if other := text[:i] + "0" + text[i+1:]; c == '-' {
			if _, err := edm.ParseGUID(other); err == nil {
				t.Errorf("ParseGUID(%q) succeeds", other)
			}
		}
	}
}

func TestValueText(t *testing.T) {
	g, err := edm.ParseGUID("a455c695-df98-5678-aaaa-81d3367e5a34")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		value        edm.Value
		text, goText string
	}{
		{edm.Value{}, "null", "Edm.Type(0)(null)"},
		{edm.String("a\"b"), "a\"b", `Edm.String("a\"b")`},
		{edm.Binary([]byte{1, 255}), "Af8=", `Edm.Binary("\x01\xff")`},
		{edm.Boolean(true), "true", "Edm.Boolean(true)"},
		{edm.Boolean(false), "false", "Edm.Boolean(false)"},
		{edm.Int32(math.MinInt32), "-2147483648", "Edm.Int32(-2147483648)"},
		{edm.Int64(math.MaxInt64), "9223372036854775807", "Edm.Int64(9223372036854775807)"},
		{edm.Double(0.1), "0.1", "Edm.Double(0.1)"},
		{edm.DateTime(1), "1601-01-01T00:00:00.0000001Z", "Edm.DateTime(1601-01-01T00:00:00.0000001Z)"},
		{edm.Guid(g), g.String(), "Edm.Guid(" + g.String() + ")"},
	} {
		t.Run(c.goText, func(t *testing.T) {
			if got := c.value.String(); got != c.text {
				t.Errorf("String = %q, want %q", got, c.text)
			}
			if got := fmt.Sprintf("%#v", c.value); got != c.goText {
				t.Errorf("GoString = %q, want %q", got, c.goText)
			}
		})
	}
}

// TestGetters calls each getter on a value of each type.
func TestGetters(t *testing.T) {
	g := edm.GUID{1, 15: 2}
	values := []edm.Value{
		{},
		edm.String("\u6771"), edm.Binary([]byte("b")), edm.Boolean(true), edm.Int32(-5), edm.Int64(math.MinInt64),
		edm.Double(-0.5), edm.DateTime(7), edm.Guid(g), edm.String(""), edm.Binary(nil),
	}
	getters := []struct {
		name string
		get  func(v edm.Value) (any, bool)
		want map[edm.Type]any
	}{
		{"Text", func(v edm.Value) (any, bool) { s, ok := v.Text(); return s, ok }, map[edm.Type]any{edm.TypeString: "\u6771"}},
		{"Binary", func(v edm.Value) (any, bool) { b, ok := v.Binary(); return string(b), ok }, map[edm.Type]any{edm.TypeBinary: "b"}},
		{"Bool", func(v edm.Value) (any, bool) { b, ok := v.Bool(); return b, ok }, map[edm.Type]any{edm.TypeBoolean: true}},
		{"Int32", func(v edm.Value) (any, bool) { n, ok := v.Int32(); return n, ok }, map[edm.Type]any{edm.TypeInt32: int32(-5)}},
		{
			"Int64", func(v edm.Value) (any, bool) { n, ok := v.Int64(); return n, ok },
			map[edm.Type]any{edm.TypeInt32: int64(-5), edm.TypeInt64: int64(math.MinInt64)},
		},
		{
			"Double", func(v edm.Value) (any, bool) { f, ok := v.Double(); return f, ok },
			map[edm.Type]any{edm.TypeInt32: -5.0, edm.TypeDouble: -0.5},
		},
		{"DateTime", func(v edm.Value) (any, bool) { d, ok := v.DateTime(); return d, ok }, map[edm.Type]any{edm.TypeDateTime: edm.Ticks(7)}},
		{"Guid", func(v edm.Value) (any, bool) { g, ok := v.Guid(); return g, ok }, map[edm.Type]any{edm.TypeGuid: g}},
	}
	zero := map[string]any{
		"Text": "", "Binary": "", "Bool": false, "Int32": int32(0), "Int64": int64(0), "Double": 0.0, "DateTime": edm.Ticks(0), "Guid": edm.GUID{},
	}
	for _, get := range getters {
		for _, v := range values {
			got, ok := get.get(v)
			want, wantOK := get.want[v.Type()]
			if !wantOK || v.Type() <= edm.TypeBinary && len(v.Bytes()) == 0 {
				want = zero[get.name]
			}
			if got != want || ok != wantOK {
				t.Errorf("%#v: %s() = %v, %v, want %v, %v", v, get.name, got, ok, want, wantOK)
			}
		}
	}
}

func TestValueContent(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"Bytes", string(edm.Binary([]byte("b")).Bytes()), "b"},
		{"Bytes of an Int64", len(edm.Int64(1).Bytes()), 0},
		{"Word of an Int32", edm.Int32(-1).Word(), uint64(math.MaxUint64)},
		{"Word of a Guid", edm.GuidWords(1, 2).Word(), uint64(1)},
		{"Word2", edm.GuidWords(1, 2).Word2(), uint64(2)},
		{"Fixed", edm.Fixed(edm.TypeInt64, 3).Equal(edm.Int64(3)), true},
		{"null", edm.Value{}.IsNull(), true},
		{"empty String is not null", edm.String("").IsNull(), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("got %v, want %v", c.got, c.want)
			}
		})
	}
}

func TestValueEqual(t *testing.T) {
	values := []edm.Value{
		{},
		edm.String(""), edm.String("a"), edm.Binary(nil), edm.Binary([]byte("a")), edm.Boolean(false), edm.Boolean(true),
		edm.Int32(1), edm.Int64(1), edm.Double(1), edm.Double(math.NaN()), edm.Double(0), edm.Double(math.Copysign(0, -1)),
		edm.DateTime(1), edm.GuidWords(1, 0), edm.GuidWords(0, 1),
	}
	for i, v := range values {
		for j, w := range values {
			if got := v.Equal(w); got != (i == j) {
				t.Errorf("%#v.Equal(%#v) = %v, want %v", v, w, got, i == j)
			}
		}
	}
}

func TestOwnership(t *testing.T) {
	b := []byte("shared")
	view, clone := edm.StringBytes(b), edm.StringBytes(b).Clone()
	e := edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}, Timestamp: 5, Properties: edm.Properties{{Name: "a", Value: view}}}
	owned := edm.EntityOf(e.View())
	b[0] = 'S'
	for _, c := range []struct{ name, got, want string }{
		{"a view follows", view.String(), "Shared"},
		{"Clone does not", clone.String(), "shared"},
		{"EntityOf does not", owned.Properties.Get("a").String(), "shared"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("got %q, want %q", c.got, c.want)
			}
		})
	}
}

func TestRowOfEntity(t *testing.T) {
	e := edm.Entity{
		Key: edm.Key{Partition: "p", Row: "r"}, Timestamp: 5,
		Properties: edm.Properties{{Name: "a", Value: edm.Int32(1)}, {Name: "b", Value: edm.Int32(2)}},
	}
	r := e.View()
	if got := string(r.AppendRow(append(r.AppendPartition([]byte("<")), '|'))); got != "<p|r" {
		t.Errorf("keys appended: %q, want <p|r", got)
	}
	if r.Key() != e.Key || r.Timestamp() != 5 || r.Len() != 2 {
		t.Errorf("key %v, timestamp %v, %d properties, want those of %+v", r.Key(), r.Timestamp(), r.Len(), e)
	}
	if name, v := r.At(1); name != "b" || !v.Equal(edm.Int32(2)) {
		t.Errorf("At(1) = %q %v, want b 2", name, v)
	}
	if v, ok := r.Lookup("b"); !ok || !v.Equal(edm.Int32(2)) {
		t.Errorf("Lookup(b) = %v %v, want 2", v, ok)
	}
	if v, ok := r.Lookup("B"); ok || !v.IsNull() {
		t.Errorf("Lookup(B) = %v %v, want none", v, ok)
	}
}
