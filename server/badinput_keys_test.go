package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// TestKeys writes and reads entities with invalid keys.
func TestKeys(t *testing.T) {
	var requests []testRequest
	for _, c := range []string{"/", `\`, "#", "?", "\t", "\n", "\x00", "\x1f", "\x7f", "\u0080", "\u009f"} {
		body := fmt.Sprintf(`{"PartitionKey":"a","RowKey":"x\u%04xy"}`, []rune(c)[0])
		requests = append(requests, testRequest{name: fmt.Sprintf("insert %q", c), method: "POST", path: "/People", body: body, want: "400 OutOfRangeInput"})

		path := "/People(PartitionKey='a',RowKey='x" + url.PathEscape(c) + "y')"
		put, get := "400 OutOfRangeInput", "404 ResourceNotFound"
		switch {
		case c == "/" || c == `\`:
			put, get = "400 InvalidInput", "400 InvalidInput"
		case c < "\u0080":
			if c != "#" && c != "?" {
				put, get = "400", "400" // the front end's page
			}
		}
		requests = append(requests,
			testRequest{name: fmt.Sprintf("replace %q", c), method: "PUT", path: path, body: "{}", want: put},
			testRequest{name: fmt.Sprintf("read %q", c), method: "GET", path: path, want: get},
			testRequest{name: fmt.Sprintf("delete %q", c), method: "DELETE", path: path, headers: "If-Match: *\r\n", want: put},
		)
	}
	long, longer := strings.Repeat("k", 1025), strings.Repeat("é", 1025)
	requests = append(requests, []testRequest{
		{name: "a long key", method: "POST", path: "/People", body: `{"PartitionKey":"` + long + `","RowKey":"1"}`, want: "400 PropertyValueTooLarge"},
		{name: "a long key, not ASCII", method: "POST", path: "/People", body: `{"PartitionKey":"a","RowKey":"` + longer + `"}`, want: "400 PropertyValueTooLarge"},
		{
			name: "a long key of surrogate pairs", method: "POST", path: "/People", body: `{"PartitionKey":"a","RowKey":"` + strings.Repeat("😀", 512) + `a"}`,
			want: "400 PropertyValueTooLarge",
		},
		{name: "a long key in the URL", method: "PUT", path: "/People(PartitionKey='" + long + "',RowKey='')", body: "{}", want: "400 PropertyValueTooLarge"},
		{
			name: "a very long key in the URL", method: "PUT", path: "/People(PartitionKey='" + strings.Repeat("k", 25<<10) + "',RowKey='')", body: "{}",
			want: "400 PropertyValueTooLarge",
		},
		{name: "a key longer than any header", method: "GET", path: "/People(PartitionKey='" + strings.Repeat("k", 100<<10) + "',RowKey='')", want: "431"},
		{name: "no key", method: "POST", path: "/People", body: `{}`, want: "400 PropertiesNeedValue"},
		{name: "no RowKey", method: "POST", path: "/People", body: `{"PartitionKey":"a"}`, want: "400 PropertiesNeedValue"},
		{name: "a null key", method: "POST", path: "/People", body: `{"PartitionKey":null,"RowKey":""}`, want: "400 PropertiesNeedValue"},
		{name: "a lone surrogate", method: "POST", path: "/People", body: `{"PartitionKey":"\ud800","RowKey":""}`, want: "400 InvalidInput"},
		{name: "half a pair", method: "POST", path: "/People", body: `{"PartitionKey":"\ude00a","RowKey":""}`, want: "400 InvalidInput"},
		{name: "a surrogate in UTF-8 in the URL", method: "PUT", path: "/People(PartitionKey='%ED%A0%80',RowKey='')", body: "{}", want: "400 InvalidInput"},
		{name: "overlong UTF-8 in the URL", method: "PUT", path: "/People(PartitionKey='%C0%AF',RowKey='')", body: "{}", want: "400 InvalidInput"},
		{name: "overlong UTF-8 in the body", method: "POST", path: "/People", body: "{\"PartitionKey\":\"\xc0\xaf\",\"RowKey\":\"\"}", want: "400 InvalidInput"},
		{name: "half an escape in the URL", method: "GET", path: "/People(PartitionKey='%4',RowKey='')", want: "400"},
		{name: "an escape of no digits", method: "GET", path: "/People(PartitionKey='%zz',RowKey='')", want: "400"},
	}...)
	sendAll(t, requests)
}

// TestKeyPredicates reads entities with invalid key predicates.
func TestKeyPredicates(t *testing.T) {
	const syntax = "400 InvalidInput"
	var requests []testRequest
	for _, predicate := range []string{
		"(PartitionKey='a',RowKey='1'", "(PartitionKey='a',RowKey='1'))", "((PartitionKey='a',RowKey='1'))", "(PartitionKey='a',RowKey='1)",
		"(PartitionKey='a'RowKey='1')",
		"(PartitionKey='a',PartitionKey='b')", "(RowKey='1',RowKey='1')", "(PartitionKey='a',RowKey='1',RowKey='1')", "(PartitionKey='a',RowKey='1',Age=39)",
		"(PartitionKey=a,RowKey=1)", "(PartitionKey='a')", "(RowKey='1')", "('a','1')", "(partitionkey='a',rowkey='1')", "(PartitionKey='a'',RowKey='1')",
		"(PartitionKey='''a''',RowKey='1'')", "(PartitionKey=\"a\",RowKey=\"1\")", "(PartitionKey='a',RowKey='1')x", "(PartitionKey='a',RowKey='1')()",
		"()()", "(", "()x",
		"(" + strings.Repeat("'", 20<<10) + ")", strings.Repeat("(", 20<<10), "(PartitionKey='a',RowKey='1');x", "(PartitionKey=datetime'2021-01-01',RowKey='1')",
	} {
		requests = append(requests, testRequest{name: fmt.Sprintf("%.40s", predicate), method: "GET", path: "/People" + predicate, want: syntax})
	}
	requests = append(requests,
		testRequest{name: "a predicate longer than any header", method: "GET", path: "/People(" + strings.Repeat("x", 100<<10), want: "431"},
		testRequest{name: "a segment after it", method: "GET", path: "/People(PartitionKey='a',RowKey='1')/Age", want: syntax},
	)
	sendAll(t, requests)
}

// TestUnusualKeys inserts entities with unusual valid keys, reads each by its link, and
// checks that a query returns them in the order of UTF-16 code units.
func TestUnusualKeys(t *testing.T) {
	w := newWire(t, nil, nil)
	if err := w.store.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	// In order: surrogate pairs are before U+FB01.
	keys := []string{
		"", " ", "  ", " a ", "!", `"`, "$1", "%", "%2527", "%27", "&=;@*", "'", "''", "',RowKey='", "(", ")", "+", ",", "a", "a b", "a%20b", "a+b",
		"cafe\u0301", "caf\u00e9", strings.Repeat("k", 1024), "\u00e9", "\u212a", strings.Repeat("😀", 512), "\ufb01", "\uffff",
	}
	for _, key := range keys {
		t.Run(fmt.Sprintf("%.20q", key), func(t *testing.T) {
			w.t = t
			body := fmt.Sprintf(`{"PartitionKey":%s,"RowKey":%[1]s}`, jsonText(key))
			insert := testRequest{method: "POST", path: "/People", body: body, headers: "Prefer: return-no-content\r\n"}
			raw, res := w.exchange(insert.bytes(w))
			if res == nil || res.StatusCode != http.StatusNoContent {
				t.Fatalf("insert: %s", raw)
			}
			link := strings.TrimPrefix(res.Header.Get("Location"), "http://127.0.0.1:10002/"+wireAccount)
			quoted := url.PathEscape("'" + strings.ReplaceAll(key, "'", "''") + "'")
			for _, path := range []string{link, "/People(PartitionKey=" + quoted + ",RowKey=" + quoted + ")"} {
				get := testRequest{method: "GET", path: path}
				raw, res = w.exchange(get.bytes(w))
				if res == nil || res.StatusCode != http.StatusOK {
					t.Errorf("GET %s: %s", path, raw)
				}
			}
		})
	}
	var found []string
	for e, err := range store.Entities(w.store.Query(t.Context(), "People", store.Query{})) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, e.Key.Partition)
	}
	if len(found) != len(keys) {
		t.Fatalf("%d entities, want %d", len(found), len(keys))
	}
	for i := range keys {
		if found[i] != keys[i] {
			t.Fatalf("key %d is %q, want %q", i, found[i], keys[i])
		}
	}
}

// jsonText returns s in JSON with all characters escaped.
func jsonText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, unit := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, `\u%04x`, unit)
	}
	b.WriteByte('"')
	return b.String()
}

// TestConditions sends conditions that are invalid or not met.
func TestConditions(t *testing.T) {
	const invalid, unmet = "400 InvalidInput", "412 UpdateConditionNotSatisfied"
	stale := string(edm.TicksOf(testTime.AddDate(-1, 0, 0)).ETag())
	var requests []testRequest
	for _, c := range []struct{ headers, want string }{
		{"If-Match: \r\n", invalid},
		{"If-Match: \"2021\"\r\n", invalid},
		{"If-Match: 2021\r\n", invalid},
		{"If-Match: W/2021\r\n", invalid},
		{"If-Match: W/\"\r\n", invalid},
		{"If-Match: W/\"a\r\n", invalid},
		{"If-Match: W/\"a\" x\r\n", invalid},
		{"If-Match: W/\"a\",W/\"b\"\r\n", invalid},
		{"If-Match: *\r\nIf-Match: *\r\n", invalid},
		{"If-Match: **\r\n", invalid},
		{"If-Match: " + strings.Repeat("x", 20<<10) + "\r\n", invalid},
		{"If-Match: W/\"" + strings.Repeat("x", 20<<10) + "\"\r\n", unmet},
		{"If-Match: W/\"datetime'2021-06-17T16%253A54%253A23Z'\"\r\n", "412 ConditionNotMet"},
		{"If-Match: " + stale + "\r\n", unmet},
		{"If-Match: W/\"\"\r\n", unmet},
		{"If-Match: W/'a'\r\n", invalid},
		{"If-None-Match: *\r\n", invalid},
		{"If-Match: *\r\nIf-None-Match: *\r\n", invalid},
	} {
		for _, method := range []string{"PUT", "PATCH", "MERGE", "DELETE"} {
			one := testRequest{
				name: fmt.Sprintf("%s %.40q", method, c.headers), method: method, path: "/People(PartitionKey='a',RowKey='1')",
				headers: c.headers, want: c.want,
			}
			if method != "DELETE" {
				one.body = "{}"
			}
			requests = append(requests, one)
		}
	}
	requests = append(requests, testRequest{name: "DELETE without", method: "DELETE", path: "/People(PartitionKey='a',RowKey='1')", want: invalid})
	sendAll(t, requests)
}

// TestETagForms replaces an entity whose ETag has another form than the server's. The legacy
// .NET client writes seven digits with nometadata.
func TestETagForms(t *testing.T) {
	w := newPeopleServer(t)
	put := func(etag string) (result, next string) {
		r := testRequest{method: "PUT", path: "/People(PartitionKey='a',RowKey='1')", body: "{}", headers: etag}
		raw, res := w.exchange(r.bytes(w))
		return outcome(raw, res), res.Header.Get("Etag")
	}
	w.clock.at.Store(testTime.Add(time.Second + 120*time.Millisecond).UnixNano()) // its text has two digits
	for _, c := range []struct {
		name, want string
		form       func(edm.Ticks) string
	}{
		{"lower case", "204", func(at edm.Ticks) string { return strings.ReplaceAll(at.String(), ":", "%3a") }},
		{"not escaped", "204", edm.Ticks.String},
		{"seven digits", "204", func(at edm.Ticks) string { return url.QueryEscape(at.Time().Format("2006-01-02T15:04:05.0000000Z")) }},
		{"another time", "412 UpdateConditionNotSatisfied", func(at edm.Ticks) string { return (at + 1).String() }},
		{"before 1601", "412 UpdateConditionNotSatisfied", func(at edm.Ticks) string { return "1600" + at.String()[4:] }},
	} {
		w.clock.at.Add(int64(time.Second))
		_, etag := put("")
		text, err := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(etag, `W/"datetime'`), `'"`))
		if err != nil {
			t.Fatal(err)
		}
		at, err := edm.ParseTicks(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := put(`If-Match: W/"datetime'` + c.form(at) + "'\"\r\n"); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.name, etag, got, c.want)
		}
	}
}

// TestETagOfDeletedEntity uses the ETag of a deleted entity on a new one with the same key.
func TestETagOfDeletedEntity(t *testing.T) {
	w := newPeopleServer(t)
	const path = "/People(PartitionKey='a',RowKey='1')"
	etag := func() string {
		get := testRequest{method: "GET", path: path}
		_, res := w.exchange(get.bytes(w))
		return res.Header.Get("Etag")
	}
	first := etag()
	for _, c := range []testRequest{
		{method: "DELETE", path: path, headers: "If-Match: " + first + "\r\n", want: "204"},
		{method: "POST", path: "/People", body: `{"PartitionKey":"a","RowKey":"1","Age":39}`, want: "201"},
		{method: "PUT", path: path, body: "{}", headers: "If-Match: " + first + "\r\n", want: "412 UpdateConditionNotSatisfied"},
	} {
		if got := outcome(w.exchange(c.bytes(w))); got != c.want {
			t.Fatalf("%s %s: %s, want %s", c.method, c.path, got, c.want)
		}
	}
	if second := etag(); second == first {
		t.Errorf("both entities have the ETag %s; the clock did not advance", first)
	}
}
