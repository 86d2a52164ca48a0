package server_test

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// offered is an operation of the protocol, and every way to ask for it.
type offered struct {
	name     string
	methods  []string // "POST+MERGE" is a POST that carries MERGE in X-HTTP-Method
	path     string
	headers  string
	body     string
	levels   bool // its answer has levels of metadata
	document bool // its body is XML
}

// matrix is every operation of the protocol, in the order of the README.
var matrix = []offered{
	{name: "Create Table", methods: []string{"POST"}, path: "/Tables", body: `{"TableName":"Places"}`, levels: true},
	{name: "Query Tables", methods: []string{"GET"}, path: "/Tables?$filter=TableName%20ge%20'A'&$top=1", levels: true},
	{name: "Get Table", methods: []string{"GET"}, path: "/Tables('People')", levels: true},
	{name: "Delete Table", methods: []string{"DELETE"}, path: "/Tables('People')"},
	{name: "Get Table ACL", methods: []string{"GET"}, path: "/People?comp=acl", document: true},
	{name: "Set Table ACL", methods: []string{"PUT"}, path: "/People?comp=acl", body: "<SignedIdentifiers />", document: true},
	{name: "Query Entities", methods: []string{"GET"}, path: "/People()?$filter=Age%20gt%201&$select=Age&$top=1", levels: true},
	{name: "Get Entity", methods: []string{"GET"}, path: entityPath, levels: true},
	{name: "Insert Entity", methods: []string{"POST"}, path: "/People", body: `{"PartitionKey":"a","RowKey":"2"}`, levels: true},
	{name: "Update Entity", methods: []string{"PUT", "POST+PUT"}, path: entityPath, headers: "If-Match: *\r\n", body: "{}"},
	{name: "Merge Entity", methods: []string{"PATCH", "MERGE", "POST+PATCH", "POST+MERGE"}, path: entityPath, headers: "If-Match: *\r\n", body: "{}"},
	{name: "Insert Or Replace Entity", methods: []string{"PUT", "POST+PUT"}, path: entityPath, body: "{}"},
	{name: "Insert Or Merge Entity", methods: []string{"PATCH", "MERGE", "POST+PATCH", "POST+MERGE"}, path: entityPath, body: "{}"},
	{name: "Delete Entity", methods: []string{"DELETE", "POST+DELETE"}, path: entityPath, headers: "If-Match: *\r\n"},
	{name: "Entity Group Transaction", methods: []string{"POST"}, path: "/$batch", headers: "Content-Type: multipart/mixed; boundary=o\r\n", body: changeset(put("a", "2"))},
	{name: "Get Table Service Properties", methods: []string{"GET"}, path: "/?restype=service&comp=properties", document: true},
	{name: "Set Table Service Properties", methods: []string{"PUT"}, path: "/?restype=service&comp=properties", body: "<StorageServiceProperties><Cors /></StorageServiceProperties>", document: true},
	{name: "Get Table Service Stats", methods: []string{"GET"}, path: "/?restype=service&comp=stats", document: true},
}

const entityPath = "/People(PartitionKey='a',RowKey='1')"

// manner is a way to ask: who asks, and where.
type manner struct {
	name      string
	credence  func(w *wire, head, query string) (line, parameters string) // the header and the query parameters of the asker
	secured   bool
	secondary bool
}

var manners = []manner{
	{name: "Shared Key", credence: byKey((*sharedkey.Credential).SharedKey)},
	{name: "Shared Key Lite", credence: byKey((*sharedkey.Credential).SharedKeyLite)},
	{name: "table SAS", credence: func(w *wire, _, _ string) (string, string) {
		sas, err := w.credential.TableSAS(sharedkey.TableSAS{Table: "People", Permissions: "raud", Expiry: "2021-06-18"})
		if err != nil {
			w.t.Fatal(err)
		}
		return "", sas
	}},
	{name: "account SAS", credence: func(w *wire, _, _ string) (string, string) {
		sas, err := w.credential.AccountSAS(sharedkey.AccountSAS{ResourceTypes: "sco", Permissions: "rwdlacu", Expiry: "2021-06-18"})
		if err != nil {
			w.t.Fatal(err)
		}
		return "", sas
	}},
	{name: "bearer, TLS", secured: true, credence: func(*wire, string, string) (string, string) {
		part := base64.RawURLEncoding.EncodeToString
		claims := fmt.Sprintf(`{"iss":"https://sts.windows.net/00000000-0000-0000-0000-000000000001/","aud":"https://storage.azure.com","exp":%d}`, testTime.Unix()+3600)
		return "Authorization: Bearer " + part([]byte(`{"alg":"RS256"}`)) + "." + part([]byte(claims)) + "." + part([]byte("x")) + "\r\n", ""
	}},
	{name: "secondary", credence: byKey((*sharedkey.Credential).SharedKey), secondary: true},
}

// byKey signs by a key.
func byKey(sign func(*sharedkey.Credential, *sharedkey.Request) (string, error)) func(*wire, string, string) (string, string) {
	return func(w *wire, head, query string) (string, string) {
		lines := strings.Split(strings.TrimSuffix(head, "\r\n"), "\r\n")
		method, rest, _ := strings.Cut(lines[0], " ")
		path, _, _ := strings.Cut(rest, "?")
		path, _, _ = strings.Cut(path, " ")
		r := sharedkey.Request{Method: method, Path: path, RawQuery: query, Header: http.Header{}}
		for _, line := range lines[1:] {
			name, value, _ := strings.Cut(line, ": ")
			r.Header.Add(name, value)
		}
		signed, err := sign(w.credential, &r)
		if err != nil {
			w.t.Fatal(err)
		}
		return "Authorization: " + signed + "\r\n", ""
	}
}

// allows reports whether the server does o for this manner of asking.
func (m *manner) allows(t *testing.T, o *offered, method, accept string) bool {
	t.Helper()
	var secured *tls.Config
	if m.secured {
		secured = testCertificate()
	}
	w := newPeopleOver(t, secured)
	method, tunnelled, _ := strings.Cut(method, "+")
	path, query, _ := strings.Cut(o.path, "?")
	account := "/" + wireAccount
	if m.secondary {
		account += "-secondary"
	}
	head := method + " " + account + path + "?" + query + " HTTP/1.1\r\nHost: 127.0.0.1:10002\r\nx-ms-date: Thu, 17 Jun 2021 16:54:23 GMT\r\nx-ms-version: 2019-02-02\r\nAccept: " + accept + "\r\n" + o.headers
	if tunnelled != "" {
		head += "X-HTTP-Method: " + tunnelled + "\r\n"
	}
	if o.body != "" {
		kind := "application/json"
		if o.document {
			kind = "application/xml"
		}
		if !strings.Contains(o.headers, "Content-Type") {
			head += "Content-Type: " + kind + "\r\n"
		}
		head += fmt.Sprintf("Content-Length: %d\r\n", len(o.body))
	}
	line, parameters := m.credence(w, head, query)
	if parameters != "" {
		head = strings.Replace(head, " HTTP/1.1", "&"+parameters+" HTTP/1.1", 1)
	}
	raw, res := w.exchange(head + line + "\r\n" + o.body)
	return w.done(o.name, raw, res)
}

// done reports whether an answer is a success. Another one has to be a refusal.
func (w *wire) done(what string, raw []byte, res *http.Response) bool {
	w.t.Helper()
	if res == nil || res.StatusCode >= http.StatusInternalServerError {
		w.t.Fatalf("%s: %s", what, raw)
	}
	return res.StatusCode < http.StatusBadRequest && !strings.Contains(string(raw), "\r\n\r\nHTTP/1.1 4")
}

// batched reports whether o can stand in a batch.
func (o *offered) batched(t *testing.T, method string) bool {
	t.Helper()
	w := newPeople(t)
	method, tunnelled, _ := strings.Cut(method, "+")
	headers := o.headers
	if tunnelled != "" {
		headers += "X-HTTP-Method: " + tunnelled + "\r\n"
	}
	if o.body != "" {
		headers += "Content-Type: application/json\r\n"
	}
	text := operation(method, "/"+wireAccount+o.path, headers, o.body)
	body := changeset(text)
	if method == http.MethodGet {
		body = "--o\r\n" + text + "\r\n--o--\r\n"
	}
	envelope := batch("", body, "")
	raw, res := w.exchange(envelope.bytes(w))
	return w.done(o.name, raw, res)
}

// row tries o in every way.
func (o *offered) row(t *testing.T) string {
	t.Helper()
	cells := []string{o.name, "`" + strings.Join(o.methods, "`, `") + "`"}
	levels := []string{"-"}
	if o.levels {
		levels = nil
		for _, level := range []string{"nometadata", "minimalmetadata", "fullmetadata"} {
			if manners[0].allows(t, o, o.methods[0], "application/json;odata="+level) {
				levels = append(levels, strings.TrimSuffix(level, "metadata"))
			}
		}
	}
	cells = append(cells, strings.Join(levels, ", "))
	for _, m := range manners {
		cells = append(cells, answerCell(t, o, func(method string) bool { return m.allows(t, o, method, "application/json") }))
	}
	cells = append(cells, answerCell(t, o, func(method string) bool { return o.batched(t, method) }))
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// answerCell is what a way of asking comes to, which is the same for all methods.
func answerCell(t *testing.T, o *offered, try func(method string) bool) string {
	t.Helper()
	first := try(o.methods[0])
	for _, method := range o.methods[1:] {
		if try(method) != first {
			t.Errorf("%s by %s is not answered as by %s", o.name, method, o.methods[0])
		}
	}
	if first {
		return "yes"
	}
	return "no"
}

// The support matrix of the README stands between these lines.
const (
	matrixBegin = "<!-- The table is written by: go test ./server -run TestSupportMatrix -rewrite -->\n"
	matrixEnd   = "<!-- end of the table -->\n"
)

// TestSupportMatrix tries every operation in every way and holds what comes of it
// against the table in the README, or with -rewrite writes it there.
func TestSupportMatrix(t *testing.T) {
	const file = "../README.md"
	names := make([]string, 0, len(manners))
	for _, m := range manners {
		names = append(names, m.name)
	}
	var b strings.Builder
	b.WriteString("\n| operation | method | metadata | " + strings.Join(names, " | ") + " | in a batch |\n")
	b.WriteString(strings.Repeat("|---", len(names)+4) + "|\n")
	for i := range matrix {
		b.WriteString(matrix[i].row(t))
	}
	b.WriteString("\n")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), matrixBegin)
	old, after, end := strings.Cut(rest, matrixEnd)
	switch {
	case !ok || !end:
		t.Fatalf("%s has no place for the table: %s...%s", file, matrixBegin, matrixEnd)
	case old == b.String():
	case *rewrite:
		if err := os.WriteFile(file, []byte(before+matrixBegin+b.String()+matrixEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table in %s is not what the server does; the server does\n%s", file, b.String())
	}
}
