package codec

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tablerock-db/tablerock/edm"
)

var update = flag.Bool("update", false, "write the golden files")

// golden is one encoding in a golden file, a line "name: hex".
type golden struct {
	name  string
	bytes []byte
}

// checkGolden compares the encodings with the golden file called name.
func checkGolden(t *testing.T, name string, list []golden) {
	t.Helper()
	var b strings.Builder
	for _, g := range list {
		b.WriteString(g.name + ": " + strings.ToUpper(hex.EncodeToString(g.bytes)) + "\n")
	}
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s: the encoding differs from that of older files (-file +got)\n%s", path, diff)
	}
}

// sampleProps are the properties of one entity of the measured data set: every
// type, short strings of words and a small binary.
func sampleProps() edm.Properties {
	return edm.Properties{
		{Name: "Measured", Value: edm.DateTime(133494531234567890)},
		{Name: "Status", Value: edm.Int32(7)},
		{Name: "Battery", Value: edm.Int32(-93)},
		{Name: "Counter", Value: edm.Int64(123456789012)},
		{Name: "Temperature", Value: edm.Double(21.53125)},
		{Name: "Humidity", Value: edm.Double(0.4375)},
		{Name: "Online", Value: edm.Boolean(true)},
		{Name: "Session", Value: edm.Guid(edm.GUID{0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF, 0xFE, 0xDC, 0xBA, 0x98, 0x76, 0x54, 0x32, 0x10})},
		{Name: "Site", Value: edm.String("amsterdam north harbour")},
		{Name: "Model", Value: edm.String("tx-400 revision b")},
		{Name: "Firmware", Value: edm.String("4.11.2-stable")},
		{Name: "Note", Value: edm.String("replaced the outer casing in spring")},
		{Name: "Payload", Value: edm.Binary(bytes.Repeat([]byte{0xA5, 0x5A, 0, 0xFF}, 15))},
	}
}

// wideProps have a variable section that needs the wide form.
func wideProps() edm.Properties {
	return edm.Properties{
		{Name: "a", Value: edm.String(strings.Repeat("x", 40000))},
		{Name: "n", Value: edm.Int32(1)},
		{Name: "b", Value: edm.Binary(bytes.Repeat([]byte{1}, 40000))},
		{Name: "c", Value: edm.String("")},
	}
}

func TestGoldenShapes(t *testing.T) {
	checkGolden(t, "shapes", []golden{
		{"empty", AppendShape(nil, NewShape(nil))},
		{"one", AppendShape(nil, NewShape(edm.Properties{{Name: "n", Value: edm.Int32(1)}}))},
		{"nulls are no part", AppendShape(nil, NewShape(edm.Properties{{Name: "x"}, {Name: "n", Value: edm.Int32(1)}, {Name: "y"}}))},
		{"not ASCII", AppendShape(nil, NewShape(edm.Properties{{Name: "größe", Value: edm.Double(1)}}))},
		{"sample", AppendShape(nil, NewShape(sampleProps()))},
	})
}

func TestGoldenValues(t *testing.T) {
	list := []golden{}
	add := func(name string, props edm.Properties) {
		b, wide := AppendValues(nil, NewShape(props), props)
		if wide {
			name += " (wide, ends alone)"
			b = b[:NewShape(props).fixed[1]]
		}
		list = append(list, golden{name, b})
	}
	add("empty", nil)
	for _, p := range sampleProps() {
		add(p.Value.Type().String(), edm.Properties{p})
	}
	add("empty strings", edm.Properties{{Name: "a", Value: edm.String("")}, {Name: "b", Value: edm.Binary(nil)}})
	add("two strings around a Boolean", edm.Properties{
		{Name: "a", Value: edm.String("ab")}, {Name: "t", Value: edm.Boolean(true)}, {Name: "b", Value: edm.String("cde")},
	})
	add("sample", sampleProps())
	add("large", wideProps())
	checkGolden(t, "values", list)
}

func TestGoldenEntries(t *testing.T) {
	s := NewShape(sampleProps())
	values, wide := AppendValues(nil, s, sampleProps())
	key := AppendKey(nil, 16, "dev-000001", "1700000000000")
	put := Entry{Kind: KindPut, Wide: wide, Shape: 1, Timestamp: 133494531234567890, Key: key, Values: values}
	patched := AppendEntry(nil, put)
	PatchEntry(patched, 0x0203, 0x0405060708090A0B)
	checkGolden(t, "entries", []golden{
		{"shape", AppendEntry(nil, Entry{Kind: KindShape, Shape: 1, Values: AppendShape(nil, s)})},
		{"put", AppendEntry(nil, put)},
		{"put, patched", patched},
		{"put, wide flag", AppendEntry(nil, Entry{Kind: KindPut, Wide: true, Shape: 2, Key: AppendKey(nil, 16, "", ""), Values: []byte{1}})},
		{"delete", AppendEntry(nil, Entry{Kind: KindDelete, Timestamp: 5, Key: key})},
	})
}

// TestSampleSize pins the size of one entity of the measured data set.
func TestSampleSize(t *testing.T) {
	props := sampleProps()
	values, _ := AppendValues(nil, NewShape(props), props)
	entry := AppendEntry(nil, Entry{Kind: KindPut, Shape: 1, Key: AppendKey(nil, 16, "dev-000001", "1700000000000"), Values: values})
	heap := 0
	for _, p := range props {
		if t := p.Value.Type(); t == edm.TypeString || t == edm.TypeBinary {
			heap += len(p.Value.Bytes())
		}
	}
	if len(values) != 67+heap || len(entry) != 18+29+67+heap {
		t.Errorf("values of %d bytes, entry of %d, variable section %d", len(values), len(entry), heap)
	}
	t.Logf("values %d bytes, entry %d, of which strings and binary %d; wide form %d more",
		len(values), len(entry), heap, NewShape(props).fixed[1]-NewShape(props).fixed[0])
}
