package server_test

import (
	"net/http"
	"testing"
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
