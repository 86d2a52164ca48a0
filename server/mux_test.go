package server_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestMux mounts a server in a mux, as the package comment says.
func TestMux(t *testing.T) {
	c := newClient(t)
	mux := http.NewServeMux()
	for _, pattern := range []string{"/acct", "/acct/", "/acct-secondary/"} {
		mux.Handle(pattern, c.handler)
	}
	c.handler = mux
	for _, q := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/acct?restype=service&comp=properties", "", http.StatusOK},
		{"POST", "/acct/People", `{"PartitionKey":"a b","RowKey":"'%"}`, http.StatusCreated},
		{"GET", "/acct/People(PartitionKey='a%20b',RowKey='%27%27%25')", "", http.StatusOK},
		{"GET", "/acct-secondary/People()?$filter=RowKey%20eq%20'%27%27%25'", "", http.StatusOK},
		{"GET", "/other/People()", "", http.StatusNotFound}, // of the mux
	} {
		if res := c.signed(q.method, q.path, q.body, "Accept", "application/json", "Content-Type", "application/json"); res.StatusCode != q.want {
			t.Errorf("%s %s: got %s, want %d", q.method, q.path, res.Status, q.want)
		}
	}
}

// TestReplacedBody serves a request whose body another handler has replaced by a longer one, as
// by its decompressed form: ContentLength is that of the body that the client sent.
func TestReplacedBody(t *testing.T) {
	c := newClient(t)
	for row, announced := range []int64{0, 20} {
		body := fmt.Sprintf(`{"PartitionKey":"p","RowKey":"%0500d"}`, row)
		r := c.request("POST", "/acct/People", "", "Accept", "application/json", "Content-Type", "application/json")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), announced
		if err := c.credential.SignRequest(r, testTime); err != nil {
			t.Fatal(err)
		}
		status := make(chan int, 1)
		go func() { status <- serve(c.handler, r).StatusCode }()
		select {
		case got := <-status:
			if got != http.StatusCreated {
				t.Errorf("a body of %d bytes, announced as %d: status %d", len(body), announced, got)
			}
		case <-time.After(time.Minute):
			t.Fatalf("a body of %d bytes, announced as %d: no response", len(body), announced)
		}
	}
}
