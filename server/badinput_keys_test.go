package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// TestKeys writes and reads entities whose keys cannot be: K1, K2.
func TestKeys(t *testing.T) {
	var trials []trial
	for _, c := range []string{"/", `\`, "#", "?", "\t", "\n", "\x00", "\x1f", "\x7f", "\u0080", "\u009f"} {
		body := fmt.Sprintf(`{"PartitionKey":"a","RowKey":"x\u%04xy"}`, []rune(c)[0])
		trials = append(trials, trial{name: fmt.Sprintf("insert %q", c), method: "POST", path: "/People", body: body, want: "400 OutOfRangeInput"})

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
		trials = append(trials,
			trial{name: fmt.Sprintf("replace %q", c), method: "PUT", path: path, body: "{}", want: put},
			trial{name: fmt.Sprintf("read %q", c), method: "GET", path: path, want: get},
			trial{name: fmt.Sprintf("delete %q", c), method: "DELETE", path: path, headers: "If-Match: *\r\n", want: put},
		)
	}
	long, longer := strings.Repeat("k", 1025), strings.Repeat("é", 1025)
	trials = append(trials, []trial{
		{name: "a long key", method: "POST", path: "/People", body: `{"PartitionKey":"` + long + `","RowKey":"1"}`, want: "400 PropertyValueTooLarge"},
		{name: "a long key of other letters", method: "POST", path: "/People", body: `{"PartitionKey":"a","RowKey":"` + longer + `"}`, want: "400 PropertyValueTooLarge"},
		{name: "a long key of pairs", method: "POST", path: "/People", body: `{"PartitionKey":"a","RowKey":"` + strings.Repeat("😀", 512) + `a"}`, want: "400 PropertyValueTooLarge"},
		{name: "a long key in the URL", method: "PUT", path: "/People(PartitionKey='" + long + "',RowKey='')", body: "{}", want: "400 PropertyValueTooLarge"},
		{name: "a very long key in the URL", method: "PUT", path: "/People(PartitionKey='" + strings.Repeat("k", 25<<10) + "',RowKey='')", body: "{}", want: "400 PropertyValueTooLarge"},
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
	attack(t, trials)
}

// TestKeyPredicates asks for entities in ways that no client does: K3.
func TestKeyPredicates(t *testing.T) {
	const syntax = "400 InvalidInput"
	var trials []trial
	for _, predicate := range []string{
		"(PartitionKey='a',RowKey='1'", "(PartitionKey='a',RowKey='1'))", "((PartitionKey='a',RowKey='1'))", "(PartitionKey='a',RowKey='1)", "(PartitionKey='a'RowKey='1')",
		"(PartitionKey='a',PartitionKey='b')", "(RowKey='1',RowKey='1')", "(PartitionKey='a',RowKey='1',RowKey='1')", "(PartitionKey='a',RowKey='1',Age=39)",
		"(PartitionKey=a,RowKey=1)", "(PartitionKey='a')", "(RowKey='1')", "('a','1')", "(partitionkey='a',rowkey='1')", "(PartitionKey='a'',RowKey='1')",
		"(PartitionKey='''a''',RowKey='1'')", "(PartitionKey=\"a\",RowKey=\"1\")", "(PartitionKey='a',RowKey='1')x", "(PartitionKey='a',RowKey='1')()", "()()", "(", "()x",
		"(" + strings.Repeat("'", 20<<10) + ")", strings.Repeat("(", 20<<10), "(PartitionKey='a',RowKey='1');x", "(PartitionKey=datetime'2021-01-01',RowKey='1')",
	} {
		trials = append(trials, trial{name: fmt.Sprintf("%.40s", predicate), method: "GET", path: "/People" + predicate, want: syntax})
	}
	trials = append(trials,
		trial{name: "a predicate longer than any header", method: "GET", path: "/People(" + strings.Repeat("x", 100<<10), want: "431"},
		trial{name: "a segment after it", method: "GET", path: "/People(PartitionKey='a',RowKey='1')/Age", want: syntax},
	)
	attack(t, trials)
}

// TestOddKeys writes entities with keys that are allowed, reads each by its own
// link, and finds them in the order of their code units: K2.
func TestOddKeys(t *testing.T) {
	w := newWire(t, nil, nil)
	if err := w.store.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	// In order: a pair of surrogates stands before what is above them.
	keys := []string{
		"", " ", "  ", " a ", "!", `"`, "$1", "%", "%2527", "%27", "&=;@*", "'", "''", "',RowKey='", "(", ")", "+", ",", "a", "a b", "a%20b", "a+b",
		"cafe\u0301", "caf\u00e9", strings.Repeat("k", 1024), "\u00e9", "\u212a", strings.Repeat("😀", 512), "\ufb01", "\uffff",
	}
	for _, key := range keys {
		t.Run(fmt.Sprintf("%.20q", key), func(t *testing.T) {
			w.t = t
			body := fmt.Sprintf(`{"PartitionKey":%s,"RowKey":%[1]s}`, jsonText(key))
			insert := trial{method: "POST", path: "/People", body: body, headers: "Prefer: return-no-content\r\n"}
			raw, res := w.exchange(insert.bytes(w))
			if res == nil || res.StatusCode != http.StatusNoContent {
				t.Fatalf("insert: %s", raw)
			}
			link := strings.TrimPrefix(res.Header.Get("Location"), "http://127.0.0.1:10002/"+wireAccount)
			quoted := url.PathEscape("'" + strings.ReplaceAll(key, "'", "''") + "'")
			for _, path := range []string{link, "/People(PartitionKey=" + quoted + ",RowKey=" + quoted + ")"} {
				get := trial{method: "GET", path: path}
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

// jsonText is s as JSON has it, all in escapes.
func jsonText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, unit := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, `\u%04x`, unit)
	}
	b.WriteByte('"')
	return b.String()
}

// TestConditions states conditions that cannot be met, or cannot be read: E1.
func TestConditions(t *testing.T) {
	const unread, unmet = "400 InvalidInput", "412 UpdateConditionNotSatisfied"
	stale := string(edm.TicksOf(testTime.AddDate(-1, 0, 0)).ETag())
	var trials []trial
	for _, c := range []struct{ headers, want string }{
		{"If-Match: \r\n", unread},
		{"If-Match: \"2021\"\r\n", unread},
		{"If-Match: 2021\r\n", unread},
		{"If-Match: W/2021\r\n", unread},
		{"If-Match: W/\"\r\n", unread},
		{"If-Match: W/\"a\r\n", unread},
		{"If-Match: W/\"a\" x\r\n", unread},
		{"If-Match: W/\"a\",W/\"b\"\r\n", unread},
		{"If-Match: *\r\nIf-Match: *\r\n", unread},
		{"If-Match: **\r\n", unread},
		{"If-Match: " + strings.Repeat("x", 20<<10) + "\r\n", unread},
		{"If-Match: W/\"" + strings.Repeat("x", 20<<10) + "\"\r\n", unmet},
		{"If-Match: W/\"datetime'2021-06-17T16%253A54%253A23Z'\"\r\n", unmet},
		{"If-Match: " + stale + "\r\n", unmet},
		{"If-Match: W/\"\"\r\n", unmet},
		{"If-Match: W/'a'\r\n", unread},
		{"If-None-Match: *\r\n", unread},
		{"If-Match: *\r\nIf-None-Match: *\r\n", unread},
	} {
		for _, method := range []string{"PUT", "PATCH", "MERGE", "DELETE"} {
			one := trial{name: fmt.Sprintf("%s %.40q", method, c.headers), method: method, path: "/People(PartitionKey='a',RowKey='1')", headers: c.headers, want: c.want}
			if method != "DELETE" {
				one.body = "{}"
			}
			trials = append(trials, one)
		}
	}
	trials = append(trials, trial{name: "DELETE without", method: "DELETE", path: "/People(PartitionKey='a',RowKey='1')", want: unread})
	attack(t, trials)
}

// TestIncarnations holds the ETag of an entity that was deleted against the one
// that has its key: E1.
func TestIncarnations(t *testing.T) {
	w := newPeople(t)
	const path = "/People(PartitionKey='a',RowKey='1')"
	etag := func() string {
		get := trial{method: "GET", path: path}
		_, res := w.exchange(get.bytes(w))
		return res.Header.Get("Etag")
	}
	first := etag()
	for _, c := range []trial{
		{method: "DELETE", path: path, headers: "If-Match: " + first + "\r\n", want: "204"},
		{method: "POST", path: "/People", body: `{"PartitionKey":"a","RowKey":"1","Age":39}`, want: "201"},
		{method: "PUT", path: path, body: "{}", headers: "If-Match: " + first + "\r\n", want: "412 UpdateConditionNotSatisfied"},
	} {
		if got := verdict(w.exchange(c.bytes(w))); got != c.want {
			t.Fatalf("%s %s: %s, want %s", c.method, c.path, got, c.want)
		}
	}
	if second := etag(); second == first {
		t.Errorf("both have the ETag %s, by a clock that stood still", first)
	}
}
