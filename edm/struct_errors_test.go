package edm_test

import (
	"encoding/json"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
)

type (
	half   int // implements one interface of two
	logged struct{ X int }
	dated  struct {
		netip.Addr // has both interfaces
		X          int
	}
	node   struct{ Next *node }
	loop   struct{ *loop }
	outer  struct{ *inner }
	inner  struct{ X int }
	Loop   struct{ Middle }
	Middle struct{ *Loop }
	namesA struct{ Name string }
	namesB struct{ Name string }
	PartOf struct {
		Partition string `table:",pk"`
	}
	nilKey struct {
		*PartOf
		Row string `table:",rk"`
	}
)

func (half) MarshalText() ([]byte, error) { return nil, nil }

func (logged) MarshalText() ([]byte, error) { return nil, nil }

// TestStructErrors checks the errors of types that cannot be converted, which name
// the field and its type.
func TestStructErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		v     any // a pointer to a struct
		wants []string
	}{
		{"unsupported", new(struct{ Tags []string }), []string{".Tags ([]string)", "no Edm type", "TextMarshaler"}},
		{"struct", new(struct{ At struct{ X int } }), []string{".At (struct", "no Edm type"}},
		{"interface", new(struct{ Any any }), []string{".Any (interface {})", "no Edm type"}},
		{"map", new(struct{ M map[string]int }), []string{".M (map[string]int)"}},
		{"complex", new(struct{ C complex128 }), []string{".C (complex128)"}},
		{"pointer to pointer", new(struct{ P **int }), []string{".P (**int)"}},
		{"recursive", new(node), []string{"edm_test.node.Next (*edm_test.node)"}},
		{"embeds a pointer to itself", new(loop), []string{"edm_test.loop.loop", "not exported"}},
		{"embeds itself", new(Loop), []string{"type edm_test.Loop: it embeds itself"}},
		{"embedded pointer not exported", new(outer), []string{"edm_test.outer.inner (*edm_test.inner)", "not exported"}},
		{"one interface for text", new(struct{ H half }), []string{".H (edm_test.half)", "only one of"}},
		{"two fields with a name", new(struct {
			A int `table:"Name"`
			B int `table:"Name"`
		}), []string{".A (int, Edm.Int64)", "same name or option as", ".B;"}},
		{"two embedded fields with a name", new(struct {
			namesA
			namesB
		}), []string{".namesA.Name (string, Edm.String)", ".namesB.Name;"}},
		{"two keys", new(struct {
			A string `table:",pk"`
			B string `table:",pk"`
		}), []string{".A (string, Edm.String)", "same name or option as", ".B;"}},
		{"two fields for other properties", new(struct {
			A edm.Properties `table:",rest"`
			B edm.Properties `table:",rest"`
		}), []string{".A (edm.Properties)", "same name or option as", ".B;"}},
		{"bad name", new(struct {
			A int `table:"a-b"`
		}), []string{".A (int)", `property "a-b"`, "identifier"}},
		{"embedded, not exported, with a method for text", new(struct{ logged }), []string{".logged (edm_test.logged)", "not exported", "hides"}},
		{"embedded, not exported, with methods of its field", new(struct{ dated }), []string{".dated (edm_test.dated)", "not exported", "hides"}},
		{"embedded pointer, not exported, with methods for text", new(struct{ *dated }), []string{".dated (*edm_test.dated)", "not exported", "hides"}},
		{"unknown option", new(struct {
			A int `table:",omitzero"`
		}), []string{".A (int)", `unknown option "omitzero"`, "omitempty, pk, rk"}},
		{"two options", new(struct {
			A string `table:",pk,rk"`
		}), []string{".A (string)", "more than one"}},
		{"name of a key", new(struct {
			A string `table:"Name,pk"`
		}), []string{".A (string)", `the name "Name"`}},
		{"omitempty of a key", new(struct {
			A string `table:",pk,omitempty"`
		}), []string{".A (string)", "for properties only"}},
		{"number as a key", new(struct {
			A int `table:",rk"`
		}), []string{".A (int, Edm.String)", "key is a string", "ordered as text"}},
		{"pointer as a key", new(struct {
			A *string `table:",rk"`
		}), []string{".A (*string, Edm.String)"}},
		{"text as the Timestamp", new(struct{ Timestamp string }), []string{".Timestamp (string", "time.Time or edm.Ticks"}},
		{"number as the ETag", new(struct {
			A int `table:",etag"`
		}), []string{".A (int)", "edm.ETag"}},
		{"map for the rest", new(struct {
			A map[string]any `table:",rest"`
		}), []string{".A (map[string]interface {})", "edm.Properties"}},
		{"tag, not exported", new(struct {
			a int `table:"A"`
		}), []string{".a (int)", "not exported"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, marshal := edm.Marshal(c.v)
			unmarshal := edm.Unmarshal((&edm.Entity{}).View(), c.v)
			for _, err := range []error{marshal, unmarshal} {
				for _, want := range c.wants {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("got %v, want %q in it", err, want)
					}
				}
			}
		})
	}
}

func TestMarshalErrors(t *testing.T) {
	type withTime struct {
		edm.Key
		T time.Time
	}
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		name  string
		v     any
		wants []string
	}{
		{"nil", nil, []string{"marshal <nil>"}},
		{"nil pointer", (*all)(nil), []string{"marshal *edm_test.all"}},
		{"no struct", 5, []string{"marshal int"}},
		{"too many pointers", new(new(new(all))), []string{"marshal ***edm_test.all"}},
		{"slice", []all{{}}, []string{"marshal []edm_test.all"}},
		{"no keys", inner{}, []string{"marshal edm_test.inner", `table:",pk"`, `table:",rk"`}},
		{"one key", PartOf{}, []string{`table:",rk"`}},
		{"key in a nil pointer", nilKey{}, []string{"edm_test.nilKey.PartOf.Partition (string, Edm.String)", "nil"}},
		{"too large", struct {
			edm.Key
			N uint64
		}{N: 1 << 63}, []string{".N (uint64, Edm.Int64)", "9223372036854775808"}},
		{"zero time", withTime{}, []string{"withTime.T (time.Time, Edm.DateTime)", "0001-01-01", "1601", "omitempty"}},
		{"early time", withTime{T: year(1600)}, []string{"withTime.T (time.Time, Edm.DateTime)", "1600-01-01"}},
		{"late time", withTime{T: year(10000)}, []string{"10000-01-01"}},
		{"ticks", struct {
			edm.Key
			T *edm.Ticks
		}{T: new(edm.Ticks(-1))}, []string{".T (*edm.Ticks, Edm.DateTime)", "-1"}},
		{"text", struct {
			edm.Key
			J *json.Number
			H json.Marshaler `table:"-"`
			A bad
		}{}, []string{".A (edm_test.bad, Edm.String)", "no text"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := edm.Marshal(c.v)
			for _, want := range c.wants {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			if !reflect.DeepEqual(e, edm.Entity{}) {
				t.Errorf("got the entity %v beside the error", e)
			}
		})
	}
}

// bad has no text.
type bad struct{}

func (bad) MarshalText() ([]byte, error) { return nil, errNoText }

func (*bad) UnmarshalText([]byte) error { return errNoText }

var errNoText = &json.UnsupportedValueError{Str: "no text"}

// TestUnmarshalMatrix reads a value of each type into each field of all. The fields
// that accept it are listed by the type.
func TestUnmarshalMatrix(t *testing.T) {
	integers := "Int Int8 Int16 Int32 Int64 Uint Uint8 Uint16 Uint32 Uint64 Level Wait Pointer"
	for _, c := range []struct {
		value  edm.Value
		fields string
	}{
		{edm.Boolean(true), "Bool"},
		{edm.Int32(100), integers + " Float32 Float64"},
		{edm.Int64(100), integers},
		{edm.Int32(-1), "Int Int8 Int16 Int32 Int64 Level Wait Pointer Float32 Float64"},
		{edm.Int32(128), strings.ReplaceAll(integers, "Int8 ", "") + " Uint8 Float32 Float64"},
		{edm.Int64(math.MaxInt64), "Int Int64 Uint Uint64 Wait"},
		{edm.Int64(math.MinInt64), "Int Int64 Wait"},
		{edm.Int64(math.MaxUint32), "Int Int64 Uint Uint32 Uint64 Wait"},
		{edm.Double(100), "Float32 Float64"},
		{edm.Double(math.MaxFloat64), "Float64"},
		{edm.Double(math.NaN()), "Float32 Float64"},
		{edm.String("100"), "String Labels Number Big"},
		{edm.String("10.0.0.1"), "String Labels Address"},
		{edm.String(""), "String Labels Address"},
		{edm.Binary([]byte{1, 2, 3, 4}), "Bytes Raw Digest"},
		{edm.Binary(make([]byte, 16)), "Bytes Raw"},
		{edm.Binary(nil), "Bytes Raw"},
		{edm.DateTime(5), "Time Ticks"},
		{edm.Guid(edm.GUID{1}), "GUID UUID"},
		{edm.Value{}, "Value " + integers + " Bool Float32 Float64 String Bytes Digest GUID UUID Time Ticks Address Labels Number Raw Big"},
	} {
		accepted := append(strings.Fields(c.fields), "Value")
		for i, f := range reflect.VisibleFields(reflect.TypeFor[all]()) {
			if i < 3 { // the keys
				continue
			}
			e := edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}, Properties: edm.Properties{{Name: f.Name, Value: c.value}}}
			var a all
			err := edm.Unmarshal(e.View(), &a)
			if want := slices.Contains(accepted, f.Name); (err == nil) != want {
				t.Errorf("%#v into %s: %v, want accepted %v", c.value, f.Name, err, want)
			}
			if err == nil {
				continue
			}
			for _, want := range []string{`entity with PartitionKey "p" and RowKey "r": field edm_test.all.` + f.Name, f.Type.String()} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			if !reflect.ValueOf(a).FieldByIndex(f.Index).IsZero() && f.Name != "Number" {
				t.Errorf("%#v into %s: the field has %v beside the error", c.value, f.Name, a)
			}
		}
	}
}

func TestUnmarshalTarget(t *testing.T) {
	row := (&edm.Entity{}).View()
	var nilPointer *all
	for _, v := range []any{nil, all{}, nilPointer, &nilPointer, new(int), &[]all{}} {
		if err := edm.Unmarshal(row, v); err == nil || !strings.Contains(err.Error(), "want a pointer to a struct, not nil") {
			t.Errorf("%T: %v", v, err)
		}
	}
	var key struct {
		ID netip.Addr `table:",rk"`
	}
	if err := edm.Unmarshal((&edm.Entity{Key: edm.Key{Row: "x"}}).View(), &key); err == nil || !strings.Contains(err.Error(), ".ID (netip.Addr, Edm.String)") {
		t.Errorf("a bad key: %v", err)
	}
}

func TestMarshalNil(t *testing.T) {
	var nilPointer *all
	for _, v := range []any{nil, nilPointer, &nilPointer} {
		if _, err := edm.Marshal(v); err == nil || !strings.Contains(err.Error(), "want a struct or a pointer to one, not nil") {
			t.Errorf("%T: %v", v, err)
		}
	}
}
