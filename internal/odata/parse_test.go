package odata_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
)

// sameBits compares values bit by bit, so that a NaN equals itself.
var sameBits = cmp.Comparer(func(a, b edm.Value) bool { return a.Equal(b) })

func one(name string, v edm.Value) edm.Properties { return edm.Properties{{Name: name, Value: v}} }

// TestParseProperties parses members between the two keys.
func TestParseProperties(t *testing.T) {
	for _, c := range []struct {
		in   string
		want edm.Properties
	}{
		{`"a":"x"`, one("a", edm.String("x"))},
		{`"a":""`, one("a", edm.String(""))},
		{`"a":true`, one("a", edm.Boolean(true))},
		{`"a":false`, one("a", edm.Boolean(false))},
		{`"a":null`, nil},
		{`"a":0`, one("a", edm.Int32(0))},
		{`"a":-0`, one("a", edm.Int32(0))},
		{`"a":2147483647`, one("a", edm.Int32(math.MaxInt32))},
		{`"a":-2147483648`, one("a", edm.Int32(math.MinInt32))},
		{`"a":2147483648`, one("a", edm.Double(2147483648))},
		{`"a":-2147483649`, one("a", edm.Double(-2147483649))},
		{`"a":123456789012345678901234567890`, one("a", edm.Double(123456789012345678901234567890))},
		{`"a":1.0`, one("a", edm.Double(1))},
		{`"a":-0.0`, one("a", edm.Double(math.Copysign(0, -1)))},
		{`"a":1e3`, one("a", edm.Double(1000))},
		{`"a":1E-3`, one("a", edm.Double(0.001))},
		{`"a@odata.type":"Edm.String","a":"x"`, one("a", edm.String("x"))},
		{`"a@odata.type":"Edm.Int64","a":"9223372036854775807"`, one("a", edm.Int64(math.MaxInt64))},
		{`"a":"-9223372036854775808","a@odata.type":"Edm.Int64"`, one("a", edm.Int64(math.MinInt64))},
		{`"a@odata.type":"Edm.Int64","a":9007199254740993`, one("a", edm.Int64(9007199254740993))},
		{`"a@odata.type":"Edm.Int32","a":"12345"`, one("a", edm.Int32(12345))},
		{`"a@odata.type":"Edm.Int32","a":7`, one("a", edm.Int32(7))},
		{`"a@odata.type":"Edm.Boolean","a":"False"`, one("a", edm.Boolean(false))},
		{`"a@odata.type":"Edm.Boolean","a":"TRUE"`, one("a", edm.Boolean(true))},
		{`"a@odata.type":"Edm.Double","a":"3.14"`, one("a", edm.Double(3.14))},
		{`"a@odata.type":"Edm.Double","a":4`, one("a", edm.Double(4))},
		{`"a@odata.type":"Edm.Double","a":"NaN"`, one("a", edm.Double(math.NaN()))},
		{`"a@odata.type":"Edm.Double","a":"Infinity"`, one("a", edm.Double(math.Inf(1)))},
		{`"a@odata.type":"Edm.Double","a":"-Infinity"`, one("a", edm.Double(math.Inf(-1)))},
		{`"a":"NaN"`, one("a", edm.String("NaN"))},
		{`"a@odata.type":"Edm.DateTime","a":"1973-10-04T00:00:00.000000Z"`, one("a", edm.DateTime(ticks(t, "1973-10-04T00:00:00Z")))},
		{`"a@odata.type":"Edm.DateTime","a":"2008-07-10T02:00:00+02:00"`, one("a", edm.DateTime(ticks(t, "2008-07-10T00:00:00Z")))},
		{`"a@odata.type":"Edm.DateTime","a":"2008-07-10T00:00:00"`, one("a", edm.DateTime(ticks(t, "2008-07-10T00:00:00Z")))},
		{`"a":"2008-07-10T00:00:00Z"`, one("a", edm.String("2008-07-10T00:00:00Z"))},
		{`"a@odata.type":"Edm.Guid","a":"A455C695-DF98-5678-AAAA-81D3367E5A34"`, one("a", edm.Guid(guid(t, "a455c695-df98-5678-aaaa-81d3367e5a34")))},
		{`"a@odata.type":"Edm.Binary","a":"AAEC/w=="`, one("a", edm.Binary([]byte{0, 1, 2, 255}))},
		{`"a@odata.type":"Edm.Binary","a":"AAEC\/w=="`, one("a", edm.Binary([]byte{0, 1, 2, 255}))},
		{`"a@odata.type":"Edm.Binary","a":"AAEC\n/w==\r\n"`, one("a", edm.Binary([]byte{0, 1, 2, 255}))},
		{`"a@odata.type":"Edm.Binary","a":""`, one("a", edm.Binary(nil))},
		{`"a@odata.type":"Edm.Int\u00364","a":"5"`, one("a", edm.Int64(5))},
		{`"a@odata.type":"Edm.Double","a":"1e-999999999"`, one("a", edm.Double(0))},
		{`"a":1e-999999999`, one("a", edm.Double(0))},
		{`"a":9007199254740993`, one("a", edm.Double(9007199254740992))},
		{`"a@odata.type":"Edm.DateTime","a":"1601-01-01T00:00:00Z"`, one("a", edm.DateTime(edm.MinTicks))},
		{`"a@odata.type":"Edm.DateTime","a":"9999-12-31T23:59:59.9999999Z"`, one("a", edm.DateTime(edm.MaxTicks))},
		{`"a@odata.type":"Edm.DateTime","a":"9999-12-31T23:59:59.99999999Z"`, one("a", edm.DateTime(edm.MaxTicks))},
		{`"a":"\ufffe\uffff"`, one("a", edm.String("\ufffe\uffff"))},
		{`"\u00e9":1,"e\u0301":2`, edm.Properties{{Name: "\u00e9", Value: edm.Int32(1)}, {Name: "e\u0301", Value: edm.Int32(2)}}},
		{
			`"a@b":1,"odata":2,"partitionkey":3,"":4`,
			edm.Properties{
				{Name: "a@b", Value: edm.Int32(1)},
				{Name: "odata", Value: edm.Int32(2)},
				{Name: "partitionkey", Value: edm.Int32(3)},
				{Name: "", Value: edm.Int32(4)},
			},
		},
		{`"a@odata.type":"Edm.Int32","a":null`, nil},
		{`"a@odata.type":"Edm.Odd","a":null`, nil},
		{`"a@odata.type":"Edm.Int32"`, nil},
		{`"\u00f4\t":"\"\\\/\b\f\n\r\t\u0041\u00f4\ua015\ud83d\ude00\u0000"`, one("\u00f4\t", edm.String("\"\\/\b\f\n\r\tA\u00f4\ua015\U0001F600\x00"))},
		{`"a":"long enough for two words é and more"`, one("a", edm.String("long enough for two words é and more"))},
		{`"Timestamp":"0001-01-01T00:00:00Z"`, nil},
		{`"Timestamp":null,"Timestamp@odata.type":"Edm.DateTime"`, nil},
		{`"Timestamp":{"a":[1,{}]}`, nil},
		{`"odata.etag":"W/\"x\"","odata.metadata":"http://h/","odata.type":1,"odata.x":[[],{"a":null}]`, nil},
		{`"a@odata.navigationLink":"x","@odata.etag":"y"`, nil},
		{`"A":1,"a":2,"ETag":"e"`, edm.Properties{{Name: "A", Value: edm.Int32(1)}, {Name: "a", Value: edm.Int32(2)}, {Name: "ETag", Value: edm.String("e")}}},
		{`"b":"1","a@odata.type":"Edm.Int64","b@odata.type":"Edm.Int64","a":"2"`, edm.Properties{{Name: "b", Value: edm.Int64(1)}, {Name: "a", Value: edm.Int64(2)}}},
	} {
		t.Run(c.in, func(t *testing.T) {
			for range 2 { // the second time with the cached names and layout
				got, err := odata.ParseEntity([]byte(`{"PartitionKey":"p",`+c.in+`,"RowKey":"r"}`), odata.ParseOptions{})
				want := edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}, Properties: c.want}
				if err != nil {
					t.Fatalf("ParseEntity with %s: %v", c.in, err)
				}
				if d := cmp.Diff(want, got, sameBits); d != "" {
					t.Errorf("ParseEntity with %s (-want +got):\n%s", c.in, d)
				}
			}
		})
	}
}

func TestParseKeys(t *testing.T) {
	for _, c := range []struct {
		in   string
		o    odata.ParseOptions
		want edm.Entity
	}{
		{" \t\r\n{ \"PartitionKey\" : \"\" , \"RowKey\" : \"\" } \n", odata.ParseOptions{}, edm.Entity{}},
		{
			`{"RowKey@odata.type":"Edm.String","RowKey":"\u8868","PartitionKey":"a b"}`,
			odata.ParseOptions{},
			edm.Entity{Key: edm.Key{Partition: "a b", Row: "\u8868"}},
		},
		{`{"RowKey":"\u00e9\ufffe","PartitionKey":"e\u0301"}`, odata.ParseOptions{}, edm.Entity{Key: edm.Key{Partition: "e\u0301", Row: "\u00e9\ufffe"}}},
		{
			`{"c":"de","id":"7","n":1}`,
			odata.ParseOptions{PartitionKey: "c", RowKey: "id"},
			edm.Entity{Key: edm.Key{Partition: "de", Row: "7"}, Properties: one("n", edm.Int32(1))},
		},
		{
			`{"id":"7","Timestamp": "2024-02-03T04:05:06Z"}`,
			odata.ParseOptions{PartitionKey: "id", RowKey: "Timestamp"},
			edm.Entity{Key: edm.Key{Partition: "7", Row: "2024-02-03T04:05:06Z"}},
		},
		{`{"id":"7"}`, odata.ParseOptions{PartitionKey: "id", RowKey: "id"}, edm.Entity{Key: edm.Key{Partition: "7", Row: "7"}}},
		{`{"n":1}`, odata.ParseOptions{IgnoreKeys: true}, edm.Entity{Properties: one("n", edm.Int32(1))}},
		{`{"PartitionKey@odata.type":"Edm.Guid","PartitionKey":"x","RowKey":5}`, odata.ParseOptions{IgnoreKeys: true}, edm.Entity{}},
		{`{"PartitionKey@odata.type":"Edm.Odd","PartitionKey":"x","RowKey@odata.type":"Edm.DateTime"}`, odata.ParseOptions{IgnoreKeys: true}, edm.Entity{}},
	} {
		t.Run(c.in, func(t *testing.T) {
			got, err := odata.ParseEntity([]byte(c.in), c.o)
			if err != nil {
				t.Fatalf("ParseEntity(%s): %v", c.in, err)
			}
			if d := cmp.Diff(c.want, got, sameBits); d != "" {
				t.Errorf("ParseEntity(%s) (-want +got):\n%s", c.in, d)
			}
		})
	}
}

func manyNames(n int) string {
	var b strings.Builder
	b.WriteString(`{"PartitionKey":"p","RowKey":"r"`)
	for i := range n {
		fmt.Fprintf(&b, `,"n%d":null`, i)
	}
	b.WriteString("}")
	return b.String()
}

func TestParseErrors(t *testing.T) {
	const keys = `"PartitionKey":"p","RowKey":"r"`
	deep := `{` + keys + `,"odata.x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`
	for _, c := range []struct {
		in     string
		kind   odata.ErrorKind
		member string
		offset int
	}{
		{``, odata.Malformed, "", 0},
		{`[]`, odata.Malformed, "", 0},
		{`{`, odata.Malformed, "", 1},
		{`{"a"`, odata.Malformed, "", 4},
		{`{"a":`, odata.Malformed, "a", 5},
		{`{"a":1`, odata.Malformed, "", 6},
		{`{"a":1,}`, odata.Malformed, "", 7},
		{`{a:1}`, odata.Malformed, "", 1},
		{`{"a":nul}`, odata.Malformed, "a", 5},
		{`{"a":tru`, odata.Malformed, "a", 5},
		{`{"a":1}x`, odata.Malformed, "", 7},
		{`{"a":1}{}`, odata.Malformed, "", 7},
		{`{"a":01}`, odata.Malformed, "a", 5},
		{`{"a":-}`, odata.Malformed, "a", 5},
		{`{"a":1.}`, odata.Malformed, "a", 5},
		{`{"a":.5}`, odata.Malformed, "a", 5},
		{`{"a":1e}`, odata.Malformed, "a", 5},
		{`{"a":+1}`, odata.Malformed, "a", 5},
		{`{"a":NaN}`, odata.Malformed, "a", 5},
		{`{"a":"x}`, odata.Malformed, "a", 5},
		{"{\"a\":\"x\ny\"}", odata.Malformed, "a", 7},
		{`{"a":"\x"}`, odata.Malformed, "a", 6},
		{`{"a":"\u12G4"}`, odata.Malformed, "a", 6},
		{`{"a":"\`, odata.Malformed, "a", 6},
		{`{"a":"\ud800"}`, odata.Malformed, "a", 6},
		{`{"a":"\udc00"}`, odata.Malformed, "a", 6},
		{`{"a":"\ud800\u0041"}`, odata.Malformed, "a", 6},
		{`{"a":"\ud83d\ue000"}`, odata.Malformed, "a", 6},
		{`{"a":"\ud83d\nde00"}`, odata.Malformed, "a", 6},
		{`{` + keys + `,"a@odata.type":"Edm.Int32","a":"` + strings.Repeat("\u00e9", 40) + `"}`, odata.BadValue, "a", 64},
		{`{` + keys + `,"a@odata.type":"Edm.Int32","a":"x` + strings.Repeat("\u00e9", 40) + `"}`, odata.BadValue, "a", 64},
		{"{\"a\":\"ok\xff\"}", odata.Malformed, "a", 8},
		{"{\"a\":\"12345678\xed\xa0\x80\"}", odata.Malformed, "a", 14},
		{"{\"\xc0\":1}", odata.Malformed, "", 2},
		{"\ufeff{}", odata.Malformed, "", 0},
		{"{\x00}", odata.Malformed, "", 1},
		{"\xff\xfe{\x00}\x00", odata.Malformed, "", 0},
		{`{"a":1/* b */}`, odata.Malformed, "", 6},
		{`{"a":0x10}`, odata.Malformed, "", 6},
		{`{"\ud800":1}`, odata.Malformed, "", 2},
		{strings.Repeat("[", 4<<20), odata.Malformed, "", 0},
		{`{"odata.x":` + strings.Repeat("[", 4<<20), odata.Malformed, "odata.x", 43},
		{`{` + strings.Repeat(`"":1,`, 1_000_000) + `"":1}`, odata.Duplicate, "", 6},
		{`{"a":{}}`, odata.Malformed, "a", 5},
		{`{"a":[1]}`, odata.Malformed, "a", 5},
		{`{"a@odata.type":5,"a":1}`, odata.Malformed, "a", 16},
		{`{"odata.x":{"a":}}`, odata.Malformed, "odata.x", 16},
		{`{"odata.x":[1 2]}`, odata.Malformed, "odata.x", 14},
		{deep, odata.Malformed, "odata.x", 75},
		{`{"a":1,"a":1}`, odata.Duplicate, "a", 7},
		{`{"a":null,"b":1,"a":1}`, odata.Duplicate, "a", 16},
		{`{"a":1,"\u0061":1}`, odata.Duplicate, "a", 7},
		{`{"a@odata.type":"Edm.Int32","a@odata.type":"Edm.Int32"}`, odata.Duplicate, "a", 28},
		{`{"odata.etag":"","odata.etag":""}`, odata.Duplicate, "odata.etag", 17},
		{`{"PartitionKey":"p","PartitionKey":"p"}`, odata.Duplicate, "PartitionKey", 20},
		{`{"Timestamp":null,"Timestamp":null}`, odata.Duplicate, "Timestamp", 18},
		{`{}`, odata.MissingKey, "PartitionKey", 0},
		{`{"PartitionKey":"p"}`, odata.MissingKey, "RowKey", 0},
		{`{"PartitionKey":"p","a@odata.type":"Edm.Int32","a":"x"}`, odata.BadValue, "a", 51},
		{`{"PartitionKey":"p","a@odata.type":"Edm.DateTime","a":"1600-12-31T23:59:59Z"}`, odata.MissingKey, "RowKey", 0},
		{`{` + keys + `,"a@odata.type":"Edm.DateTime","a":"1600-12-31T23:59:59Z","b":1e400}`, odata.BadValue, "b", 94},
		{`{"PartitionKey":null,"RowKey":"r"}`, odata.MissingKey, "PartitionKey", 0},
		{`{"PartitionKey":"p","RowKey":5}`, odata.BadValue, "RowKey", 29},
		{`{"PartitionKey":"p","RowKey":"2020-01-01T00:00:00Z","RowKey@odata.type":"Edm.DateTime"}`, odata.BadValue, "RowKey", 29},
		{`{"RowKey":"r","PartitionKey":"x","PartitionKey@odata.type":"Edm.Guid"}`, odata.BadValue, "PartitionKey", 29},
		{`{"RowKey":"r","PartitionKey":"AAEC","PartitionKey@odata.type":"Edm.Binary"}`, odata.BadValue, "PartitionKey", 29},
		{`{"RowKey":"r","PartitionKey":"x","PartitionKey@odata.type":"Edm.Odd"}`, odata.BadValue, "PartitionKey", 29},
		{`{"PartitionKey":"p","RowKey":true}`, odata.BadValue, "RowKey", 29},
		{`{` + keys + `,"a@odata.type":"Edm.Odd","a":1}`, odata.BadValue, "a", 48},
		{`{` + keys + `,"a@odata.type":"Edm.Int32","a":"2147483648"}`, odata.BadValue, "a", 64},
		{`{` + keys + `,"a@odata.type":"Edm.Int32","a":1.0}`, odata.BadValue, "a", 64},
		{`{` + keys + `,"a@odata.type":"Edm.Int32","a":true}`, odata.BadValue, "a", 64},
		{`{` + keys + `,"a@odata.type":"Edm.Int64","a":"9223372036854775808"}`, odata.BadValue, "a", 64},
		{`{` + keys + `,"a@odata.type":"Edm.Int64","a":"-9223372036854775809"}`, odata.BadValue, "a", 64},
		{`{` + keys + `,"a@odata.type":"Edm.Int64","a":""}`, odata.BadValue, "a", 64},
		{`{` + keys + `,"a@odata.type":"Edm.Double","a":"1e999"}`, odata.BadValue, "a", 65},
		{`{` + keys + `,"a@odata.type":"Edm.Double","a":"0x1p4"}`, odata.BadValue, "a", 65},
		{`{` + keys + `,"a":1e999}`, odata.BadValue, "a", 37},
		{`{` + keys + `,"a@odata.type":"Edm.Boolean","a":"yes"}`, odata.BadValue, "a", 66},
		{`{` + keys + `,"a@odata.type":"Edm.Boolean","a":1}`, odata.BadValue, "a", 66},
		{`{` + keys + `,"a@odata.type":"Edm.String","a":1}`, odata.BadValue, "a", 65},
		{`{` + keys + `,"a@odata.type":"Edm.Guid","a":"a455c695"}`, odata.BadValue, "a", 63},
		{`{` + keys + `,"a@odata.type":"Edm.Guid","a":true}`, odata.BadValue, "a", 63},
		{`{` + keys + `,"a@odata.type":"Edm.Guid","a":"{a455c695-df98-5678-aaaa-81d3367e5a34}"}`, odata.BadValue, "a", 63},
		{`{` + keys + `,"a@odata.type":"Edm.Guid","a":"a455c695-df98-5678-aaaa-81d3367e5a3"}`, odata.BadValue, "a", 63},
		{`{` + keys + `,"a@odata.type":"Edm.Int64","a":"+1"}`, odata.BadValue, "a", 64},
		{`{` + keys + `,"a@odata.type":"Edm.Int64","a":"0x10"}`, odata.BadValue, "a", 64},
		{`{` + keys + `,"a@odata.type":"Edm.Int64","a":1e3}`, odata.BadValue, "a", 64},
		{`{` + keys + `,"a@odata.type":"Edm.Double","a":"INF"}`, odata.BadValue, "a", 65},
		{`{` + keys + `,"a":1e999999999}`, odata.BadValue, "a", 37},
		{`{` + keys + `,"a":` + strings.Repeat("9", 1<<20) + `}`, odata.BadValue, "a", 37},
		{`{` + keys + `,"a@odata.type":"Edm.Binary","a":"A"}`, odata.BadValue, "a", 65},
		{`{` + keys + `,"a@odata.type":"Edm.Binary","a":"AAEC\n/w"}`, odata.BadValue, "a", 65},
		{`{` + keys + `,"a@odata.type":"Edm.Binary","a":"AAEC/x=="}`, odata.BadValue, "a", 65},
		{`{` + keys + `,"a@odata.type":"Edm.Binary","a":"AAEC/w"}`, odata.BadValue, "a", 65},
		{`{` + keys + `,"a@odata.type":"Edm.Binary","a":"AAEC_w=="}`, odata.BadValue, "a", 65},
		{`{` + keys + `,"a@odata.type":"Edm.DateTime","a":"2016-12-31T23:59:60Z"}`, odata.BadValue, "a", 67},
		{`{` + keys + `,"a@odata.type":"Edm.DateTime","a":"0000-01-01T00:00:00Z"}`, odata.OutOfRange, "a", 67},
		{`{` + keys + `,"a@odata.type":"Edm.DateTime","a":"yesterday"}`, odata.BadValue, "a", 67},
		{`{` + keys + `,"a@odata.type":"Edm.DateTime","a":"1600-12-31T23:59:59Z"}`, odata.OutOfRange, "a", 67},
		{manyNames(odata.MaxNames), odata.TooManyNames, "", len(manyNames(odata.MaxNames-2)) - 1 + len(",")},
	} {
		t.Run(c.in[:min(len(c.in), 80)], func(t *testing.T) {
			_, err := odata.ParseEntity([]byte(c.in), odata.ParseOptions{})
			var e *odata.Error
			if !errors.As(err, &e) || !errors.Is(err, edm.ErrInvalid) {
				t.Fatalf("ParseEntity(%.200s): %v, want an *odata.Error that matches edm.ErrInvalid", c.in, err)
			}
			if len(err.Error()) > 400 {
				t.Errorf("the message has %d bytes: %.200s", len(err.Error()), err)
			}
			if e.Kind != c.kind || e.Member != c.member || e.Offset != c.offset || e.What == "" {
				t.Errorf("ParseEntity(%.200s): kind %d, member %q, offset %d, want %d, %q, %d: %v", c.in, e.Kind, e.Member, e.Offset, c.kind, c.member, c.offset, err)
			}
		})
	}
}

// TestParseManyNames parses the maximum number of members, in orders that the parser
// has and has not cached.
func TestParseManyNames(t *testing.T) {
	text := manyNames(odata.MaxNames - 2)
	for i, in := range []string{text, text, `{"RowKey":"r","PartitionKey":"p"}`, text} {
		if _, err := odata.ParseEntity([]byte(in), odata.ParseOptions{}); err != nil {
			t.Errorf("parse %d of %.60s: %v", i, in, err)
		}
	}
	if _, err := odata.ParseEntity([]byte(strings.Replace(text, "n700", "n3", 1)), odata.ParseOptions{}); err == nil {
		t.Error("a duplicate name among a thousand was not found")
	}
}

// TestParsedEntityOwnsItsMemory changes the JSON and parses another entity.
func TestParsedEntityOwnsItsMemory(t *testing.T) {
	src := []byte(`{"PartitionKey":"p","RowKey":"r","a":"text","\u0062":"\u0041","c@odata.type":"Edm.Binary","c":"AAEC"}`)
	e, err := odata.ParseEntity(src, odata.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range src {
		src[i] = '!'
	}
	if _, err := odata.ParseEntity([]byte(`{"PartitionKey":"x","RowKey":"y","z":"zzzzzzzz"}`), odata.ParseOptions{}); err != nil {
		t.Fatal(err)
	}
	want := edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}, Properties: edm.Properties{
		{Name: "a", Value: edm.String("text")}, {Name: "b", Value: edm.String("A")}, {Name: "c", Value: edm.Binary([]byte{0, 1, 2})},
	}}
	if d := cmp.Diff(want, e, sameBits); d != "" {
		t.Errorf("the entity changed (-want +got):\n%s", d)
	}
	e.Properties[0].Value = edm.StringBytes(append(e.Properties[0].Value.Bytes(), "more"...))
	if got, _ := e.Properties[1].Value.Text(); got != "A" {
		t.Errorf("growing one value changed the next to %q", got)
	}
}

// TestOutOfRangeTime checks that the error has the time in the service's format.
func TestOutOfRangeTime(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"1600-12-31T23:59:58.5Z", "12/31/1600 23:59:58"},
		{"0001-02-03T04:05:06", "02/03/0001 04:05:06"},
		{"9999-12-31T23:59:59-01:00", "12/31/9999 23:59:59"},
	} {
		got, err := odata.ParseEntity([]byte(`{"PartitionKey":"p","RowKey":"r","a@odata.type":"Edm.DateTime","a":"`+c.in+`","b":1}`), odata.ParseOptions{})
		var e *odata.Error
		if !errors.As(err, &e) || e.Kind != odata.OutOfRange || e.Got != c.want || !strings.Contains(e.What, "is outside 1601-01-01T00:00:00Z to 9999") {
			t.Errorf("%s: %#v, want OutOfRange of %s", c.in, err, c.want)
		}
		rest := edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}, Properties: edm.Properties{{Name: "b", Value: edm.Int32(1)}}}
		if d := cmp.Diff(rest, got, sameBits); d != "" {
			t.Errorf("%s: other properties differ (-want +got):\n%s", c.in, d)
		}
	}
}

// TestParseInvalidUTF8 puts a byte that is not UTF-8 at each place of a value and of a name.
func TestParseInvalidUTF8(t *testing.T) {
	for n := range 70 {
		for at := range n {
			b := bytes.Repeat([]byte{'x'}, n)
			b[at] = 0xFF
			for before, after := range map[string]string{`{"PartitionKey":"p","RowKey":"r","a":"`: `"}`, `{"PartitionKey":"p","RowKey":"r","`: `":1}`} {
				_, err := odata.ParseEntity([]byte(before+string(b)+after), odata.ParseOptions{})
				var e *odata.Error
				if want := len(before) + at; !errors.As(err, &e) || e.Kind != odata.Malformed || e.Offset != want {
					t.Fatalf("byte %d of %d after %s: %v, want an error at %d", at, n, before, err, want)
				}
			}
		}
	}
}
