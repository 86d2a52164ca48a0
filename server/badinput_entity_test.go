package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

// Refusals of values and of whole bodies.
const (
	refusedValue     = "400 InvalidInput"
	refusedDuplicate = "400 DuplicatePropertiesSpecified"
	refusedTwoKeys   = "400 DuplicateKeyPropertySpecified"
	refusedSize      = "400 PropertyValueTooLarge"
	refusedRange     = "400 OutOfRangeInput"
)

// inserts returns, for each JSON members, a request that inserts an entity with them and one
// that merges them into an existing entity.
func inserts(cases map[string]string) []testRequest {
	var requests []testRequest
	for members, want := range cases {
		name := fmt.Sprintf("%.60s %d", members, len(members))
		requests = append(requests,
			testRequest{name: "insert " + name, method: "POST", path: "/People", body: `{"PartitionKey":"a","RowKey":"2",` + members + `}`, want: want},
			testRequest{name: "merge " + name, method: "PATCH", path: "/People(PartitionKey='a',RowKey='1')", body: `{` + members + `}`, want: want},
		)
	}
	return requests
}

// typed returns a member with the annotation of its type.
func typed(kind, json string) string { return `"p@odata.type":"Edm.` + kind + `","p":` + json }

// many returns n members.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"p%d":1`, i)
	}
	return b.String()[1:]
}

// TestProperties sends invalid properties: their number, names, sizes and types.
func TestProperties(t *testing.T) {
	sendAll(t, inserts(map[string]string{
		many(253):                              "400 TooManyProperties",
		many(3000):                             "400 TooManyProperties",
		many(50000):                            "400 TooManyProperties",
		`"` + strings.Repeat("n", 256) + `":1`: "400 PropertyNameTooLong",
		`"` + strings.Repeat("é", 256) + `":1`: "400 PropertyNameTooLong",
		`"a b":1`:                              "400 PropertyNameInvalid", `"a@b":1`: "400 PropertyNameInvalid", `"a.b":1`: "400 PropertyNameInvalid",
		`"1a":1`:  "400 PropertyNameInvalid",
		`"a-b":1`: "400 PropertyNameInvalid", `"":1`: "400 PropertyNameInvalid", `"a\u0000":1`: "400 PropertyNameInvalid",
		`"n":1,"n":2`: refusedDuplicate, `"n":1,"n":1`: refusedDuplicate, `"n":null,"n":1`: refusedDuplicate, `"n":1,"\u006e":2`: refusedDuplicate,
		`"n@odata.type":"Edm.Int32","n@odata.type":"Edm.Int64","n":1`: refusedDuplicate,
		`"p":"` + strings.Repeat("x", 32769) + `"`:                    refusedSize,
		`"p":"` + strings.Repeat("é", 32769) + `"`:                    refusedSize,
		`"p":"` + strings.Repeat("😀", 16384) + `a"`:                   refusedSize,
		`"p":"` + strings.Repeat(`\u0041`, 32769) + `"`:               refusedSize,
		typed("Binary", `"`+strings.Repeat("AAAA", 21846)+`"`):        refusedSize,
		typed("Decimal", `"1"`):                                       refusedValue, typed("String", "1"): refusedValue, typed("int32", "1"): refusedValue,
		typed("", "1"):           refusedValue,
		`"p@odata.type":1,"p":1`: refusedValue, `"p@odata.type":null,"p":1`: refusedValue,
		`"p":{}`: refusedValue, `"p":[]`: refusedValue, `"p":[1]`: refusedValue, `"p":{"a":{"b":1}}`: refusedValue,
	}))
}

// TestKeyMembers sends keys twice, by other names or of other types.
func TestKeyMembers(t *testing.T) {
	var requests []testRequest
	for body, want := range map[string]string{
		`{"PartitionKey":"a","PartitionKey":"b","RowKey":"2"}`: refusedTwoKeys,
		`{"PartitionKey":"a","RowKey":"2","RowKey":"2"}`:       refusedTwoKeys,
		`{"partitionkey":"a","RowKey":"2"}`:                    "400 PropertiesNeedValue",
		`{"PARTITIONKEY":"a","rowKey":"2"}`:                    "400 PropertiesNeedValue",
		`{"PartitionKey":1,"RowKey":"2"}`:                      refusedValue,
		`{"PartitionKey":true,"RowKey":"2"}`:                   refusedValue,
		`{"PartitionKey":{},"RowKey":"2"}`:                     refusedValue,
		`{"PartitionKey":"a","RowKey":["2"]}`:                  refusedValue,
		`{"PartitionKey@odata.type":"Edm.Guid","PartitionKey":"c9da6455-213d-42c9-9a79-3e9149a57833","RowKey":"2"}`: refusedValue,
		`{"PartitionKey":"a","RowKey@odata.type":"Edm.Binary","RowKey":"AAAA"}`:                                     refusedValue,
	} {
		requests = append(requests, testRequest{name: body, method: "POST", path: "/People", body: body, want: want})
	}
	sendAll(t, requests)
}

// TestValues sends values that are not valid for their types.
func TestValues(t *testing.T) {
	sendAll(t, inserts(map[string]string{
		typed("Int64", `"9223372036854775808"`): refusedValue, typed("Int64", `"-9223372036854775809"`): refusedValue, typed("Int64", `"1.0"`): refusedValue,
		typed("Int64", `1e3`): refusedValue, typed("Int64", `""`): refusedValue, typed("Int64", `" 1"`): refusedValue,
		typed("Int64", `"0x10"`): refusedValue, typed("Int64", `true`): refusedValue,
		typed("Int32", `2147483648`): refusedValue, typed("Int32", `-2147483649`): refusedValue, typed("Int32", `1.5`): refusedValue,
		typed("Int32", `"1e3"`):  refusedValue,
		typed("Double", `"INF"`): refusedValue, typed("Double", `"nan"`): refusedValue, typed("Double", `"1e400"`): refusedValue,
		typed("Double", `"0x1p3"`): refusedValue, typed("Double", `"1_0"`): refusedValue,
		`"p":1e400`: refusedValue, `"p":-1e400`: refusedValue, `"p":1e999999999`: refusedValue, `"p":01`: refusedValue, `"p":+1`: refusedValue,
		`"p":0x10`: refusedValue, `"p":.5`: refusedValue, `"p":1.`: refusedValue,
		`"p":1e`: refusedValue, `"p":-`: refusedValue, `"p":NaN`: refusedValue, `"p":Infinity`: refusedValue, `"p":1` + strings.Repeat("0", 1<<20): refusedValue,
		typed("DateTime", `"1600-12-31T23:59:59.9999999Z"`): refusedRange, typed("DateTime", `"0001-01-01T00:00:00Z"`): refusedRange,
		typed("DateTime", `"0000-01-01T00:00:00Z"`): refusedRange, typed("DateTime", `"10000-01-01T00:00:00Z"`): refusedValue,
		typed("DateTime", `"2021-02-29T00:00:00Z"`): refusedValue,
		typed("DateTime", `"2021-06-17T24:00:00Z"`): refusedValue, typed("DateTime", `"2016-12-31T23:59:60Z"`): refusedValue,
		typed("DateTime", `"today"`): refusedValue, typed("DateTime", `""`): refusedValue, typed("DateTime", `1`): refusedValue,
		typed("DateTime", `"2021-06-17T00:00:00+25:00"`): refusedValue, typed("DateTime", `"2021-06-17T00:00:00.Z"`): refusedValue,
		typed("Guid", `"{c9da6455-213d-42c9-9a79-3e9149a57833}"`): refusedValue, typed("Guid", `"c9da6455213d42c99a793e9149a57833"`): refusedValue,
		typed("Guid", `"c9da6455-213d-42c9-9a79-3e9149a5783"`): refusedValue, typed("Guid", `"c9da6455-213d-42c9-9a79-3e9149a5783g"`): refusedValue,
		typed("Guid", `""`):   refusedValue,
		typed("Boolean", `1`): refusedValue, typed("Boolean", `"yes"`): refusedValue, typed("Boolean", `""`): refusedValue,
		typed("Binary", `"AA\nA"`): refusedValue, typed("Binary", `"_-8="`): refusedValue, typed("Binary", `"AAA"`): refusedValue,
		typed("Binary", `"AB=="`): refusedValue, typed("Binary", `"A"`): refusedValue, typed("Binary", `"AAAA="`): refusedValue,
	}))
}

// TestBodies sends bodies that are not an entity.
func TestBodies(t *testing.T) {
	const entity = `{"PartitionKey":"a","RowKey":"2"}`
	var requests []testRequest
	for name, body := range map[string]string{
		"arrays": strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001), "4 MiB of brackets": strings.Repeat("[", 4<<20),
		"objects":                 strings.Repeat(`{"a":`, 100_000),
		"a string without an end": `{"PartitionKey":"a`, "UTF-16": "\xff\xfe{\x00}\x00", "two values": entity + entity, "junk at the end": entity + "x",
		"a comment": `{"PartitionKey":"a",/* b */"RowKey":"2"}`, "a NUL": entity + "\x00", "a NUL before": "\x00" + entity,
		"invalid UTF-8":    "{\"PartitionKey\":\"a\",\"RowKey\":\"2\",\"n\":\"\xff\"}",
		"a lone surrogate": `{"PartitionKey":"a","RowKey":"2","n":"\ud800"}`, "a raw line feed in a string": "{\"PartitionKey\":\"a\",\"RowKey\":\"2\",\"n\":\"\n\"}",
		"an unknown escape": `{"PartitionKey":"a","RowKey":"2","n":"\x41"}`, "single quotes": `{'PartitionKey':'a','RowKey':'2'}`,
		"a comma too many": `{"PartitionKey":"a","RowKey":"2",}`,
		"a list":           "[" + entity + "]", "null": "null", "a string": `"a"`, "a number": "1", "a boolean": "true", "blanks": "   ",
		"only a byte order mark": "\xef\xbb\xbf",
		"no colon":               `{"PartitionKey" "a"}`, "a name without quotes": `{PartitionKey:"a",RowKey:"2"}`,
	} {
		requests = append(requests, testRequest{name: name, method: "POST", path: "/People", body: body, want: refusedValue})
		if name != "no body" {
			requests = append(requests, testRequest{name: name + ", of a table", method: "POST", path: "/Tables", body: body, want: refusedValue})
		}
	}
	requests = append(requests,
		testRequest{name: "no body", method: "POST", path: "/People", headers: "Content-Length: 0\r\n", want: refusedValue},
		testRequest{name: "a million empty names", method: "POST", path: "/People", body: `{` + strings.Repeat(`"":1,`, 500_000) + `"a":1}`, want: refusedDuplicate},
		testRequest{
			name: "a name of 4 MiB", method: "POST", path: "/People",
			body: `{"PartitionKey":"a","RowKey":"2","` + strings.Repeat("n", 4<<20-64) + `":1}`, want: "400 PropertyNameTooLong",
		},
		testRequest{name: "a table with other members", method: "POST", path: "/Tables", body: `{"Name":"Orders"}`, want: "400 PropertiesNeedValue"},
		testRequest{name: "a table whose name is a number", method: "POST", path: "/Tables", body: `{"TableName":1}`, want: refusedValue},
	)
	sendAll(t, requests)
}

// TestByteOrderMark sends bodies that are valid but for a byte order mark before them.
func TestByteOrderMark(t *testing.T) {
	w := newPeopleServer(t)
	for _, r := range []testRequest{
		{method: "POST", path: "/Tables", body: `{"TableName":"Orders"}`, want: "201"},
		{method: "POST", path: "/People", body: `{"PartitionKey":"a","RowKey":"2"}`, want: "201"},
		{method: "PUT", path: "/People(PartitionKey='a',RowKey='3')", body: `{}`, want: "204"},
	} {
		r.body = "\ufeff" + r.body
		if got := outcome(w.exchange(r.bytes(w))); got != r.want {
			t.Errorf("%s %s: %s, want %s", r.method, r.path, got, r.want)
		}
	}
}

// TestContentTypes sends bodies with unsupported media types.
func TestContentTypes(t *testing.T) {
	var requests []testRequest
	for header, want := range map[string]string{
		"application/atom+xml": "415 AtomFormatNotSupported", "application/atom+xml;type=entry": "415 AtomFormatNotSupported",
		"text/plain":                       "415 MediaTypeNotSupported",
		"application/json; charset=utf-16": "415 MediaTypeNotSupported", "application/json;charset=latin1": "415 MediaTypeNotSupported",
		"json":               "415 MediaTypeNotSupported",
		"application/json;;": "415 MediaTypeNotSupported", "*/*": "415 MediaTypeNotSupported", strings.Repeat("a", 20<<10): "415 MediaTypeNotSupported",
		"multipart/mixed; boundary=a": "415 MediaTypeNotSupported",
	} {
		requests = append(requests,
			testRequest{
				name: fmt.Sprintf("%.50q", header), method: "POST", path: "/People", headers: "Content-Type: " + header + "\r\n",
				body: `{"PartitionKey":"a","RowKey":"2"}`, want: want,
			},
			testRequest{
				name: fmt.Sprintf("%.50q of a table", header), method: "POST", path: "/Tables", headers: "Content-Type: " + header + "\r\n",
				body: `{"TableName":"Orders"}`, want: want,
			},
		)
	}
	sendAll(t, requests)
}

// TestExtremes inserts values at the limits, and unusual ones, and reads them back.
func TestExtremes(t *testing.T) {
	w := newPeopleServer(t)
	for i, c := range []struct{ members, want string }{
		{many(252), many(252)},
		{`"` + strings.Repeat("n", 255) + `":1`, ""},
		{`"p":"` + strings.Repeat("x", 32768) + `"`, ""},
		{typed("Binary", `"`+strings.Repeat("AAAA", 21845)+`AA=="`), ""},
		{`"n":1,"N":2`, ""},
		{`"p":-0`, `"p":0`},
		{`"p":-0.0`, ""},
		{`"p":9007199254740993`, `"p":9007199254740992.0`},
		{`"p":1` + strings.Repeat("0", 300), `"p":1E+300`},
		{typed("Int64", "9007199254740993"), typed("Int64", `"9007199254740993"`)},
		{typed("Int64", `"-9223372036854775808"`), ""},
		{`"p":-2147483648`, ""},
		{typed("Double", `"NaN"`), ""},
		{typed("Double", `"-Infinity"`), ""},
		{typed("DateTime", `"1601-01-01T00:00:00Z"`), ""},
		{typed("DateTime", `"9999-12-31T23:59:59.9999999Z"`), ""},
		{typed("DateTime", `"2021-06-17T00:00:00.123456789Z"`), typed("DateTime", `"2021-06-17T00:00:00.1234567Z"`)},
		{typed("DateTime", `"2021-06-17T02:00:00+02:00"`), typed("DateTime", `"2021-06-17T00:00:00Z"`)},
		{typed("DateTime", `"2021-06-17T00:00:00"`), typed("DateTime", `"2021-06-17T00:00:00Z"`)},
		{typed("Guid", `"C9DA6455-213D-42C9-9A79-3E9149A57833"`), typed("Guid", `"c9da6455-213d-42c9-9a79-3e9149a57833"`)},
		{typed("Boolean", `"true"`), `"p":true`},
		{`"p":null`, " "},
		{`"a-b":null`, " "},
		{`"p@odata.type":"Edm.Int64"`, " "},
		{`"p":1,"p@odata.type":"Edm.Double"`, `"p":1.0`},
		{`"odata.x":{},"odata.etag":1`, " "},
		{`"Timestamp":"0001-01-01T00:00:00Z"`, " "},
		{`"p":"\ud83d\ude00\t\r\n\u0000"`, ""},
	} {
		w.clock.advance(1)
		row := fmt.Sprintf("x%d", i)
		insert := testRequest{method: "POST", path: "/People", body: `{"PartitionKey":"a","RowKey":"` + row + `",` + c.members + `}`}
		raw, res := w.exchange(insert.bytes(w))
		if res == nil || res.StatusCode != http.StatusCreated {
			t.Errorf("%.100s: %s", c.members, raw)
			continue
		}
		want := c.members
		if c.want != "" {
			want = strings.TrimSpace(c.want)
		}
		get := testRequest{method: "GET", path: "/People(PartitionKey='a',RowKey='" + row + "')"}
		raw, _ = w.exchange(get.bytes(w))
		_, got, _ := bytes.Cut(raw, []byte(`"RowKey":"`+row+`","Timestamp":"`))
		_, got, _ = bytes.Cut(got, []byte(`"`))
		if text := strings.TrimSuffix(strings.TrimPrefix(string(got), ","), "}"); text != want {
			t.Errorf("%.100s\ngot  %.100s\nwant %.100s", c.members, text, want)
		}
	}
}

// TestEntitySize inserts an entity of 1 MiB, and a larger one.
func TestEntitySize(t *testing.T) {
	w := newPeopleServer(t)
	e := edm.Entity{Key: edm.Key{Partition: "a", Row: "2"}}
	body := `{"PartitionKey":"a","RowKey":"2"`
	add := func(name string, n int) {
		e.Properties = append(e.Properties, edm.Property{Name: name, Value: edm.String(strings.Repeat("x", n))})
		body += `,"` + name + `":"` + strings.Repeat("x", n) + `"`
	}
	for i := range 15 {
		add(fmt.Sprintf("p%02d", i), 32768)
	}
	const limit = 1 << 20
	rest := limit - edm.EntitySize(e.Key, e.Properties) - (8 + 2*len("q") + 4)
	if rest%2 != 0 {
		t.Fatalf("%d bytes are left, want an even number", rest)
	}
	full, properties := body, e.Properties
	add("q", rest/2+1)
	over := body
	body, e.Properties = full, properties
	add("q", rest/2)
	if size := edm.EntitySize(e.Key, e.Properties); size != limit {
		t.Fatalf("entity of %d bytes, want %d", size, limit)
	}
	for _, c := range []testRequest{
		{method: "POST", path: "/People", body: over + "}", want: "400 EntityTooLarge"},
		{method: "POST", path: "/People", body: body + "}", want: "201"},
		{method: "PATCH", path: "/People(PartitionKey='a',RowKey='2')", body: `{"r":1}`, want: "400 EntityTooLarge"},
		{method: "PATCH", path: "/People(PartitionKey='a',RowKey='2')", body: `{"p00":""}`, want: "204"},
	} {
		if got := outcome(w.exchange(c.bytes(w))); got != c.want {
			t.Errorf("%s of %d bytes: %s, want %s", c.method, len(c.body), got, c.want)
		}
	}
}

// TestLargeValueSize inserts values that alone are larger than an entity may be. The legacy
// Java client's tests expect the size of the entity to be refused.
func TestLargeValueSize(t *testing.T) {
	binary := typed("Binary", `"`+strings.Repeat("AAAA", 1<<20/3+1)+`"`)
	text := `"p":"` + strings.Repeat("x", 1<<19) + `"`
	var requests []testRequest
	for _, member := range []string{binary, text} {
		requests = append(requests,
			testRequest{method: "POST", path: "/People", body: `{"PartitionKey":"a","RowKey":"2",` + member + `}`, want: "400 EntityTooLarge"},
			testRequest{method: "PATCH", path: "/People(PartitionKey='a',RowKey='2')", body: "{" + member + "}", want: "400 EntityTooLarge"},
		)
	}
	sendAll(t, requests)
	insert := func(row, member string) string {
		return operation("POST", "/"+testAccount+"/People", "", `{"PartitionKey":"a","RowKey":"`+row+`",`+member+`}`)
	}
	for prefix, operations := range map[string][]string{
		"The entity":   {insert("1", text)},
		"1:The entity": {insert("1", `"p":1`), insert("2", binary)},
	} {
		got := sendBatch(t, operations...)
		if len(got) != 1 || !strings.HasPrefix(got[0], "400") || !strings.Contains(got[0], `"value":"`+prefix+" is larger than") {
			t.Errorf("a batch of %d: got %q, want 400 with %q", len(operations), got, prefix)
		}
	}
}
