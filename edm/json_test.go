package edm_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
)

// everyType returns an entity with the values of each type that are most likely to
// change on their way through JSON.
func everyType() edm.Entity {
	e := edm.Entity{Key: edm.Key{Partition: "p<&>\"", Row: ""}, Timestamp: 133_514_496_000_000_001}
	add := func(values ...edm.Value) {
		for _, v := range values {
			e.Properties = append(e.Properties,
				edm.Property{Name: "P" + string(rune('a'+len(e.Properties)/26)) + string(rune('a'+len(e.Properties)%26)), Value: v})
		}
	}
	add(edm.String(""), edm.String("\x00\t\r\n<&>\u2028\u8868\U0001F600\uffff\ufffd\\\""), edm.String("2020-01-01T00:00:00Z"), edm.String("NaN"))
	add(edm.Binary(nil), edm.Binary([]byte{0, 1, 2, 255}))
	add(edm.Boolean(true), edm.Boolean(false))
	add(edm.Int32(0), edm.Int32(math.MinInt32), edm.Int32(math.MaxInt32))
	add(edm.Int64(0), edm.Int64(5), edm.Int64(math.MinInt64), edm.Int64(math.MaxInt64), edm.Int64(1<<53+1))
	add(edm.Double(0), edm.Double(math.Copysign(0, -1)), edm.Double(1), edm.Double(1e21), edm.Double(1e-9), edm.Double(0.1),
		edm.Double(math.MaxFloat64), edm.Double(math.SmallestNonzeroFloat64), edm.Double(1<<53), edm.Double(math.NaN()),
		edm.Double(math.Inf(1)), edm.Double(math.Inf(-1)))
	add(edm.DateTime(edm.MinTicks), edm.DateTime(edm.MaxTicks), edm.DateTime(1))
	add(edm.Guid(edm.GUID{}), edm.Guid(edm.GUID{1, 255, 15: 9}))
	return e
}

func TestEntityJSON(t *testing.T) {
	e := edm.Entity{
		Key: edm.Key{Partition: "Ada", Row: "<1>"},
		Properties: edm.Properties{
			{Name: "Title", Value: edm.String("Größe")},
			{Name: "Pages", Value: edm.Int32(12)},
			{Name: "Price", Value: edm.Double(5)},
			{Name: "Sold", Value: edm.Int64(9000000000)},
			{Name: "Out", Value: edm.DateTime(1)},
			{Name: "In", Value: edm.Boolean(true)},
			{Name: "Gone"},
			{Name: "Id", Value: edm.Guid(edm.GUID{0xa4})},
			{Name: "Raw", Value: edm.Binary([]byte{0, 1, 2, 255})},
			{Name: "Inf", Value: edm.Double(math.Inf(-1))},
			{Name: "NaN", Value: edm.Double(math.NaN())},
		},
	}
	const properties = `"Title":"Größe","Pages":12,"Price":5.0,"Sold@odata.type":"Edm.Int64","Sold":"9000000000",` +
		`"Out@odata.type":"Edm.DateTime","Out":"1601-01-01T00:00:00.0000001Z","In":true,` +
		`"Id@odata.type":"Edm.Guid","Id":"a4000000-0000-0000-0000-000000000000","Raw@odata.type":"Edm.Binary","Raw":"AAEC/w==",` +
		`"Inf@odata.type":"Edm.Double","Inf":"-Infinity","NaN@odata.type":"Edm.Double","NaN":"NaN"}`
	stamped := e
	stamped.Timestamp = edm.MaxTicks
	for _, c := range []struct {
		name string
		in   json.Marshaler
		want string
	}{
		{"entity", e, `{"PartitionKey":"Ada","RowKey":"<1>",` + properties},
		{"pointer", &e, `{"PartitionKey":"Ada","RowKey":"<1>",` + properties},
		{"Timestamp", stamped, `{"PartitionKey":"Ada","RowKey":"<1>","Timestamp":"9999-12-31T23:59:59.9999999Z",` + properties},
		{"properties", e.Properties, `{` + properties},
		{"no properties", edm.Properties(nil), `{}`},
		{"null alone", edm.Properties{{Name: "a"}}, `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.in.MarshalJSON()
			if err != nil || string(got) != c.want {
				t.Errorf("got %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

func TestEntityJSONRoundTrip(t *testing.T) {
	e := everyType()
	text, err := json.Marshal(map[string]any{"entity": e, "properties": e.Properties})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Entity     edm.Entity     `json:"entity"`
		Properties edm.Properties `json:"properties"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if d := cmp.Diff(e, got.Entity); d != "" {
		t.Errorf("%s (-want +got):\n%s", text, d)
	}
	if d := cmp.Diff(e.Properties, got.Properties); d != "" {
		t.Errorf("%s (-want +got):\n%s", text, d)
	}
}

func TestEntityUnmarshalJSON(t *testing.T) {
	for _, c := range []struct {
		name, in string // in: the members beside the keys
		want     edm.Value
	}{
		{"string", `"a":"x"`, edm.String("x")},
		{"string like a date", `"a":"2020-01-01T00:00:00Z"`, edm.String("2020-01-01T00:00:00Z")},
		{"surrogate pair", `"a":"\ud83d\ude00\\ud800"`, edm.String("\U0001F600\\ud800")},
		{"integer", `"a":-7`, edm.Int32(-7)},
		{"minus zero", `"a":-0`, edm.Int32(0)},
		{"integer beyond Int32", `"a":2147483648`, edm.Double(2147483648)},
		{"decimal", `"a":7.0`, edm.Double(7)},
		{"exponent", `"a":7e0`, edm.Double(7)},
		{"Boolean", `"a":true`, edm.Boolean(true)},
		{"null", `"a":null`, edm.Value{}},
		{"null of an unknown type", `"a@odata.type":"Edm.Other","a":null`, edm.Value{}},
		{"annotation alone", `"a@odata.type":"Edm.Int64"`, edm.Value{}},
		{"annotation before", `"a@odata.type":"Edm.Int64","a":"7"`, edm.Int64(7)},
		{"annotation after", `"a":"7","a@odata.type":"Edm.Int64"`, edm.Int64(7)},
		{"Int64 as a number", `"a@odata.type":"Edm.Int64","a":7`, edm.Int64(7)},
		{"Int32 as a string", `"a@odata.type":"Edm.Int32","a":"-007"`, edm.Int32(-7)},
		{"Boolean as a string", `"a@odata.type":"Edm.Boolean","a":"False"`, edm.Boolean(false)},
		{"Double as a string", `"a@odata.type":"Edm.Double","a":"+.5"`, edm.Double(0.5)},
		{"Double as an integer", `"a@odata.type":"Edm.Double","a":7`, edm.Double(7)},
		{"infinity", `"a@odata.type":"Edm.Double","a":"Infinity"`, edm.Double(math.Inf(1))},
		{"Guid in capitals", `"a@odata.type":"Edm.Guid","a":"A4000000-0000-0000-0000-000000000000"`, edm.Guid(edm.GUID{0xa4})},
		{"DateTime with an offset", `"a@odata.type":"Edm.DateTime","a":"1601-01-01T01:00:00+01:00"`, edm.DateTime(0)},
		{"Binary in two lines", `"a@odata.type":"Edm.Binary","a":"AAEC\n/w==\r\n"`, edm.Binary([]byte{0, 1, 2, 255})},
		{"metadata", `"odata.etag":"x","odata.other":[{"a":1}],"a@odata.navigationLink":{},"a":1`, edm.Int32(1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e edm.Entity
			if err := json.Unmarshal([]byte(`{"RowKey":"r",`+c.in+`,"PartitionKey":"p"}`), &e); err != nil {
				t.Fatal(err)
			}
			want := edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}}
			if !c.want.IsNull() {
				want.Properties = edm.Properties{{Name: "a", Value: c.want}}
			}
			if d := cmp.Diff(want, e); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.in, d)
			}
			var p edm.Properties
			if err := json.Unmarshal([]byte(`{"RowKey":5,`+c.in+`}`), &p); err != nil || !cmp.Equal(p, want.Properties) {
				t.Errorf("properties of %s: got %#v, %v, want %#v", c.in, p, err, want.Properties)
			}
		})
	}
	var e edm.Entity
	if err := json.Unmarshal([]byte(`{"Timestamp":"1601-01-01T00:00:01Z","PartitionKey":"p","RowKey":"r"}`), &e); err != nil || e.Timestamp != 10_000_000 {
		t.Errorf("Timestamp: got %d, %v", e.Timestamp, err)
	}
	if err := json.Unmarshal([]byte(`null`), &e); err != nil || e.Timestamp != 10_000_000 {
		t.Errorf("null: got %+v, %v, want no change", e, err)
	}
}

func TestEntityUnmarshalJSONErrors(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"array", `[]`, "want an object"},
		{"no PartitionKey", `{"RowKey":"r"}`, "PartitionKey is missing"},
		{"null RowKey", `{"RowKey":null,"PartitionKey":"p"}`, "RowKey is missing"},
		{"RowKey is a number", `{"PartitionKey":"p","RowKey":1}`, `member "RowKey": a key is a string`},
		{"RowKey has a type", `{"PartitionKey":"p","RowKey":"1","RowKey@odata.type":"Edm.Int32"}`, `member "RowKey": a key is a string`},
		{"duplicate", `{"a":1,"a":1}`, `member "a": given more than once`},
		{"duplicate annotation", `{"a@odata.type":"Edm.Int32","a@odata.type":"Edm.Int32"}`, `member "a": given more than once`},
		{"nested", `{"a":{}}`, `member "a": want a string`},
		{"annotation is a number", `{"a@odata.type":4}`, `member "a": the type of a property is a string`},
		{"unknown type", `{"PartitionKey":"p","RowKey":"r","a":1,"a@odata.type":"Edm.Decimal"}`, `member "a": unknown type "Edm.Decimal"`},
		{"number for a String", `{"PartitionKey":"p","RowKey":"r","a":1,"a@odata.type":"Edm.String"}`, `member "a": want a string`},
		{"decimal for an Int64", `{"PartitionKey":"p","RowKey":"r","a":1.0,"a@odata.type":"Edm.Int64"}`, `member "a": want a whole number`},
		{"Boolean for an Int32", `{"PartitionKey":"p","RowKey":"r","a":true,"a@odata.type":"Edm.Int32"}`, `member "a": want a whole number`},
		{
			"too large for an Int32", `{"PartitionKey":"p","RowKey":"r","a":2147483648,"a@odata.type":"Edm.Int32"}`,
			`member "a": "2147483648": want a whole number`,
		},
		{"plus sign", `{"PartitionKey":"p","RowKey":"r","a":"+1","a@odata.type":"Edm.Int64"}`, `member "a": "+1": want a whole number`},
		{"hexadecimal Double", `{"PartitionKey":"p","RowKey":"r","a":"0x1p0","a@odata.type":"Edm.Double"}`, `member "a": "0x1p0": want a number`},
		{"too large for a Double", `{"PartitionKey":"p","RowKey":"r","a":1e400}`, `member "a": "1e400": want a number`},
		{"other Boolean", `{"PartitionKey":"p","RowKey":"r","a":"fal\u017fe","a@odata.type":"Edm.Boolean"}`, `want true or false`},
		{"base64 without padding", `{"PartitionKey":"p","RowKey":"r","a":"AA\n=","a@odata.type":"Edm.Binary"}`, `want a string of base64`},
		{"base64 with trailing bits", `{"PartitionKey":"p","RowKey":"r","a":"AB==","a@odata.type":"Edm.Binary"}`, `want a string of base64`},
		{"DateTime out of range", `{"PartitionKey":"p","RowKey":"r","a":"1600-12-31T23:59:59Z","a@odata.type":"Edm.DateTime"}`, `member "a": the DateTime`},
		{"half of a pair", `{"a":"\ud83d"}`, "half of a surrogate pair"},
		{"second half of a pair", `{"a":"\ude00\ud83d"}`, "half of a surrogate pair"},
		{"not UTF-8", "{\"a\":\"\xff\"}", "not UTF-8"},
		{"Timestamp", `{"Timestamp":5,"PartitionKey":"p","RowKey":"r"}`, `member "Timestamp": want a string`},
		{"cut short", `{"a":1`, "JSON of an entity: "},
		{"more text", `{}{}`, "text after the object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := edm.Entity{Timestamp: 1}
			err := e.UnmarshalJSON([]byte(c.in))
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, edm.ErrInvalid) {
				t.Errorf("%s: got %v, want an error with %q", c.in, err, c.want)
			}
			if e.Timestamp != 1 || e.Properties != nil {
				t.Errorf("%s: the entity changed to %+v", c.in, e)
			}
		})
	}
}

func TestEntityMarshalJSONErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		in   edm.Entity
		want edm.Rule
	}{
		{"key", edm.Entity{Key: edm.Key{Row: "\xff"}}, edm.RuleUTF8},
		{"name like an annotation", one("a@odata.type", edm.String("Edm.Int32")), edm.RulePropertyName},
		{"reserved name", one("RowKey", edm.String("r")), edm.RulePropertyName},
		{"String that is not UTF-8", one("a", edm.String("\xff")), edm.RuleUTF8},
		{"unknown type", one("a", edm.Fixed(9, 0)), edm.RuleRange},
		{"Timestamp of the zero time", edm.Entity{Timestamp: edm.TicksOf(time.Time{})}, edm.RuleRange},
		{"Timestamp after the last year", edm.Entity{Timestamp: edm.MaxTicks + 1}, edm.RuleRange},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := json.Marshal(c.in)
			if got := brokenRule(t, err); got != c.want {
				t.Errorf("broke %v (%v), want %v", got, err, c.want)
			}
		})
	}
}

// FuzzEntityJSON parses a text, and writes and parses each entity again.
func FuzzEntityJSON(f *testing.F) {
	text, err := json.Marshal(everyType())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"PartitionKey":"\ud83d\ude00","RowKey":"","a":2147483648,"b":"1","b@odata.type":"Edm.Int64","odata.x":[{}]}`))
	f.Add([]byte(`{"PartitionKey":"p","RowKey":"r","d@odata.type":"Edm.Double","d":"NaN","e":-0.0,"f":1E400}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		var e edm.Entity
		if err := e.UnmarshalJSON(src); err != nil {
			if !errors.Is(err, edm.ErrInvalid) {
				t.Fatalf("%q: %v is not ErrInvalid", src, err)
			}
			return
		}
		text, err := e.MarshalJSON()
		if err != nil {
			if edm.CheckEntity(&e) == nil {
				t.Fatalf("%q gives a valid entity that has no JSON: %v", src, err)
			}
			return
		}
		var again edm.Entity
		if err := again.UnmarshalJSON(text); err != nil || !cmp.Equal(e, again) {
			t.Fatalf("%q is written as %q, which is read as %+v, %v, want %+v", src, text, again, err, e)
		}
	})
}
