package failing

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// The account of a server.
const (
	Account = "failing"
	Key     = "c29tZSBvdGhlciBrZXkgb2YgbXkgb3duLCBsb25nIGVub3VnaCBmb3IgdXMh"
)

// NewServer starts a server whose requests are answered by answer, which gets the handler that does
// not fail as right. It returns the endpoint of Account and its store.
func NewServer(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, right http.Handler)) (endpoint string, s store.Store) {
	t.Helper()
	db, err := engine.Open(Account, engine.Options{FS: vfs.NewMem(), SegmentBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	right, err := server.New(server.Options{Accounts: []server.Account{{Name: Account, Keys: []string{Key}, Store: db}}})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r, right) }))
	t.Cleanup(front.Close)
	return front.URL + "/" + Account, db
}
