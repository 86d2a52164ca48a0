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

// protocolOperation is an operation of the protocol, with every method for it.
type protocolOperation struct {
	name     string
	methods  []string // "POST+MERGE" is a POST that carries MERGE in X-HTTP-Method
	path     string
	headers  string
	body     string
	levels   bool // the response has levels of metadata
	document bool // the body is XML
}

// matrix has every operation of the protocol, in the order of the README.
var matrix = []protocolOperation{
	{name: "Create Table", methods: []string{"POST"}, path: "/Tables", body: `{"TableName":"Cities"}`, levels: true},
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
	{
		name: "Entity Group Transaction", methods: []string{"POST"}, path: "/$batch", headers: "Content-Type: multipart/mixed; boundary=o\r\n",
		body: changeset(put("a", "2")),
	},
	{name: "Get Table Service Properties", methods: []string{"GET"}, path: "/?restype=service&comp=properties", document: true},
	{
		name: "Set Table Service Properties", methods: []string{"PUT"}, path: "/?restype=service&comp=properties",
		body: "<StorageServiceProperties><Cors /></StorageServiceProperties>", document: true,
	},
	{name: "Get Table Service Stats", methods: []string{"GET"}, path: "/?restype=service&comp=stats", document: true},
}

const entityPath = "/People(PartitionKey='a',RowKey='1')"

// accessKind is a kind of credentials, or an endpoint.
type accessKind struct {
	name      string
	authorize func(w *wire, head, query string) (line, parameters string) // returns a header or query parameters
	secured   bool
	secondary bool
}

var accessKinds = []accessKind{
	{name: "Shared Key", authorize: byKey((*sharedkey.Credential).SharedKey)},
	{name: "Shared Key Lite", authorize: byKey((*sharedkey.Credential).SharedKeyLite)},
	{name: "table SAS", authorize: func(w *wire, _, _ string) (string, string) {
		sas, err := w.credential.TableSAS(sharedkey.TableSAS{Table: "People", Permissions: "raud", Expiry: "2021-06-18"})
		if err != nil {
			w.t.Fatal(err)
		}
		return "", sas
	}},
	{name: "account SAS", authorize: func(w *wire, _, _ string) (string, string) {
		sas, err := w.credential.AccountSAS(sharedkey.AccountSAS{ResourceTypes: "sco", Permissions: "rwdlacu", Expiry: "2021-06-18"})
		if err != nil {
			w.t.Fatal(err)
		}
		return "", sas
	}},
	{name: "bearer, TLS", secured: true, authorize: func(*wire, string, string) (string, string) {
		encode := base64.RawURLEncoding.EncodeToString
		claims := fmt.Sprintf(`{"iss":"https://sts.windows.net/00000000-0000-0000-0000-000000000001/","aud":"https://storage.azure.com","exp":%d}`,
			testTime.Unix()+3600)
		return "Authorization: Bearer " + encode([]byte(`{"alg":"RS256"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("x")) + "\r\n", ""
	}},
	{name: "secondary", authorize: byKey((*sharedkey.Credential).SharedKey), secondary: true},
}

// byKey signs with the account's key.
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

// allows reports whether the server executes o with these credentials.
func (m *accessKind) allows(t *testing.T, o *protocolOperation, method, accept string) bool {
	t.Helper()
	var secured *tls.Config
	if m.secured {
		secured = testCertificate()
	}
	w := newPeopleServerTLS(t, secured)
	method, tunnelled, _ := strings.Cut(method, "+")
	path, query, _ := strings.Cut(o.path, "?")
	account := "/" + wireAccount
	if m.secondary {
		account += "-secondary"
	}
	head := method + " " + account + path + "?" + query + " HTTP/1.1\r\nHost: 127.0.0.1:10002\r\nx-ms-date: Thu, 17 Jun 2021 16:54:23 " +
		"GMT\r\nx-ms-version: 2019-02-02\r\nAccept: " + accept + "\r\n" + o.headers
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
	line, parameters := m.authorize(w, head, query)
	if parameters != "" {
		head = strings.Replace(head, " HTTP/1.1", "&"+parameters+" HTTP/1.1", 1)
	}
	raw, res := w.exchange(head + line + "\r\n" + o.body)
	return w.succeeded(o.name, raw, res)
}

// succeeded reports whether a response is a success. Any other must be a refusal.
func (w *wire) succeeded(what string, raw []byte, res *http.Response) bool {
	w.t.Helper()
	if res == nil || res.StatusCode >= http.StatusInternalServerError {
		w.t.Fatalf("%s: %s", what, raw)
	}
	return res.StatusCode < http.StatusBadRequest && !strings.Contains(string(raw), "\r\n\r\nHTTP/1.1 4")
}

// batched reports whether a batch can contain o.
func (o *protocolOperation) batched(t *testing.T, method string) bool {
	t.Helper()
	w := newPeopleServer(t)
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
	return w.succeeded(o.name, raw, res)
}

// row executes o in every way and returns its row of the table.
func (o *protocolOperation) row(t *testing.T) string {
	t.Helper()
	cells := []string{o.name, "`" + strings.Join(o.methods, "`, `") + "`"}
	levels := []string{"-"}
	if o.levels {
		levels = nil
		for _, level := range []string{"nometadata", "minimalmetadata", "fullmetadata"} {
			if accessKinds[0].allows(t, o, o.methods[0], "application/json;odata="+level) {
				levels = append(levels, strings.TrimSuffix(level, "metadata"))
			}
		}
	}
	cells = append(cells, strings.Join(levels, ", "), o.atom(t))
	for _, m := range accessKinds {
		cells = append(cells, cell(t, o, func(method string) bool { return m.allows(t, o, method, "application/json") }))
	}
	cells = append(cells, cell(t, o, func(method string) bool { return o.batched(t, method) }))
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// atom tells what o answers to a client that asks for Atom. Documents have no other form
// than XML, and each operation of a batch has its own.
func (o *protocolOperation) atom(t *testing.T) string {
	t.Helper()
	switch {
	case o.document || o.path == "/$batch":
		return "-"
	case accessKinds[0].allows(t, o, o.methods[0], "application/atom+xml"):
		return "yes"
	}
	return "refused"
}

// cell returns yes if o succeeds. The result must be the same for all methods.
func cell(t *testing.T, o *protocolOperation, try func(method string) bool) string {
	t.Helper()
	first := try(o.methods[0])
	for _, method := range o.methods[1:] {
		if try(method) != first {
			t.Errorf("%s by %s differs from %s", o.name, method, o.methods[0])
		}
	}
	if first {
		return "yes"
	}
	return "no"
}

// The support matrix of the README is between these lines.
const (
	matrixBegin = "<!-- The table is written by: go test ./server -run TestSupportMatrix -rewrite -->\n"
	matrixEnd   = "<!-- end of the table -->\n"
)

// TestSupportMatrix executes every operation in every way and compares the results with the
// table in the README, or with -rewrite writes it.
func TestSupportMatrix(t *testing.T) {
	const file = "../README.md"
	names := make([]string, 0, len(accessKinds))
	for _, m := range accessKinds {
		names = append(names, m.name)
	}
	var b strings.Builder
	b.WriteString("\n| operation | method | metadata | Atom | " + strings.Join(names, " | ") + " | in a batch |\n")
	b.WriteString(strings.Repeat("|---", len(names)+5) + "|\n")
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
		t.Fatalf("%s has no lines %s...%s for the table", file, matrixBegin, matrixEnd)
	case old == b.String():
	case *rewrite:
		if err := os.WriteFile(file, []byte(before+matrixBegin+b.String()+matrixEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table in %s is wrong, want\n%s", file, b.String())
	}
}
