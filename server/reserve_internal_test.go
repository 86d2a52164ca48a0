package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/memory"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// waiting is a client that notes what is reserved while the longest part of the response waits
// for it.
type waiting struct {
	httptest.ResponseRecorder
	s              *Server
	part, reserved int64
}

func (w *waiting) Write(p []byte) (int, error) {
	if n := int64(len(p)); n > w.part {
		w.part, w.reserved = n, reserved(&w.s.inFlight)
	}
	return w.ResponseRecorder.Write(p)
}

// TestLongResponsesAreReserved sends requests whose responses are much longer than they, and
// refuses them while no memory is left.
func TestLongResponsesAreReserved(t *testing.T) {
	race.SkipOneGoroutine(t)
	const tables = 1000
	st := storetest.NewMap(nil)
	key := strings.Repeat("A", 43) + "="
	s, err := New(Options{Accounts: []Account{{Name: "acct", Keys: []string{key}, Store: st}}})
	if err != nil {
		t.Fatal(err)
	}
	credential, err := sharedkey.NewCredential("acct", key)
	if err != nil {
		t.Fatal(err)
	}
	for i := range tables {
		if err := st.CreateTable(t.Context(), fmt.Sprintf("Table%04d", i)); err != nil {
			t.Fatal(err)
		}
	}
	send := func(method, path, query, contentType, body string) *waiting {
		t.Helper()
		r := httptest.NewRequest(method, "http://127.0.0.1", strings.NewReader(body))
		r.URL = &url.URL{Path: path, RawQuery: query}
		r.RequestURI = path + "?" + query
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		if err := credential.SignRequest(r, time.Now()); err != nil {
			t.Fatal(err)
		}
		w := &waiting{ResponseRecorder: *httptest.NewRecorder(), s: s}
		s.ServeHTTP(w, r)
		return w
	}
	names := make([]string, tables)
	for i := range names {
		names[i] = fmt.Sprintf("%03x", i) + strings.Repeat("é", 13)
	}
	long := strings.Repeat("é", 500)
	insert := func(row int) string {
		return "--c\r\nContent-Type: application/http\r\n\r\nPOST /acct/Table0000 HTTP/1.1\r\nAccept: application/json;odata=fullmetadata\r\n" +
			"Content-Type: application/json\r\n\r\n" + fmt.Sprintf(`{"PartitionKey":"%s","RowKey":"%s%d"}`, long, long, row) + "\r\n"
	}
	batch := "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"
	for i := range 100 {
		batch += insert(i)
	}
	batch += "--c--\r\n--b--\r\n"
	entity := `{"PartitionKey":"p","RowKey":"r"`
	for i := range 15 {
		entity += fmt.Sprintf(`,"P%d":"%s"`, i, strings.Repeat("é", 32_000))
	}
	entity += "}"
	for _, c := range []struct{ name, method, path, query, contentType, body string }{
		{"tables", http.MethodGet, "/acct/Tables", "$select=" + strings.Join(names, ","), "", ""},
		{"batch", http.MethodPost, "/acct/$batch", "", "multipart/mixed; boundary=b", batch},
		{"insert", http.MethodPost, "/acct/Table0000", "", "application/json", entity},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Less than the response needs, and enough for the body.
			used := int64(memory.MaxBytes/2 - memory.FreeBytes)
			s.inFlight.ReserveBody(used)
			w := send(c.method, c.path, c.query, c.contentType, c.body)
			s.inFlight.Release(used)
			if text := w.Body.String(); c.method == http.MethodPost && !strings.Contains(text, "ServerBusy") {
				t.Errorf("without memory: status %d, %.200s", w.Code, text)
			}
			w = send(c.method, c.path, c.query, c.contentType, c.body)
			if text := w.Body.String(); w.Code >= http.StatusMultipleChoices || strings.Contains(text, "odata.error") {
				t.Fatalf("status %d: %.200s", w.Code, text)
			}
			if w.part-memory.FreeBytes > w.reserved-int64(len(c.body)) {
				t.Errorf("%d bytes wait for the client, and %d are reserved beside the body", w.part, w.reserved-int64(len(c.body)))
			}
			if n := w.Body.Len(); c.method == http.MethodGet && n > memory.MaxPageBytes+memory.FreeBytes+len(c.query)*3 {
				t.Errorf("a page of %d bytes, the limit is %d", n, memory.MaxPageBytes)
			}
			if n := reserved(&s.inFlight); n != 0 {
				t.Errorf("%d bytes are reserved after the response", n)
			}
		})
	}
	// The pages of tables continue.
	seen := 0
	for next := ""; ; {
		w := send(http.MethodGet, "/acct/Tables", "$select=TableName,"+strings.Join(names, ",")+next, "", "")
		seen += strings.Count(w.Body.String(), `"TableName":`)
		token := w.Header().Get("X-Ms-Continuation-Nexttablename")
		if token == "" {
			break
		}
		next = "&NextTableName=" + url.QueryEscape(token)
	}
	if seen != tables {
		t.Errorf("the pages have %d tables, want %d", seen, tables)
	}
}
