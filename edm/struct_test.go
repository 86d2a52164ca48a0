package edm_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
)

type (
	level  int16
	labels []string // text by a pointer
	digest [4]byte
	uuid   [16]byte // of a library: a Guid, and as a key its text
)

func (l labels) MarshalText() ([]byte, error) { return []byte(strings.Join(l, "+")), nil }

func (l *labels) UnmarshalText(text []byte) error {
	*l = nil
	if len(text) > 0 {
		*l = strings.Split(string(text), "+")
	}
	return nil
}

func (u uuid) MarshalText() ([]byte, error) { return edm.GUID(u).MarshalText() }

func (u *uuid) UnmarshalText(text []byte) error { return (*edm.GUID)(u).UnmarshalText(text) }

// all has a field of each convertible type.
type all struct {
	edm.Key
	Bool    bool
	Int     int
	Int8    int8
	Int16   int16
	Int32   int32
	Int64   int64
	Uint    uint
	Uint8   uint8
	Uint16  uint16
	Uint32  uint32
	Uint64  uint64
	Float32 float32
	Float64 float64
	String  string
	Bytes   []byte
	Digest  digest
	GUID    edm.GUID
	UUID    uuid
	Time    time.Time
	Ticks   edm.Ticks
	Value   edm.Value
	Level   level
	Wait    time.Duration
	Address netip.Addr
	Labels  labels
	Number  big.Int
	Raw     json.RawMessage
	Pointer *level
	Big     *big.Int
}

var noon = time.Date(2024, 2, 3, 12, 0, 0, 123456700, time.UTC)

func oneAll() all {
	l := level(-7)
	a := all{
		Key: edm.Key{Partition: "p", Row: "r"}, Bool: true,
		Int: math.MinInt, Int8: -8, Int16: -16, Int32: math.MinInt32, Int64: math.MaxInt64,
		Uint: math.MaxInt32, Uint8: 255, Uint16: 65535, Uint32: math.MaxUint32, Uint64: 64,
		Float32: 1.5, Float64: math.Inf(-1), String: "text", Bytes: []byte{1, 2}, Digest: digest{3, 4}, GUID: edm.GUID{5}, UUID: uuid{6},
		Time: noon, Ticks: 7, Value: edm.Int32(8), Level: 9, Wait: time.Second, Address: netip.MustParseAddr("10.0.0.1"),
		Labels: labels{"a", "b"}, Raw: json.RawMessage("{}"), Pointer: &l, Big: big.NewInt(12),
	}
	a.Number.SetInt64(1 << 40)
	return a
}

// sameTypes compares the types that have fields which are not exported.
var sameTypes = cmp.Options{
	cmp.Comparer(func(x, y big.Int) bool { return x.Cmp(&y) == 0 }),
	cmp.Comparer(func(x, y netip.Addr) bool { return x == y }),
}

func TestStructTypes(t *testing.T) {
	a := oneAll()
	want := edm.Entity{Key: a.Key, Properties: edm.Properties{
		{Name: "Bool", Value: edm.Boolean(true)},
		{Name: "Int", Value: edm.Int64(math.MinInt)},
		{Name: "Int8", Value: edm.Int32(-8)},
		{Name: "Int16", Value: edm.Int32(-16)},
		{Name: "Int32", Value: edm.Int32(math.MinInt32)},
		{Name: "Int64", Value: edm.Int64(math.MaxInt64)},
		{Name: "Uint", Value: edm.Int64(math.MaxInt32)},
		{Name: "Uint8", Value: edm.Int32(255)},
		{Name: "Uint16", Value: edm.Int32(65535)},
		{Name: "Uint32", Value: edm.Int64(math.MaxUint32)},
		{Name: "Uint64", Value: edm.Int64(64)},
		{Name: "Float32", Value: edm.Double(1.5)},
		{Name: "Float64", Value: edm.Double(math.Inf(-1))},
		{Name: "String", Value: edm.String("text")},
		{Name: "Bytes", Value: edm.Binary([]byte{1, 2})},
		{Name: "Digest", Value: edm.Binary([]byte{3, 4, 0, 0})},
		{Name: "GUID", Value: edm.Guid(edm.GUID{5})},
		{Name: "UUID", Value: edm.Guid(edm.GUID{6})},
		{Name: "Time", Value: edm.DateTime(edm.TicksOf(noon))},
		{Name: "Ticks", Value: edm.DateTime(7)},
		{Name: "Value", Value: edm.Int32(8)},
		{Name: "Level", Value: edm.Int32(9)},
		{Name: "Wait", Value: edm.Int64(int64(time.Second))},
		{Name: "Address", Value: edm.String("10.0.0.1")},
		{Name: "Labels", Value: edm.String("a+b")},
		{Name: "Number", Value: edm.String("1099511627776")},
		{Name: "Raw", Value: edm.Binary([]byte("{}"))},
		{Name: "Pointer", Value: edm.Int32(-7)},
		{Name: "Big", Value: edm.String("12")},
	}}
	for name, v := range map[string]any{"pointer": &a, "value": a} {
		t.Run(name, func(t *testing.T) {
			got, err := edm.Marshal(v)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Fatalf("%v (-want +got):\n%s", err, diff)
			}
			if err := edm.CheckEntity(&got); err != nil {
				t.Error(err)
			}
			var back all
			if err := edm.Unmarshal(got.View(), &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(a, back, sameTypes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestStructNulls checks that the zero values of these types are no properties, and
// that Unmarshal leaves their fields as they are.
func TestStructNulls(t *testing.T) {
	type nulls struct {
		edm.Key
		Pointer *string
		Time    *time.Time
		Bytes   []byte
		Value   edm.Value
		Empty   string    `table:",omitempty"`
		None    []byte    `table:"none,omitempty"`
		Never   time.Time `table:",omitempty"`
		Zero    float64   `table:",omitempty"`
		ID      edm.GUID  `table:",omitempty"`
		Skipped chan int  `table:"-"`
		hidden  chan int
	}
	n := nulls{None: []byte{}, hidden: make(chan int)}
	e, err := edm.Marshal(n)
	if err != nil || len(e.Properties) != 0 {
		t.Errorf("got %v and %v, want no properties", e.Properties, err)
	}
	text := "default"
	full := nulls{Pointer: &text, Bytes: []byte{1}, Value: edm.Int32(1), Empty: "default", Zero: 1}
	got := full
	if err := edm.Unmarshal(e.View(), &got); err != nil || !reflect.DeepEqual(got, full) {
		t.Errorf("got %v and %v, want %v", got, err, full)
	}
	if e, err = edm.Marshal(nulls{Bytes: []byte{}}); err != nil || len(e.Properties) != 1 {
		t.Errorf("got %v and %v, want an empty Binary", e.Properties, err)
	}
}

// TestStructReserved checks the fields that are not properties.
func TestStructReserved(t *testing.T) {
	type order struct {
		Region  labels         `table:"PartitionKey,pk"`
		ID      uuid           `table:",rk"`
		Changed edm.Ticks      `table:",timestamp"`
		ETag    edm.ETag       `table:",etag"`
		Total   float64        `table:"OrderTotal"`
		Others  edm.Properties `table:",rest"`
	}
	e := edm.Entity{
		Key: edm.Key{Partition: "eu+us", Row: uuid{1}.text()}, Timestamp: 5,
		Properties: edm.Properties{{Name: "OrderTotal", Value: edm.Double(2)}, {Name: "Unknown", Value: edm.String("kept")}},
	}
	want := order{labels{"eu", "us"}, uuid{1}, 5, edm.Ticks(5).ETag(), 2, edm.Properties{{Name: "Unknown", Value: edm.String("kept")}}}
	var got order
	if err := edm.Unmarshal(e.View(), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v and %v, want %+v", got, err, want)
	}
	back, err := edm.Marshal(got)
	if diff := cmp.Diff(e, back); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	// An entity that was not stored has no Timestamp, no ETag, and here no others.
	back.Timestamp, back.Properties = 0, nil
	if err := edm.Unmarshal(back.View(), &got); err != nil || got.Changed != 0 || got.ETag != "" || got.Others != nil || got.Total != 2 {
		t.Errorf("got %+v and %v", got, err)
	}

	// The names of Azure's libraries need no tags.
	type plain struct {
		PartitionKey, RowKey string
		Timestamp            time.Time
	}
	p := plain{"p", "r", noon}
	e, err = edm.Marshal(p)
	if want := (edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}, Timestamp: edm.TicksOf(noon)}); err != nil || cmp.Diff(want, e) != "" {
		t.Errorf("got %v and %v, want %v", e, err, want)
	}
	p.Timestamp = time.Time{}.Local() // as a program shows it that was not stored
	if e, err = edm.Marshal(p); err != nil || e.Timestamp != 0 {
		t.Errorf("got %v and %v, want no Timestamp for the zero time in another zone", e, err)
	}
	p.Timestamp = noon
	e.Timestamp = edm.TicksOf(noon)
	var again plain
	if err := edm.Unmarshal(e.View(), &again); err != nil || again != p {
		t.Errorf("got %v and %v, want %v", again, err, p)
	}

	type More struct {
		Others edm.Properties `table:",rest"`
	}
	type extended struct {
		plain
		Total int32
		*More
	}
	e.Properties = edm.Properties{{Name: "Total", Value: edm.Int32(1)}}
	if got, err := edm.Marshal(extended{plain: p, Total: 1}); err != nil || cmp.Diff(e, got) != "" {
		t.Errorf("got %v and %v, want %v, because More is nil", got, err, e)
	}
}

func (u uuid) text() string { return edm.GUID(u).String() }

// TestUnmarshalCopies checks that the struct shares no memory with the row, nor with
// what its pointers pointed to.
func TestUnmarshalCopies(t *testing.T) {
	type owned struct {
		A, B    string
		Bytes   []byte
		Value   edm.Value
		Pointer *int32
		Others  edm.Properties `table:",rest"`
	}
	memory := []byte("some text")
	e := edm.Entity{Properties: edm.Properties{
		{Name: "A", Value: edm.StringBytes(memory)},
		{Name: "Bytes", Value: edm.Binary(memory)},
		{Name: "Value", Value: edm.Binary(memory)},
		{Name: "Pointer", Value: edm.Int32(2)},
		{Name: "Other", Value: edm.Binary(memory)},
		{Name: "B", Value: edm.StringBytes(memory)},
	}}
	one := int32(1)
	got := owned{Pointer: &one}
	if err := edm.Unmarshal(e.View(), &got); err != nil {
		t.Fatal(err)
	}
	clear(memory)
	v := edm.Binary([]byte("some text"))
	two := int32(2)
	want := owned{"some text", "some text", []byte("some text"), v, &two, edm.Properties{{Name: "Other", Value: v}}}
	if !reflect.DeepEqual(got, want) || one != 1 {
		t.Errorf("got %#v, want %#v; the old pointer has %d, want 1", got, want, one)
	}
}

// raw is a text that MarshalText returns without a copy.
type raw []byte

func (r raw) MarshalText() ([]byte, error) { return r, nil }

func (r *raw) UnmarshalText(text []byte) error {
	*r = append((*r)[:0], text...)
	return nil
}

// TestMarshalCopiesText changes the memory that MarshalText has returned.
func TestMarshalCopiesText(t *testing.T) {
	type owned struct {
		edm.Key
		Text raw
	}
	o := owned{Text: raw("some text")}
	e, err := edm.Marshal(o)
	clear(o.Text)
	if got, _ := e.Properties.Get("Text").Text(); err != nil || got != "some text" {
		t.Errorf("got %q and %v, want some text", got, err)
	}
}

// TestUnmarshalOrders looks up properties in several orders, with unknown ones
// between.
func TestUnmarshalOrders(t *testing.T) {
	type fields struct{ D, B, A, C int32 }
	value := map[string]int32{"A": 1, "B": 2, "C": 3, "D": 4, "a": 5, "": 6, "Z": 7}
	for _, order := range []string{"D B A C", "A B C D", "C D A B", "Z A a D Z", "", "B B", "C", "Z"} {
		var e edm.Entity
		var want fields
		for _, name := range strings.Fields(order) {
			e.Properties = append(e.Properties, edm.Property{Name: name, Value: edm.Int32(value[name])})
			if f := reflect.ValueOf(&want).Elem().FieldByName(name); f.IsValid() {
				f.SetInt(int64(value[name]))
			}
		}
		var got fields
		if err := edm.Unmarshal(e.View(), &got); err != nil || got != want {
			t.Errorf("%q: got %v and %v, want %v", order, got, err, want)
		}
	}
}

// TestStructConcurrently compiles types in several goroutines at once.
func TestStructConcurrently(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 20 {
				fields := []reflect.StructField{
					{Name: "PartitionKey", Type: reflect.TypeFor[string]()},
					{Name: "RowKey", Type: reflect.TypeFor[string]()},
					{Name: "Bytes", Type: reflect.ArrayOf(100+(n+i)%20, reflect.TypeFor[byte]())},
				}
				v := reflect.New(reflect.StructOf(fields))
				e, err := edm.Marshal(v.Interface())
				if err != nil || len(e.Properties[0].Value.Bytes()) != 100+(n+i)%20 {
					t.Errorf("got %v and %v", e, err)
				}
				if err := edm.Unmarshal(e.View(), v.Interface()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestGUIDText checks the text of a GUID that is a key, or in JSON.
func TestGUIDText(t *testing.T) {
	id := edm.GUID{0xab, 15: 1}
	text, err := json.Marshal(id)
	if err != nil || string(text) != `"ab000000-0000-0000-0000-000000000001"` {
		t.Errorf("got %s and %v", text, err)
	}
	var back edm.GUID
	if err := json.Unmarshal(text, &back); err != nil || back != id {
		t.Errorf("got %v and %v, want %v", back, err, id)
	}
	if err := back.UnmarshalText([]byte("x")); err == nil {
		t.Error("no error for a bad text")
	}
}

func TestFieldErrorIs(t *testing.T) {
	_, err := edm.Marshal(struct {
		edm.Key
		N uint64
	}{N: math.MaxUint64})
	var field *edm.FieldError
	if !errors.As(err, &field) || !errors.Is(err, edm.ErrInvalid) || errors.Is(err, edm.ErrTooLarge) {
		t.Fatalf("got %v, want a FieldError that is ErrInvalid", err)
	}
	if field.Go != reflect.TypeFor[uint64]() || field.Edm != edm.TypeInt64 || !strings.HasSuffix(field.Field, ".N") {
		t.Errorf("got %+v", field)
	}
	if brokenRule(t, err) != edm.RuleRange {
		t.Errorf("got %v, want an error of the range", err)
	}
}
