package server_test

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// testRequest is a request that the server must refuse, or accept without harm.
type testRequest struct {
	name         string
	method, path string // path is unescaped, and without the account
	headers      string // lines, each with CR LF
	body         string
	raw          string // if not "", the whole request
	want         string // status and code of the response, such as "400 InvalidInput"; "closed" if there is none
}

// signedHeaders are the first headers of every request without raw.
const signedHeaders = "Host: 127.0.0.1:10002\r\nx-ms-date: Thu, 17 Jun 2021 16:54:23 GMT\r\n" +
	"Authorization: SharedKey devstoreaccount1:{signature}\r\nx-ms-version: 2019-02-02\r\nAccept: application/json\r\n"

// bytes returns the bytes of the request.
func (c *testRequest) bytes(w *wire) string {
	if c.raw != "" {
		return c.raw
	}
	head := c.method + " /" + wireAccount + c.path + " HTTP/1.1\r\n" + signedHeaders + c.headers
	if c.body != "" && !strings.Contains(strings.ToLower(c.headers), "content-length") {
		if !strings.Contains(strings.ToLower(c.headers), "content-type") {
			head += "Content-Type: application/json\r\n"
		}
		head += fmt.Sprintf("Content-Length: %d\r\n", len(c.body))
	}
	return w.sign(head) + "\r\n" + c.body
}

// sign replaces {signature} in the head of a request.
func (w *wire) sign(head string) string {
	text := w.rawRequest(strings.TrimSuffix(strings.ReplaceAll(head, "\r\n", "\n"), "\n"))
	return strings.TrimSuffix(text, "\r\n")
}

// sendAll sends the requests. After each it checks that the store did not change, that the
// server still serves a valid request, and that response and event have no secret.
func sendAll(t *testing.T, requests []testRequest) {
	t.Helper()
	w := newPeopleServer(t)
	for _, c := range requests {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			before := fingerprint(t, w.store)
			request := c.bytes(w)
			allocated := allocatedBytes()
			raw, res := w.exchange(request)
			allocated = allocatedBytes() - allocated
			if got := outcome(raw, res); got != c.want {
				t.Errorf("%s\ngot %s\nwant %s", shown(request), got, c.want)
			}
			// This includes the allocations of the client.
			if limit := uint64(16*len(request) + 8<<20); allocated > limit {
				t.Errorf("%s\n%d bytes allocated, want at most %d", shown(request), allocated, limit)
			}
			w.checkNoSecrets(request, string(raw))
			if after := fingerprint(t, w.store); after != before {
				t.Errorf("%s\nchanged the store", shown(request))
			}
			w.checkServes()
		})
	}
}

// shown returns a request for a message.
func shown(request string) string {
	if len(request) > 2000 {
		return fmt.Sprintf("%q... of %d bytes", request[:2000], len(request))
	}
	return fmt.Sprintf("%q", request)
}

// errorCode matches the code in an error document in JSON or XML.
var errorCode = regexp.MustCompile(`"code":"(\w+)"|<(?:m:)?code>(\w+)<`)

// outcome returns the status and the code of a response.
func outcome(raw []byte, res *http.Response) string {
	if res == nil {
		return "closed"
	}
	m := errorCode.FindSubmatch(raw)
	if m == nil {
		return fmt.Sprint(res.StatusCode)
	}
	return fmt.Sprintf("%d %s%s", res.StatusCode, m[1], m[2])
}

// newPeopleServer starts a server whose table People has one entity, a, 1.
func newPeopleServer(t *testing.T) *wire {
	t.Helper()
	return newPeopleServerTLS(t, nil)
}

// newPeopleServerTLS is newPeopleServer with a certificate, or nil for none.
func newPeopleServerTLS(t *testing.T, secured *tls.Config) *wire {
	t.Helper()
	w := newWire(t, nil, secured)
	if secured != nil {
		w.tls = &tls.Config{InsecureSkipVerify: true} // the connection is on loopback
	}
	if err := w.store.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	e := edm.Entity{Key: edm.Key{Partition: "a", Row: "1"}, Properties: edm.Properties{{Name: "Age", Value: edm.Int32(39)}}}
	if _, err := w.store.Apply(t.Context(), "People", store.Insert(e)); err != nil {
		t.Fatal(err)
	}
	return w
}

// goodRequest is a valid request for that entity.
const goodRequest = "GET /devstoreaccount1/People(PartitionKey='a',RowKey='1') HTTP/1.1\r\n" + signedHeaders

// checkServes checks that the server serves a valid request.
func (w *wire) checkServes() {
	w.t.Helper()
	if raw, res := w.exchange(w.sign(goodRequest) + "\r\n"); res == nil || res.StatusCode != http.StatusOK {
		w.t.Fatalf("the response to a valid request is %q", raw)
	}
}

// secretPattern matches the secrets of a request.
var secretPattern = regexp.MustCompile(`(?:SharedKey(?:Lite)? \w+:|[?&]sig=|Bearer )([^\s&]{16,})`)

// checkNoSecrets checks that response and events have no key, no signature and no stack.
func (w *wire) checkNoSecrets(request, response string) {
	w.t.Helper()
	secrets := []string{wireKey, testKey}
	head, _, _ := strings.Cut(request, "\r\n\r\n")
	for _, m := range secretPattern.FindAllStringSubmatch(head, -1) {
		secrets = append(secrets, m[1])
	}
	public := response
	for _, e := range w.takeEvents() {
		public += fmt.Sprintf("%+v", e)
	}
	for _, s := range secrets {
		if strings.Contains(public, s) {
			w.t.Errorf("%s\na secret is in the response or the event: %s", shown(request), public)
		}
	}
	for _, s := range []string{"goroutine ", ".go:"} {
		if strings.Contains(response, s) {
			w.t.Errorf("%s\na stack is in the response: %s", shown(request), response)
		}
	}
}

// allocatedBytes returns the number of bytes that the process has allocated since it started.
func allocatedBytes() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// fingerprint returns a hash of all data and metadata of a store.
func fingerprint(t *testing.T, s store.Store) string {
	t.Helper()
	h := sha256.New()
	meta, err := s.AccountMeta(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(h, "%q\n", meta)
	tables, err := s.Tables(t.Context(), "", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if meta, err = s.TableMeta(t.Context(), table.Name); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(h, "%q %d %q\n", table.Name, table.Created, meta)
		hashEntities(t, s, table.Name, h)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func hashEntities(t *testing.T, s store.Store, table string, h hash.Hash) {
	t.Helper()
	for e, err := range store.Entities(s.Query(t.Context(), table, store.Query{})) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(h, "%q %d", e.Key, e.Timestamp)
		for _, p := range e.Properties {
			fmt.Fprintf(h, " %q %v", p.Name, p.Value)
		}
		_, _ = io.WriteString(h, "\n")
	}
}

// TestTableNames creates and queries tables with invalid names.
func TestTableNames(t *testing.T) {
	const invalid, length = "400 InvalidResourceName", "400 OutOfRangeInput"
	var requests []testRequest
	for _, c := range []struct{ name, want string }{
		{"ab", length},
		{strings.Repeat("a", 64), length},
		{strings.Repeat("a", 10<<10), length},
		{"1ab", invalid},
		{"my-table", invalid},
		{"my_table", invalid},
		{"my.table", invalid},
		{"a..", invalid},
		{"../../etc/passwd", invalid},
		{"..%5cetc", invalid},
		{`a\u0000b`, invalid},
		{"Tables", "400 InvalidInput"},
		{"TABLES", "400 InvalidInput"},
		{"Peopleſ", invalid},
		{"İstanbul", invalid},
		{"\u212Aelvin", invalid},
		{"Ｐｅｏｐｌｅ", invalid},
		{"People.", invalid},
		{"People ", invalid},
	} {
		requests = append(requests, testRequest{
			name: fmt.Sprintf("create %.20s %d", c.name, len(c.name)), method: "POST", path: "/Tables", body: `{"TableName":"` + c.name + `"}`, want: c.want,
		})
	}
	for _, c := range []struct{ path, want string }{
		{"/ab()", length},
		{"/my_table()", invalid},
		{"/" + strings.Repeat("a", 10<<10), length},
		{"/%2e%2e%2f%2e%2e%2fetc()", invalid},
		{"/..%5c..%5cetc()", invalid},
		{"/../../etc()", "400 InvalidUri"},
		{"/a%00b()", "400"},
		{"/%E2%84%AAelvin()", invalid},
		{"/Tables('%2e%2e%2f')", invalid},
		{"/People.()", invalid},
		{"/People%20()", invalid},
		{"/People%00()", "400"},
		{"//People()", "400 InvalidUri"},
		{"/People%2F()", invalid},
		{"/People%2f", invalid},
		{"/People/%2F()", invalid},
		{"/a%2F()", length},
	} {
		requests = append(requests, testRequest{name: fmt.Sprintf("query %.30s", c.path), method: "GET", path: c.path, want: c.want})
	}
	sendAll(t, requests)
}

// TestSlashInTableName sends writes and other requests to a table whose name has escaped
// slashes, as the Python client does. Only a slash that is not escaped divides a path.
func TestSlashInTableName(t *testing.T) {
	const key = "(PartitionKey='a%2Fb',RowKey='2')"
	const invalid, body = "400 InvalidResourceName", `{"PartitionKey":"a","RowKey":"2"}`
	inBatch := operation("PATCH", "http://127.0.0.1:10002/devstoreaccount1/a%2F%2F(PartitionKey='a',RowKey='2')", "Content-Type: application/json\r\n", "{}")
	sendAll(t, []testRequest{
		{name: "insert", method: "POST", path: "/a%2F%2F", body: body, want: invalid},
		{name: "merge", method: "PATCH", path: "/a%2F%2F(PartitionKey='a',RowKey='2')", body: "{}", want: invalid},
		{name: "delete", method: "DELETE", path: "/a%2F%2F(PartitionKey='a',RowKey='2')", headers: "If-Match: *\r\n", want: invalid},
		{name: "policies", method: "GET", path: "/a%2F%2F?comp=acl", want: invalid},
		batch("batch", changeset(inBatch), "202 InvalidResourceName"),
		{name: "a slash in a key", method: "GET", path: "/People" + key, want: "400 InvalidInput"},
		{name: "a slash in a key, and the parenthesis is escaped", method: "GET", path: "/People" + strings.Replace(key, "(", "%28", 1), want: "400 InvalidInput"},
		{name: "a slash in a key below a table", method: "GET", path: "/a/b" + key, want: "400 InvalidUri"},
		{name: "slashes that are not escaped", method: "POST", path: "/a/b", body: body, want: "400 InvalidUri"},
	})
}

// TestDeviceNames creates tables whose names are special in some file systems.
func TestDeviceNames(t *testing.T) {
	w := newPeopleServer(t)
	for _, name := range []string{"CON", "NUL", "AUX", "com1", "etcpasswd"} {
		c := testRequest{method: "POST", path: "/Tables", body: `{"TableName":"` + name + `"}`}
		if raw, res := w.exchange(c.bytes(w)); res == nil || res.StatusCode != http.StatusCreated {
			t.Errorf("create %s: %s", name, raw)
		}
	}
}

// TestTableRaces creates and deletes tables concurrently, whose names differ in case. At
// most one of them may exist, and every status must be one of four.
func TestTableRaces(t *testing.T) {
	w := newPeopleServer(t)
	var group sync.WaitGroup
	for i, name := range []string{"racing", "RACING", "Racing", "rAcInG"} {
		group.Go(func() {
			create := testRequest{method: "POST", path: "/Tables", body: `{"TableName":"` + name + `"}`}
			remove := testRequest{method: "DELETE", path: "/Tables('" + name + "')"}
			for range 20 {
				_, res := w.exchange(create.bytes(w))
				if res == nil || res.StatusCode != http.StatusCreated && res.StatusCode != http.StatusConflict {
					t.Errorf("create %s: %v", name, res)
				}
				if i%2 == 0 {
					continue
				}
				_, res = w.exchange(remove.bytes(w))
				if res == nil || res.StatusCode != http.StatusNoContent && res.StatusCode != http.StatusNotFound {
					t.Errorf("delete %s: %v", name, res)
				}
			}
		})
	}
	group.Wait()
	tables, err := w.store.Tables(t.Context(), "racing", 2)
	if err != nil || len(tables) > 1 {
		t.Errorf("tables %v, error %v; want at most one", tables, err)
	}
}

// TestAccounts sends requests to other accounts than the one in the signature.
func TestAccounts(t *testing.T) {
	const refused, uri = "403 AuthenticationFailed", "400 InvalidUri"
	get := func(name, target, host, want string) testRequest {
		head := "GET " + target + " HTTP/1.1\r\n" + strings.Replace(signedHeaders, "127.0.0.1:10002", host, 1)
		return testRequest{name: name, raw: head, want: want}
	}
	const ip = "127.0.0.1:10002"
	requests := []testRequest{
		get("another account in the path", "/other/People()", ip, refused),
		get("another account in the host", "/People()", "other.table.localhost", refused),
		get("one in the host, one in the path", "/devstoreaccount1/People()", "devstoreaccount1.table.localhost", "400 InvalidUri"),
		get("no account", "/", ip, uri),
		get("an empty account", "//People()", ip, uri),
		get("the parent of all accounts", "/../People()", ip, refused),
		get("the same, percent-encoded", "/%2e%2e/People()", ip, refused),
		get("a slash in the account", "/devstoreaccount1%2FPeople()", ip, uri),
		get("an account in capitals", "/DEVSTOREACCOUNT1/People()", ip, refused),
		get("only a suffix", "/-secondary/People()", ip, uri),
		get("an absolute URL", "http://127.0.0.1:10002/devstoreaccount1/People()", ip, "200"),
		get("an absolute URL of another host", "http://other.table.localhost/People()", ip, refused),
		get("a star", "*", ip, refused),
	}
	w := newWire(t, nil, nil)
	for i := range requests {
		// Only the path of a URL is signed.
		method, rest, _ := strings.Cut(requests[i].raw, " ")
		host, path := "", rest
		if at, ok := strings.CutPrefix(rest, "http://"); ok {
			host, path, _ = strings.Cut(at, "/")
			host, path = "http://"+host, "/"+path
		}
		signed := w.sign(method + " " + path)
		requests[i].raw = strings.Replace(signed, method+" ", method+" "+host, 1) + "\r\n"
	}
	sendAll(t, requests)
}
