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

// trial is a request that a server has to refuse, or to take without harm.
type trial struct {
	name         string
	method, path string // the path is that after the account, byte for byte
	headers      string // lines, each with its end
	body         string
	raw          string // if not "", the whole request
	want         string // "400 InvalidInput", status and code of the answer; "closed" for none
}

// signedHeaders begin every request that is not raw.
const signedHeaders = "Host: 127.0.0.1:10002\r\nx-ms-date: Thu, 17 Jun 2021 16:54:23 GMT\r\n" +
	"Authorization: SharedKey devstoreaccount1:{signature}\r\nx-ms-version: 2019-02-02\r\nAccept: application/json\r\n"

// bytes returns the request as it goes over the wire.
func (c *trial) bytes(w *wire) string {
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

// sign puts the signature into the head of a request.
func (w *wire) sign(head string) string {
	text := w.rawRequest(strings.TrimSuffix(strings.ReplaceAll(head, "\r\n", "\n"), "\n"))
	return strings.TrimSuffix(text, "\r\n")
}

// attack sends the trials. After each, nothing that is stored has changed, a good
// client gets its answer, and neither the answer nor what is told to observers
// holds a secret.
func attack(t *testing.T, trials []trial) {
	t.Helper()
	w := newPeople(t)
	for _, c := range trials {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			before := fingerprint(t, w.store)
			request := c.bytes(w)
			allocated := allocatedBytes()
			raw, res := w.exchange(request)
			allocated = allocatedBytes() - allocated
			if got := verdict(raw, res); got != c.want {
				t.Errorf("%s\ngot %s\nwant %s", shown(request), got, c.want)
			}
			// What the client of this test takes is counted as well.
			if most := uint64(16*len(request) + 8<<20); allocated > most {
				t.Errorf("%s\n%d bytes allocated, at most %d are expected", shown(request), allocated, most)
			}
			w.keepsSecrets(request, string(raw))
			if after := fingerprint(t, w.store); after != before {
				t.Errorf("%s\nchanged what is stored", shown(request))
			}
			w.stillServes()
		})
	}
}

// shown is a request as a message shows it.
func shown(request string) string {
	if len(request) > 2000 {
		return fmt.Sprintf("%q... of %d bytes", request[:2000], len(request))
	}
	return fmt.Sprintf("%q", request)
}

// errorCode finds the code in an error document of either form.
var errorCode = regexp.MustCompile(`"code":"(\w+)"|<(?:m:)?code>(\w+)<`)

// verdict returns the status and the code of an answer.
func verdict(raw []byte, res *http.Response) string {
	if res == nil {
		return "closed"
	}
	m := errorCode.FindSubmatch(raw)
	if m == nil {
		return fmt.Sprint(res.StatusCode)
	}
	return fmt.Sprintf("%d %s%s", res.StatusCode, m[1], m[2])
}

// newPeople starts a server whose table People has one entity, a, 1.
func newPeople(t *testing.T) *wire {
	t.Helper()
	return newPeopleOver(t, nil)
}

// newPeopleOver is newPeople with a certificate, or nil for none.
func newPeopleOver(t *testing.T, secured *tls.Config) *wire {
	t.Helper()
	w := newWire(t, nil, secured)
	if secured != nil {
		w.tls = &tls.Config{InsecureSkipVerify: true} // nobody can stand between a test and itself
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

// goodRequest reads the one entity.
const goodRequest = "GET /devstoreaccount1/People(PartitionKey='a',RowKey='1') HTTP/1.1\r\n" + signedHeaders

// stillServes sends a request that is right.
func (w *wire) stillServes() {
	w.t.Helper()
	if raw, res := w.exchange(w.sign(goodRequest) + "\r\n"); res == nil || res.StatusCode != http.StatusOK {
		w.t.Fatalf("a good request is answered %q", raw)
	}
}

// secretPlaces are where a request has what nobody may be told.
var secretPlaces = regexp.MustCompile(`(?:SharedKey(?:Lite)? \w+:|[?&]sig=|Bearer )([^\s&]{16,})`)

// keepsSecrets looks for keys and signatures where none may be.
func (w *wire) keepsSecrets(request, answer string) {
	w.t.Helper()
	secrets := []string{wireKey, testKey}
	head, _, _ := strings.Cut(request, "\r\n\r\n")
	for _, m := range secretPlaces.FindAllStringSubmatch(head, -1) {
		secrets = append(secrets, m[1])
	}
	told := answer
	for _, e := range w.takeEvents() {
		told += fmt.Sprintf("%+v", e)
	}
	for _, s := range secrets {
		if strings.Contains(told, s) {
			w.t.Errorf("%s\nwas answered, or told to observers, with a secret: %s", shown(request), told)
		}
	}
	for _, s := range []string{"goroutine ", ".go:"} {
		if strings.Contains(answer, s) {
			w.t.Errorf("%s\nwas answered with the inside of the program: %s", shown(request), answer)
		}
	}
}

// allocatedBytes returns what the process has allocated since its start.
func allocatedBytes() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// fingerprint is a hash of all that a store holds.
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

// TestTableNames asks for tables that cannot be: N1.
func TestTableNames(t *testing.T) {
	const invalid, length = "400 InvalidResourceName", "400 OutOfRangeInput"
	var trials []trial
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
		trials = append(trials, trial{
			name: fmt.Sprintf("create %.20s %d", c.name, len(c.name)), method: "POST", path: "/Tables", body: `{"TableName":"` + c.name + `"}`, want: c.want,
		})
	}
	for _, c := range []struct{ path, want string }{
		{"/ab()", length},
		{"/my_table()", invalid},
		{"/" + strings.Repeat("a", 10<<10), length},
		{"/%2e%2e%2f%2e%2e%2fetc()", "400 InvalidUri"},
		{"/..%5c..%5cetc()", invalid},
		{"/../../etc()", "400 InvalidUri"},
		{"/a%00b()", "400"},
		{"/%E2%84%AAelvin()", invalid},
		{"/Tables('%2e%2e%2f')", invalid},
		{"/People.()", invalid},
		{"/People%20()", invalid},
		{"/People%00()", "400"},
		{"//People()", "400 InvalidUri"},
		{"/People%2F()", "400 InvalidUri"},
	} {
		trials = append(trials, trial{name: fmt.Sprintf("query %.30s", c.path), method: "GET", path: c.path, want: c.want})
	}
	attack(t, trials)
}

// TestDeviceNames makes tables whose names mean something to some file systems: N1.
func TestDeviceNames(t *testing.T) {
	w := newPeople(t)
	for _, name := range []string{"CON", "NUL", "AUX", "com1", "etcpasswd"} {
		c := trial{method: "POST", path: "/Tables", body: `{"TableName":"` + name + `"}`}
		if raw, res := w.exchange(c.bytes(w)); res == nil || res.StatusCode != http.StatusCreated {
			t.Errorf("create %s: %s", name, raw)
		}
	}
}

// TestTableRaces creates and deletes tables whose names differ in case at the same
// time: N2. There is one of them at most, and every answer is one of the four.
func TestTableRaces(t *testing.T) {
	w := newPeople(t)
	var group sync.WaitGroup
	for i, name := range []string{"racing", "RACING", "Racing", "rAcInG"} {
		group.Go(func() {
			create := trial{method: "POST", path: "/Tables", body: `{"TableName":"` + name + `"}`}
			remove := trial{method: "DELETE", path: "/Tables('" + name + "')"}
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
		t.Errorf("tables %v, %v; want one at most", tables, err)
	}
}

// TestAccounts asks for accounts other than that which signs: N3.
func TestAccounts(t *testing.T) {
	const refused, uri = "403 AuthenticationFailed", "400 InvalidUri"
	get := func(name, target, host, want string) trial {
		head := "GET " + target + " HTTP/1.1\r\n" + strings.Replace(signedHeaders, "127.0.0.1:10002", host, 1)
		return trial{name: name, raw: head, want: want}
	}
	const ip = "127.0.0.1:10002"
	trials := []trial{
		get("another account in the path", "/other/People()", ip, refused),
		get("another account in the host", "/People()", "other.table.localhost", refused),
		get("one in the host, one in the path", "/devstoreaccount1/People()", "devstoreaccount1.table.localhost", "400 InvalidUri"),
		get("no account", "/", ip, uri),
		get("an empty account", "//People()", ip, uri),
		get("the parent of all accounts", "/../People()", ip, refused),
		get("its parent in escapes", "/%2e%2e/People()", ip, refused),
		get("a slash in the account", "/devstoreaccount1%2FPeople()", ip, uri),
		get("an account in capitals", "/DEVSTOREACCOUNT1/People()", ip, refused),
		get("only a suffix", "/-secondary/People()", ip, uri),
		get("the whole address", "http://127.0.0.1:10002/devstoreaccount1/People()", ip, "200"),
		get("the address of another host", "http://other.table.localhost/People()", ip, refused),
		get("a star", "*", ip, refused),
	}
	w := newWire(t, nil, nil)
	for i := range trials {
		// What is signed of an address is its path.
		method, rest, _ := strings.Cut(trials[i].raw, " ")
		host, path := "", rest
		if at, ok := strings.CutPrefix(rest, "http://"); ok {
			host, path, _ = strings.Cut(at, "/")
			host, path = "http://"+host, "/"+path
		}
		signed := w.sign(method + " " + path)
		trials[i].raw = strings.Replace(signed, method+" ", method+" "+host, 1) + "\r\n"
	}
	attack(t, trials)
}
