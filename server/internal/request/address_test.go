package request

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

func TestAddressOf(t *testing.T) {
	for _, c := range []struct {
		host, path string
		want       Address
	}{
		{"127.0.0.1:10002", "/acct/T", Address{"acct", false, false, "T"}},
		{"localhost", "/acct", Address{"acct", false, false, ""}},
		{"[::1]:10002", "/acct-secondary/T()", Address{"acct", true, false, "T()"}},
		{"127.0.0.1:10002", "/acct-secondary/acct/", Address{"acct", true, false, ""}},
		{"127.0.0.1:10002", "/acct-secondary/acct/Tables", Address{"acct", true, false, "Tables"}},
		{"127.0.0.1:10002", "/acct-secondary/acct()", Address{"acct", true, false, "acct()"}},
		{"127.0.0.1:10002", "/acct//$batch", Address{"acct", false, false, "$batch"}},
		{"127.0.0.1:10002", "/acct//Tables", Address{"acct", false, false, "/Tables"}},
		{"127.0.0.1:10002", "/acct///$batch", Address{"acct", false, false, "//$batch"}},
		{"acct.table.localhost:10002", "//$batch", Address{"acct", false, true, "/$batch"}},
		{"127.0.0.1:10002", "/acct/acct/Tables", Address{"acct", false, false, "acct/Tables"}},
		{"acct.table.localhost:10002", "/T", Address{"acct", false, true, "T"}},
		{"ACCT.Table.core.windows.net", "/Tables", Address{"acct", false, true, "Tables"}},
		{"acct-secondary.table.localhost", "/", Address{"acct", true, true, ""}},
		{"rock.example.org", "/acct/T", Address{"acct", false, false, "T"}},
		{"acct.table:10002", "/a/T", Address{"a", false, false, "T"}},
		{"acct.table.", "/a/T", Address{"a", false, false, "T"}},
		{"acct.table.:10002", "/a/T", Address{"a", false, false, "T"}},
		{"acct:a.table.localhost", "/a/T", Address{"a", false, false, "T"}},
		{"acct.Table.localhost", "/T", Address{"acct", false, true, "T"}},
		{"[acct.table.localhost]:1", "/T", Address{"acct", false, true, "T"}},
		{"tablerock.table.svc:10002", "/acct/T", Address{"acct", false, false, "T"}},
		{"tablerock.table.svc.cluster.local", "/acct/T", Address{"acct", false, false, "T"}},
		{"tablerock.table.SVC.cluster.local.:80", "/acct/T", Address{"acct", false, false, "T"}},
		{"tablerock-0.table.default.svc.cluster.local", "/acct/T", Address{"acct", false, false, "T"}},
		{"acct.table.default.example", "/T", Address{"acct", false, true, "T"}},
		{"", "/", Address{}},
	} {
		if got := AddressOf(c.host, c.path); got != c.want {
			t.Errorf("AddressOf(%q, %q) = %+v, want %+v", c.host, c.path, got, c.want)
		}
	}
}

func TestParseTarget(t *testing.T) {
	key := func(partition, row string) Target {
		return Target{Entity, "T", edm.Key{Partition: partition, Row: row}}
	}
	for _, c := range []struct {
		rest, raw, comp string
		want            Target
		err             error
	}{
		{rest: "", want: Target{Kind: ServiceRoot}},
		{rest: "$batch", want: Target{Kind: Batch}},
		{rest: "$metadata", want: Target{Kind: Schema}},
		{rest: "Tables", want: Target{Kind: Tables}},
		{rest: "Tables/", want: Target{Kind: Tables}},
		{rest: "Tables()", want: Target{Kind: Tables}},
		{rest: "Tables('x')", want: Target{Kind: Table, Table: "x"}},
		{rest: "Tables('x", err: ErrSyntax},
		{rest: "Tables('x')y", err: ErrSyntax},
		{rest: "tables", want: Target{Kind: Entities, Table: "tables"}},
		{rest: "T", want: Target{Kind: Entities, Table: "T"}},
		{rest: "T()", want: Target{Kind: Entities, Table: "T"}},
		{rest: "T", comp: "acl", want: Target{Kind: TableACL, Table: "T"}},
		{rest: "T(PartitionKey='a',RowKey='b')", want: key("a", "b")},
		{rest: "T(RowKey='b',PartitionKey='a')", want: key("a", "b")},
		{rest: "T(PartitionKey='a', RowKey='b')", want: key("a", "b")},
		{rest: "T(PartitionKey='',RowKey='')", want: key("", "")},
		{rest: "T(PartitionKey='a'',RowKey=''b',RowKey='c')", want: key("a',RowKey='b", "c")},
		{rest: "T(PartitionKey='a/b',RowKey='c')", want: key("a/b", "c")},
		{rest: "T(PartitionKey='a',RowKey='b'", err: ErrSyntax},
		{rest: "T(PartitionKey='a',PartitionKey='b')", err: ErrSyntax},
		{rest: "T(PartitionKey='a')", err: ErrSyntax},
		{rest: "T(PartitionKey='a',RowKey='b',X='c')", err: ErrSyntax},
		{rest: "T(partitionkey='a',RowKey='b')", err: ErrSyntax},
		{rest: "T(1)", err: ErrSyntax},
		{rest: "T\xff", err: ErrSyntax},
		{rest: "T/Tables", want: Target{Kind: Misplaced, Table: "T"}},
		{rest: "T/Tables('T')", want: Target{Kind: Misplaced, Table: "T"}},
		{rest: "T/$batch", want: Target{Kind: Misplaced, Table: "T"}},
		{rest: "a/b", err: ErrNoResource},
		{rest: "a/b/", raw: "/acct/a%2fb%2F", want: Target{Kind: Entities, Table: "a/b/"}},
		{rest: "a/b(PartitionKey='/',RowKey='')", raw: "/acct/a/b(PartitionKey='%2F',RowKey='')", err: ErrNoResource},
		{rest: "T/Tablesx", err: ErrNoResource},
		{rest: "T/T/Tables", err: ErrNoResource},
		{rest: "Tables/Tables", err: ErrNoResource},
		{rest: "$batch/$batch", err: ErrNoResource},
		{rest: "/Tables", err: ErrNoResource},
		{rest: "T" + strings.Repeat("(", 100_000), err: ErrSyntax},
	} {
		got, err := ParseTarget(c.rest, c.raw, c.comp)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("ParseTarget(%.60q, %q) = %+v, %v, want %+v, %v", c.rest, c.comp, got, err, c.want, c.err)
		}
	}
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		"Smith":   "1!8!U21pdGg-",
		"Ben1898": "1!12!QmVuMTg5OA--",
		"":        "1!0!",
		"ÿ>>??":   "1!8!w78.Pj8_",
	} {
		token := string(AppendToken(nil, text))
		if token != want {
			t.Errorf("token of %q is %q, want %q", text, token, want)
		}
		if back, err := parseToken(token); back != text || err != nil {
			t.Errorf("parseToken(%q) = %q, %v", token, back, err)
		}
	}
	for _, token := range []string{"x", "1!8!U21pdGg", "1!7!U21pdGg-", "2!8!U21pdGg-", "1!08!U21pdGg-", "1!4!/w--", "1!4!!!!!", "1!4!_w--"} {
		if text, err := parseToken(token); !errors.Is(err, ErrToken) {
			t.Errorf("parseToken(%q) = %q, %v, want ErrToken", token, text, err)
		}
	}
}

func TestKeyToken(t *testing.T) {
	for _, c := range []struct {
		query string
		want  *edm.Key
		fails bool
	}{
		{query: ""},
		{query: "NextPartitionKey=&NextRowKey="},
		{query: "NextPartitionKey=1!8!U21pdGg-", want: &edm.Key{Partition: "Smith"}},
		{query: "NextPartitionKey=1%218%21U21pdGg-&NextRowKey=1!0!", want: &edm.Key{Partition: "Smith"}},
		{query: "NextPartitionKey=1!8!U21pdGg-&NextRowKey=1!12!QmVuMTg5OA--", want: &edm.Key{Partition: "Smith", Row: "Ben1898"}},
		{query: "NextRowKey=1!8!U21pdGg-", fails: true},
		{query: "NextPartitionKey=1!0!&NextPartitionKey=1!0!", fails: true},
	} {
		query, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		got, err := KeyToken(query)
		if (err != nil) != c.fails || (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("KeyToken(%q) = %v, %v, want %v", c.query, got, err, c.want)
		}
	}
}

func TestTableToken(t *testing.T) {
	token := TableTokenOf(store.TableInfo{Name: "Data17", Created: 0x01d32192bfeef623})
	for text, want := range map[string]string{token: "data17", "Data17": "data17", "": ""} {
		if got, err := TableToken(url.Values{"NextTableName": {text}}); got != want || err != nil {
			t.Errorf("TableToken(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
	if _, err := TableToken(url.Values{"NextTableName": {"1!no"}}); !errors.Is(err, ErrToken) {
		t.Errorf("a forged token gives %v", err)
	}
}

func TestParseQuery(t *testing.T) {
	for raw, want := range map[string]string{
		"":                       "",
		"&&":                     "",
		"a=1&b=%41+c&a=2":        "a=1&a=2&b=A+c",
		"a":                      "a=",
		"%24top=5":               "%24top=5",
		"$format=x/json;odata=y": "%24format=x%2Fjson%3Bodata%3Dy",
		"sig=a%2Bb%3D":           "sig=a%2Bb%3D",
		strings.Repeat("a=1&timeout=2&$top=3&", manyParameters) + "sv=4": "%24top=3&%24top=3&sv=4&timeout=2&timeout=2",
	} {
		if got, err := ParseQuery(raw); got.Encode() != want || err != nil {
			t.Errorf("ParseQuery(%q) = %q, %v, want %q", raw, got.Encode(), err, want)
		}
	}
	for _, raw := range []string{"a=%zz", "%=1", "a;b", "a;b=c", strings.Repeat("a=1&", maxParameters+1)} {
		if got, err := ParseQuery(raw); !errors.Is(err, ErrQuery) {
			t.Errorf("ParseQuery(%.20q) = %v, %v, want ErrQuery", raw, got, err)
		}
	}
}

func TestControls(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"a b/é😀":                   "a b/é😀",
		"a\n\x00\x7f\u0085\u009fb": "a%0a%00%7f%c2%85%c2%9fb",
	} {
		if got := EscapeControls(text); got != want {
			t.Errorf("EscapeControls(%q) = %q, want %q", text, got, want)
		}
	}
	for c, want := range map[rune]bool{0: true, '\t': true, ' ': false, '~': false, 0x7f: true, 0x80: false, 0x81: true, 0x9d: true, 0x9e: false, 'é': false} {
		if got := isControl(c); got != want {
			t.Errorf("isControl(%q) = %v, want %v", c, got, want)
		}
		for _, text := range []string{string(c), "a" + string(c), "\u20ac" + string(c) + "a", "a\xff" + string(c)} {
			if got := HasControl(text); got != want {
				t.Errorf("HasControl(%q) = %v, want %v", text, got, want)
			}
		}
	}
}

func TestTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "timeout=": 0, "timeout=0": 0, "timeout=1": time.Second, "timeout=007": 7 * time.Second, "timeout=30": maxTimeout, "timeout=31": maxTimeout,
		"timeout=" + strings.Repeat("9", 1000): maxTimeout,
	} {
		query, err := ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Timeout(query); got != want || err != nil {
			t.Errorf("%.40q: %v, error %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "-1", "+1", "1.5", "1s", " ", "1 ", "٣", "0x1", "1e1"} {
		if got, err := Timeout(url.Values{"timeout": {text}}); err != ErrTimeout {
			t.Errorf("%q: %v, error %v; want %v", text, got, err, ErrTimeout)
		}
	}
}
