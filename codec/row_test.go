package codec

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/race"
)

var _ ShapedRow = (*Row)(nil)

// randomValue returns a value of type typ, often a limit of the type.
func randomValue(rnd *rand.Rand, typ edm.Type, maxLen int) edm.Value {
	word := []uint64{0, 1, math.MaxUint64, 1 << 63, 1<<63 - 1, math.Float64bits(math.NaN()), rnd.Uint64()}[rnd.IntN(7)]
	switch typ {
	case edm.TypeString:
		return edm.String(strings.Repeat("é", rnd.IntN(maxLen/2+1)))
	case edm.TypeBinary:
		b := make([]byte, rnd.IntN(maxLen+1))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return edm.Binary(b)
	case edm.TypeBoolean:
		return edm.Boolean(word&1 != 0)
	case edm.TypeInt32:
		return edm.Int32(int32(word))
	case edm.TypeDateTime:
		return edm.DateTime([]edm.Ticks{edm.MinTicks, edm.MaxTicks, edm.Ticks(rnd.Int64N(int64(edm.MaxTicks)))}[rnd.IntN(3)])
	case edm.TypeGuid:
		return edm.GuidWords(word, rnd.Uint64())
	}
	return edm.Fixed(typ, word)
}

// randomProps returns n properties, with nulls between them if nulls is set.
func randomProps(rnd *rand.Rand, n, maxLen int, nulls bool) edm.Properties {
	props := edm.Properties{}
	for i := range n {
		if nulls && rnd.IntN(3) == 0 {
			props = append(props, edm.Property{Name: fmt.Sprint("null", i)})
		}
		typ := edm.Type(1 + rnd.IntN(8))
		props = append(props, edm.Property{Name: fmt.Sprint("p", i), Value: randomValue(rnd, typ, maxLen)})
	}
	return props
}

// shapeParts are the fields of a Shape that do not change.
type shapeParts struct {
	Fields []field
	Fixed  [2]int
	Names  int
	Texts  []uint16
	Ranged []uint16
	Index  []uint8
}

func partsOf(s *Shape) shapeParts {
	return shapeParts{s.fields, s.fixed, s.names, s.texts, s.ranged, s.index}
}

func withoutNulls(props edm.Properties) edm.Properties {
	out := edm.Properties{}
	for _, p := range props {
		if !p.Value.IsNull() {
			out = append(out, p)
		}
	}
	return out
}

// TestRowRoundTrip encodes random rows of every width and compares the results of each
// method of Row.
func TestRowRoundTrip(t *testing.T) {
	race.SkipOneGoroutine(t)
	rnd := rand.New(rand.NewPCG(seed, 2))
	wideSeen := 0
	for round := range 400 {
		maxLen := []int{20, 300, 60_000}[round%3]
		props := randomProps(rnd, []int{0, 1, 12, 16, 17, 40, 252}[rnd.IntN(7)]%(252/(1+round%3*3)+1), maxLen, round%2 == 0)
		want := withoutNulls(props)
		s := NewShape(props)
		if s.Len() != len(want) || !s.Matches(props) || !s.Matches(want) {
			t.Fatalf("round %d: shape of %d properties does not match its %d", round, s.Len(), len(want))
		}
		values, wide := AppendValues([]byte("before"), s, props)
		values = values[len("before"):]
		if wide {
			wideSeen++
		}
		if err := CheckValues(s, wide, values); err != nil {
			t.Fatalf("round %d: CheckValues: %v", round, err)
		}
		var r Row
		key := AppendKey(nil, 16, "pä\U0001F600", "r")
		r.Reset(key, 77, s, wide, values)
		if !cmp.Equal(r.Key(), edm.Key{Partition: "pä\U0001F600", Row: "r"}) || r.Timestamp() != 77 || r.Len() != len(want) || r.Shape() != s {
			t.Fatalf("round %d: row has key %v, time %v, %d properties", round, r.Key(), r.Timestamp(), r.Len())
		}
		if p, k := string(r.AppendPartition([]byte("+"))), string(r.AppendRow([]byte("+"))); p != "+pä\U0001F600" || k != "+r" {
			t.Fatalf("round %d: row appends %q and %q", round, p, k)
		}
		var words []uint64
		var text []byte
		for _, p := range want {
			switch p.Value.Type() {
			case edm.TypeString, edm.TypeBinary:
				text = append(text, p.Value.Bytes()...)
				words = append(words, uint64(len(text)))
			case edm.TypeGuid:
				words = append(words, p.Value.Word(), p.Value.Word2())
			default:
				words = append(words, p.Value.Word())
			}
		}
		fixed, variable, narrow := r.Narrow()
		if narrow == wide || narrow && !bytes.Equal(variable, text) {
			t.Fatalf("round %d: Narrow: %x, %t, want %x, %t", round, variable, narrow, text, !wide)
		}
		if narrow {
			checkColumns(t, s, fixed, words)
		}
		for i, p := range want {
			name, v := r.At(i)
			if name != p.Name || !v.Equal(p.Value) || s.Name(i) != p.Name || s.Type(i) != p.Value.Type() {
				t.Fatalf("round %d: At(%d) = %s %#v, want %s %#v", round, i, name, v, p.Name, p.Value)
			}
			if v, ok := r.Lookup(p.Name); !ok || !v.Equal(p.Value) || s.Index(p.Name) != i {
				t.Fatalf("round %d: Lookup(%s) = %#v %t, want %#v", round, p.Name, v, ok, p.Value)
			}
		}
		if v, ok := r.Lookup("null0"); ok || !v.IsNull() || s.Index("") != -1 {
			t.Fatalf("round %d: Lookup of a missing name = %#v", round, v)
		}
	}
	if wideSeen < 20 {
		t.Errorf("only %d wide rows", wideSeen)
	}
}

// checkColumns reads a row and one of zeros by columns. words are those of the row, both of a Guid.
func checkColumns(t *testing.T, s *Shape, fixed []byte, words []uint64) {
	fixed = append(bytes.Clone(fixed), make([]byte, len(fixed))...)
	for i := range s.Len() {
		got, more := s.AppendColumn([]uint64{9}, []uint64{8}, i, fixed)
		want, wantMore := []uint64{9, words[0], 0}, []uint64{8}
		words = words[1:]
		if s.Type(i) == edm.TypeGuid {
			wantMore = append(wantMore, words[0], 0)
			words = words[1:]
		}
		if !slices.Equal(got, want) || !slices.Equal(more, wantMore) {
			t.Fatalf("column %d of a %v: %v and %v, want %v and %v", i, s.Type(i), got, more, want, wantMore)
		}
	}
}

func TestShapeRoundTrip(t *testing.T) {
	race.SkipOneGoroutine(t)
	rnd := rand.New(rand.NewPCG(seed, 3))
	for n := range MaxProperties + 1 {
		s := NewShape(randomProps(rnd, n, 4, true))
		b := AppendShape(nil, s)
		got, rest, err := DecodeShape(append(b, "rest"...))
		if err != nil || string(rest) != "rest" {
			t.Fatalf("%d properties: rest %q, %v", n, rest, err)
		}
		if diff := cmp.Diff(partsOf(s), partsOf(got), cmp.AllowUnexported(field{})); diff != "" {
			t.Fatalf("%d properties: -encoded +decoded\n%s", n, diff)
		}
		if got.MemBytes() < 32*n {
			t.Fatalf("%d properties take %d bytes", n, got.MemBytes())
		}
	}
}

func TestShapeMatches(t *testing.T) {
	n, text := edm.Int32(1), edm.String("x")
	s := NewShape(edm.Properties{{Name: "a", Value: n}, {Name: "b", Value: text}})
	for _, c := range []struct {
		name  string
		props edm.Properties
		want  bool
	}{
		{"same", edm.Properties{{Name: "a", Value: n}, {Name: "b", Value: text}}, true},
		{"null after", edm.Properties{{Name: "a", Value: n}, {Name: "b", Value: text}, {Name: "c"}}, true},
		{"other order", edm.Properties{{Name: "b", Value: text}, {Name: "a", Value: n}}, false},
		{"other type", edm.Properties{{Name: "a", Value: edm.Int64(1)}, {Name: "b", Value: text}}, false},
		{"other name", edm.Properties{{Name: "a", Value: n}, {Name: "B", Value: text}}, false},
		{"fewer", edm.Properties{{Name: "a", Value: n}}, false},
		{"more", edm.Properties{{Name: "a", Value: n}, {Name: "b", Value: text}, {Name: "c", Value: n}}, false},
		{"null instead", edm.Properties{{Name: "a", Value: n}, {Name: "b"}}, false},
		{"none", nil, false},
	} {
		if got := s.Matches(c.props); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// TestShapeCopiesNames checks that a shape keeps no reference to a request.
func TestShapeCopiesNames(t *testing.T) {
	b := AppendShape(nil, NewShape(edm.Properties{{Name: "abc", Value: edm.Int32(1)}}))
	s, _, err := DecodeShape(b)
	clear(b)
	if err != nil || s.Name(0) != "abc" {
		t.Errorf("name %q after its source changed, %v", s.Name(0), err)
	}
}

func TestDecodeShapeRefuses(t *testing.T) {
	long := string(bytes.Repeat([]byte{'x'}, 766))
	for _, c := range []struct {
		name, src string
		off       int64
	}{
		{"empty", "", 0},
		{"header cut", "\x01", 1},
		{"too many", "\xfd\x00", 0},
		{"property missing", "\x01\x00", 2},
		{"property cut", "\x01\x00\x04\x01", 2},
		{"type 0", "\x01\x00\x00\x01\x00a", 2},
		{"type 9", "\x01\x00\x09\x01\x00a", 2},
		{"no name", "\x01\x00\x04\x00\x00", 3},
		{"name cut", "\x01\x00\x04\x02\x00a", 3},
		{"name too long", "\x01\x00\x04\xfe\x02" + long, 3},
		{"name is not UTF-8", "\x01\x00\x04\x01\x00\xff", 5},
		{"name twice", "\x02\x00\x04\x01\x00a\x05\x01\x00a", 0},
		{"name twice in a long shape", "\x12\x00" + strings.Repeat("\x04\x01\x00a", 18), 0},
	} {
		_, _, err := DecodeShape([]byte(c.src))
		var damage *corrupt.Error
		if !errors.As(err, &damage) || damage.Offset != c.off {
			t.Errorf("%s: %v, want damage at %d", c.name, err, c.off)
		}
	}
}

// TestCheckValuesRefuses damages the sample in each way on which a Row would fail.
func TestCheckValuesRefuses(t *testing.T) {
	sample := NewShape(sampleProps())
	values, _ := AppendValues(nil, sample, sampleProps())
	wide := NewShape(wideProps())
	wideValues, _ := AppendValues(nil, wide, wideProps())
	at := func(s *Shape, name string, w int) int { return int(s.fields[s.Index(name)].off[w]) }
	for _, c := range []struct {
		name   string
		s      *Shape
		wide   bool
		values []byte
		off    int
	}{
		{"fixed section cut", sample, false, values[:66], 66},
		{"variable section cut", sample, false, values[:len(values)-1], at(sample, "Payload", 0)},
		{"bytes after", sample, false, append(values[:len(values):len(values)], 0), len(values)},
		{"Boolean of 2", sample, false, with(values, at(sample, "Online", 0), 2), at(sample, "Online", 0)},
		{"DateTime below", sample, false, with(values, at(sample, "Measured", 0)+7, 0x80), at(sample, "Measured", 0)},
		{"DateTime above", sample, false, with(values, at(sample, "Measured", 0)+7, 0x7F), at(sample, "Measured", 0)},
		{"ends fall", sample, false, with(values, at(sample, "Model", 0), 1), at(sample, "Model", 0)},
		{"end too great", sample, false, with(values, at(sample, "Model", 0)+1, 9), at(sample, "Model", 0)},
		{"String is not UTF-8", sample, false, with(values, 67, 0xFF), 67},
		{"wide without need", sample, true, append(bytes.Clone(values), make([]byte, 10)...), 77},
		{"narrow and too long", wide, false, wideValues, 10},
		{"wide end too great", wide, true, with(wideValues, at(wide, "b", 1)+3, 1), at(wide, "b", 1)},
	} {
		err := CheckValues(c.s, c.wide, c.values)
		var damage *corrupt.Error
		if !errors.As(err, &damage) || damage.Offset != int64(c.off) {
			t.Errorf("%s: %v, want damage at %d", c.name, err, c.off)
		}
	}
}

// with returns a copy of b whose byte i is c.
func with(b []byte, i int, c byte) []byte {
	b = bytes.Clone(b)
	b[i] = c
	return b
}

func TestAppendValuesPanicsOnAnotherShape(t *testing.T) {
	s := NewShape(edm.Properties{{Name: "a", Value: edm.Int32(1)}, {Name: "b", Value: edm.Int32(1)}})
	for name, props := range map[string]edm.Properties{
		"fewer":      {{Name: "a", Value: edm.Int32(1)}},
		"more":       {{Name: "a", Value: edm.Int32(1)}, {Name: "b", Value: edm.Int32(1)}, {Name: "c", Value: edm.Int32(1)}},
		"other type": {{Name: "a", Value: edm.Int32(1)}, {Name: "b", Value: edm.Int64(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			AppendValues(nil, s, props)
		})
	}
}

func TestRowsDoNotAllocate(t *testing.T) {
	props := sampleProps()
	s := NewShape(props)
	values, wide := AppendValues(nil, s, props)
	key := AppendKey(nil, 16, "p\U0001F600", "r")
	entry := AppendEntry(nil, Entry{Kind: KindPut, Shape: 1, Key: key, Values: values})
	buf := make([]byte, 0, 512)
	var r Row
	var sum uint64
	for name, fn := range map[string]func(){
		"Row": func() {
			r.Reset(key, 1, s, wide, values)
			var row edm.Row = &r
			for i := range row.Len() {
				name, v := row.At(i)
				w, _ := row.Lookup(name)
				sum += v.Word() + uint64(len(w.Bytes()))
			}
			buf = row.AppendRow(row.AppendPartition(buf[:0]))
		},
		"AppendValues": func() { buf, _ = AppendValues(buf[:0], s, props) },
		"Matches":      func() { _ = s.Matches(props) },
		"CheckValues":  func() { _ = CheckValues(s, wide, values) },
		"DecodeEntry":  func() { _, _, _ = DecodeEntry(entry) },
		"AppendEntry":  func() { buf = AppendEntry(buf[:0], Entry{Kind: KindPut, Shape: 1, Key: key, Values: values}) },
		"AppendShape":  func() { buf = AppendShape(buf[:0], s) },
	} {
		if n := testing.AllocsPerRun(100, fn); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
