package server_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// TestHealth checks that /healthz needs no credentials, and that an account of that name
// has precedence.
func TestHealth(t *testing.T) {
	c := newClient(t)
	for _, q := range []struct {
		name, method, url string
		want              int
	}{
		{"GET", http.MethodGet, "/healthz", http.StatusOK},
		{"HEAD", http.MethodHead, "/healthz", http.StatusOK},
		{"a query", http.MethodGet, "/healthz?from=probe", http.StatusOK},
		{"POST", http.MethodPost, "/healthz", http.StatusForbidden},
		{"a longer path", http.MethodGet, "/healthz/Tables", http.StatusForbidden},
		{"the secondary endpoint", http.MethodGet, "/healthz-secondary", http.StatusForbidden},
		{"a table of an account in the host", http.MethodGet, "http://acct.table.localhost/healthz", http.StatusForbidden},
	} {
		t.Run(q.name, func(t *testing.T) {
			c.events = nil
			res := c.send(q.method, q.url, "")
			body, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != q.want {
				t.Fatalf("status %d, want %d; error %v: %s", res.StatusCode, q.want, err, body)
			}
			if len(c.events) != 1 {
				t.Fatalf("%d events, want 1", len(c.events))
			}
			if q.want != http.StatusOK {
				return
			}
			if len(body) > 0 || res.Header.Get("Content-Length") != "0" || res.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("body %q, header %v; want no body and no-store", body, res.Header)
			}
			if e := c.events[0]; e.Operation != "Health" || e.Status != http.StatusOK || e.Account != "" || e.Err != nil {
				t.Errorf("event %+v, want Health without an account", e)
			}
		})
	}
	h, err := server.New(server.Options{Accounts: []server.Account{{Name: "healthz", Keys: []string{testKey}, Store: storetest.NewMap(nil)}}})
	if err != nil {
		t.Fatal(err)
	}
	if res := serve(h, c.request(http.MethodGet, "/healthz", "")); res.StatusCode != http.StatusForbidden {
		t.Errorf("with an account called healthz, status %d, want %d", res.StatusCode, http.StatusForbidden)
	}
}
