package fuzz

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

const (
	servedAccount = "devstoreaccount1"
	servedKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	servedTable   = "People"
)

// served is a server on a map, with the credential of its account.
type served struct {
	t          *testing.T
	store      store.Store
	handler    *server.Server
	credential *sharedkey.Credential
	events     []server.Event
}

func newServed(t *testing.T, keys ...edm.Key) *served {
	s := &served{t: t, store: storetest.NewMap(func() edm.Ticks { return edm.TicksOf(clock{}.Now()) })}
	var err error
	s.handler, err = server.New(server.Options{
		Accounts: []server.Account{{Name: servedAccount, Keys: []string{servedKey}, Store: s.store}},
		Now:      clock{}.Now, Observe: func(e server.Event) { s.events = append(s.events, e) },
	})
	if err == nil {
		s.credential, err = sharedkey.NewCredential(servedAccount, servedKey)
	}
	if err == nil {
		err = s.store.CreateTable(t.Context(), servedTable)
	}
	for _, k := range keys {
		if err == nil {
			_, err = s.store.Apply(t.Context(), servedTable, store.Insert(edm.Entity{Key: k}))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask sends a request signed with the account key.
func (s *served) ask(method string, u *url.URL, body string) *http.Response {
	r := httptest.NewRequestWithContext(s.t.Context(), method, "/", strings.NewReader(body))
	r.URL, r.RequestURI = u, u.RequestURI()
	r.Header.Set("Accept", "application/json;odata=fullmetadata")
	if err := s.credential.SignRequest(r, clock{}.Now()); err != nil {
		s.t.Skip("what cannot be signed")
	}
	return s.serve(r)
}

func (s *served) serve(r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w.Result()
}

// contents returns all stored data as text.
func (s *served) contents() string {
	var b strings.Builder
	meta, err := s.store.AccountMeta(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	tables, err := s.store.Tables(s.t.Context(), "", 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(&b, "%q %v\n", meta, tables)
	for _, table := range tables {
		if meta, err = s.store.TableMeta(s.t.Context(), table.Name); err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&b, "%q\n", meta)
		for e, err := range store.Entities(s.store.Query(s.t.Context(), table.Name, store.Query{})) {
			if err == nil {
				err = edm.CheckEntity(&e)
			}
			if err != nil {
				s.t.Fatalf("%v is stored: %v", e, err)
			}
			fmt.Fprintf(&b, "%v\n", e)
		}
	}
	return b.String()
}

// FuzzHandler sends any request. The server never fails, returns well-formed documents with a
// code for each refusal, changes nothing when it refuses or reads, and stores no entity
// that exceeds a limit. The test first replaces {signature} by a valid one, and sets the
// length.
func FuzzHandler(f *testing.F) {
	for _, seed := range transcripts(f) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := newServed(t, edm.Key{Partition: "a", Row: "1"})
		r := s.read(text)
		before, method := s.contents(), r.Method
		res := s.serve(r)
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.events) != 1 || s.events[0].Status != res.StatusCode {
			t.Fatalf("events %+v of one request with status %d", s.events, res.StatusCode)
		}
		cause := s.events[0].Err
		if cause != nil && res.StatusCode == http.StatusForbidden && strings.Contains(cause.Error(), "the clock of this server") {
			cause = nil // why credentials were refused
		}
		if cause != nil || res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented {
			t.Fatalf("%d %s: %v", res.StatusCode, body, s.events[0].Err)
		}
		refused := res.StatusCode >= 400 || bytes.Contains(body, []byte("\r\nHTTP/1.1 4")) || bytes.Contains(body, []byte("\r\nHTTP/1.1 5"))
		reads := method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
		if after := s.contents(); (refused || reads) && after != before {
			t.Fatalf("%s returned %d and changed\n%s\nto\n%s", method, res.StatusCode, before, after)
		}
		checkDocument(t, res, body)
	})
}

// read parses a request and ignores its length.
func (s *served) read(text []byte) *http.Request {
	head, body, _ := bytes.Cut(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
	lines := slices.DeleteFunc(strings.Split(string(head), "\n"), func(line string) bool {
		name, _, _ := strings.Cut(line, ":")
		return strings.EqualFold(name, "Content-Length") || strings.EqualFold(name, "Transfer-Encoding")
	})
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.Join(lines, "\r\n") + "\r\n\r\n")))
	if err != nil {
		s.t.Skip("no request")
	}
	r = r.WithContext(s.t.Context())
	r.Body, r.ContentLength, r.RemoteAddr = io.NopCloser(bytes.NewReader(body)), int64(len(body)), "127.0.0.1:1"
	if strings.HasSuffix(r.Header.Get("Authorization"), "{signature}") {
		r.Header.Set("X-Ms-Date", clock{}.Now().UTC().Format(http.TimeFormat))
		path, query, _ := strings.Cut(r.RequestURI, "?")
		signed, err := s.credential.SharedKey(&sharedkey.Request{Method: r.Method, Path: path, RawQuery: query, Header: r.Header})
		if err != nil {
			s.t.Skip("what cannot be signed")
		}
		r.Header.Set("Authorization", signed)
	}
	return r
}

// checkDocument parses a response with the standard library.
func checkDocument(t *testing.T, res *http.Response, body []byte) {
	t.Helper()
	kind := res.Header.Get("Content-Type")
	switch {
	case len(body) == 0:
	case !utf8.Valid(body):
		t.Fatalf("a response is not UTF-8: %q", body)
	case strings.HasPrefix(kind, "application/json"):
		var document struct {
			Error *struct{ Code string } `json:"odata.error"`
		}
		if err := json.Unmarshal(body, &document); err != nil || (document.Error != nil) != (res.StatusCode >= 400) {
			t.Fatalf("%d %s: %v", res.StatusCode, body, err)
		}
	case strings.HasPrefix(kind, "application/xml"):
		decoder := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\ufeff"))))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
		}
	case !strings.HasPrefix(kind, "multipart/mixed") && !strings.HasPrefix(kind, "text/html"):
		t.Fatalf("a response has type %q: %s", kind, body)
	}
}

// transcripts returns the requests of the server's golden transcripts.
func transcripts(f *testing.F) (requests []string) {
	f.Helper()
	files, err := filepath.Glob("../server/testdata/transcripts/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, step := range strings.Split(string(text), "\n### ")[1:] {
			_, request, _ := strings.Cut(step, "\n")
			request, _, _ = strings.Cut(request, "\n---\n")
			if len(request) < 4<<10 {
				requests = append(requests, request)
			}
		}
	}
	return requests
}

// FuzzToken continues a query from any token, with and without a SAS for a range of keys.
// The result is a tail of the table's entities or a refusal, and nothing outside the range.
func FuzzToken(f *testing.F) {
	f.Add("1!4!YQ--", "1!4!MQ--")
	f.Add("1!0!", "")
	f.Add("1!8!YgBj", "1!4!_w--")
	f.Add("", "1!4!MQ--")
	keys := []edm.Key{
		{},
		{Partition: "a"},
		{Partition: "a", Row: "1"},
		{Partition: "a", Row: "2"},
		{Partition: "b"},
		{Partition: "b", Row: "\U0001F600"},
		{Partition: "c"},
	}
	f.Fuzz(func(t *testing.T, partition, row string) {
		s := newServed(t, keys...)
		from := url.Values{"NextPartitionKey": {partition}, "NextRowKey": {row}}
		all := s.keysOf(from, "")
		if all == nil {
			return
		}
		if !slices.Equal(all, keys[len(keys)-len(all):]) {
			t.Fatalf("%q, %q: %v", partition, row, all)
		}
		sas, err := s.credential.TableSAS(sharedkey.TableSAS{
			Table: servedTable, Permissions: "r", Expiry: "2026-02-01", StartPartition: "a", StartRow: "2", EndPartition: "b",
		})
		if err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc(all, func(k edm.Key) bool {
			return k.Compare(edm.Key{Partition: "a", Row: "2"}) < 0 || k.Partition > "b"
		})
		if got := s.keysOf(from, sas); !slices.Equal(got, want) {
			t.Fatalf("%q, %q within a range: %v, want %v", partition, row, got, want)
		}
	})
}

// keysOf returns the keys of all pages of a query that starts at a token, with the account
// key or a SAS. It returns nil if the query is refused.
func (s *served) keysOf(from url.Values, sas string) []edm.Key {
	keys := []edm.Key{}
	for {
		u := &url.URL{Path: "/" + servedAccount + "/" + servedTable, RawQuery: from.Encode() + "&$top=2"}
		var res *http.Response
		if sas != "" {
			r := httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, u.String()+"&"+sas, http.NoBody)
			r.Header.Set("Accept", "application/json")
			res = s.serve(r)
		} else {
			res = s.ask(http.MethodGet, u, "")
		}
		var body struct {
			Value []struct{ PartitionKey, RowKey string }
		}
		err := json.NewDecoder(res.Body).Decode(&body)
		switch {
		case res.StatusCode == http.StatusBadRequest:
			return nil
		case err != nil || res.StatusCode != http.StatusOK:
			s.t.Fatalf("%v: %d, %v", from, res.StatusCode, err)
		}
		for _, e := range body.Value {
			keys = append(keys, edm.Key{Partition: e.PartitionKey, Row: e.RowKey})
		}
		from = url.Values{"NextPartitionKey": res.Header["X-Ms-Continuation-Nextpartitionkey"], "NextRowKey": res.Header["X-Ms-Continuation-Nextrowkey"]}
		if len(from["NextPartitionKey"]) == 0 {
			return keys
		}
	}
}

// FuzzKeyPredicate writes an entity at any path, and one with any key by its link. It writes
// one entity, which its link finds. A valid key is written unchanged.
func FuzzKeyPredicate(f *testing.F) {
	f.Add("a", "1", "(PartitionKey='a',RowKey='1')")
	f.Add("O'Neil", "',RowKey='", "(RowKey='''',PartitionKey='')")
	f.Add("%27", "\U0001F600+ %", "(PartitionKey='a', RowKey='b')")
	f.Add("", "a\u00ff", "(PartitionKey='a'',RowKey='b')")
	f.Fuzz(func(t *testing.T, partition, row, predicate string) {
		s := newServed(t)
		root := "/" + servedAccount + "/" + servedTable
		if res := s.ask(http.MethodPut, &url.URL{Path: root + predicate}, "{}"); res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented {
			t.Fatalf("PUT %q: %d", predicate, res.StatusCode)
		}
		before := s.links()
		if len(before) > 1 {
			t.Fatalf("PUT %q wrote %q", predicate, before)
		}
		key := edm.Key{Partition: partition, Row: row}
		quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
		path := root + "(PartitionKey=" + quote(partition) + ",RowKey=" + quote(row) + ")"
		res := s.ask(http.MethodPut, &url.URL{Path: path}, "{}")
		if written := res.StatusCode == http.StatusNoContent; written != (edm.CheckKey(key) == nil) {
			t.Fatalf("PUT of %q: %d, and the key: %v", key, res.StatusCode, edm.CheckKey(key))
		} else if !written {
			return
		}
		err := s.store.View(t.Context(), servedTable, key, func(edm.Row) error { return nil })
		if err != nil {
			t.Fatalf("PUT of %q wrote another entity: %v", key, err)
		}
		for _, link := range s.links() {
			u, err := url.Parse(link)
			if err != nil {
				t.Fatal(err)
			}
			if res := s.ask(http.MethodGet, u, ""); res.StatusCode != http.StatusOK {
				t.Fatalf("GET %s: %d", link, res.StatusCode)
			}
		}
	})
}

// links returns the links of all entities.
func (s *served) links() (links []string) {
	res := s.ask(http.MethodGet, &url.URL{Path: "/" + servedAccount + "/" + servedTable}, "")
	var body struct {
		Value []struct {
			ID string `json:"odata.id"`
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
		s.t.Fatal(err)
	}
	for _, e := range body.Value {
		links = append(links, e.ID)
	}
	return links
}
