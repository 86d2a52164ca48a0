package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

const (
	testAccount = "acct"
	testKey     = "c2VjcmV0LW9mLXRlc3RzLWFsb25lLTMyLWJ5dGVzLi4="
	bom         = "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?>"
)

var testTime = time.Date(2021, 6, 17, 16, 54, 23, 0, time.UTC)

// metaStore counts reads of the account's metadata, and fails writes of it.
type metaStore struct {
	store.Store
	reads  atomic.Int64
	failed error // of SetAccountMeta, which writes nevertheless
}

func (s *metaStore) AccountMeta(ctx context.Context) ([]byte, error) {
	s.reads.Add(1)
	return s.Store.AccountMeta(ctx)
}

func (s *metaStore) SetAccountMeta(ctx context.Context, meta []byte) error {
	return errors.Join(s.Store.SetAccountMeta(ctx, meta), s.failed)
}

// client sends signed requests to a server of one account.
type client struct {
	t          *testing.T
	handler    http.Handler
	credential *sharedkey.Credential
	store      *metaStore
	events     []server.Event
}

func newClient(t *testing.T) *client {
	t.Helper()
	c := &client{t: t, store: &metaStore{Store: newStore(t, func() store.Store { return storetest.NewMap(nil) })}}
	var err error
	c.handler, err = server.New(server.Options{
		Accounts: []server.Account{{Name: testAccount, Keys: []string{testKey}, Store: c.store}},
		Observe:  func(e server.Event) { c.events = append(c.events, e) },
		Now:      func() time.Time { return testTime },
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.credential, err = sharedkey.NewCredential(testAccount, testKey); err != nil {
		t.Fatal(err)
	}
	if err := c.store.CreateTable(t.Context(), "People"); err != nil {
		t.Fatal(err)
	}
	return c
}

// send sends a request without a signature. headers are pairs of names and values.
func (c *client) send(method, path, body string, headers ...string) *http.Response {
	c.t.Helper()
	return c.do(c.request(method, path, body, headers...))
}

// signed sends a request signed with the account's key.
func (c *client) signed(method, path, body string, headers ...string) *http.Response {
	c.t.Helper()
	r := c.request(method, path, body, headers...)
	if err := c.credential.SignRequest(r, testTime); err != nil {
		c.t.Fatal(err)
	}
	return c.do(r)
}

func (c *client) request(method, path, body string, headers ...string) *http.Request {
	r := httptest.NewRequestWithContext(c.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("X-Ms-Version", "2019-02-02")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func (c *client) do(r *http.Request) *http.Response { return serve(c.handler, r) }

func serve(h http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// response is an expected response. The body of an error is only checked for its code.
type response struct {
	status int
	code   string // in x-ms-error-code and in an XML body
	body   string // if there is no code
}

func (c *client) want(res *http.Response, want response) {
	c.t.Helper()
	var b strings.Builder
	if err := res.Write(&b); err != nil {
		c.t.Fatal(err)
	}
	_, body, _ := strings.Cut(b.String(), "\r\n\r\n")
	h := res.Header
	if res.StatusCode != want.status || h.Get("X-Ms-Error-Code") != want.code {
		c.t.Fatalf("got %s, want %d %s", b.String(), want.status, want.code)
	}
	if h.Get("X-Ms-Version") == "" || h.Get("X-Ms-Request-Id") == "" || h.Get("Cache-Control") != "" {
		c.t.Errorf("got headers %v; want a version, an id and no Cache-Control", h)
	}
	kind := ""
	if want.code != "" || want.body != "" {
		kind = "application/xml"
	}
	if got := h.Get("Content-Type"); got != kind {
		c.t.Errorf("got Content-Type %q, want %q", got, kind)
	}
	if want.code != "" {
		if !strings.Contains(body, "<m:code>"+want.code+"</m:code>") || h.Get("X-Content-Type-Options") != "" {
			c.t.Errorf("got %s, want an error document of %s, without nosniff", b.String(), want.code)
		}
		return
	}
	if body != want.body || h.Get("X-Content-Type-Options") != "" {
		c.t.Errorf("got %s\nwant %q, without nosniff", b.String(), want.body)
	}
}
