package remote_test

import (
	"net/http/httptest"
	"testing"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/remote"
	"github.com/tablerock-db/tablerock/store/storetest"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestContract tests the contract that the protocol can promise, on a server in this
// process. It has none of the time limits of tabletest, which a busy machine exceeds.
func TestContract(t *testing.T) {
	const account = "contract"
	storetest.Run(t, storetest.Backend{Protocol: true, RisingTimestamps: true, Open: func(tb testing.TB) store.Store {
		db, err := engine.Open(account, engine.Options{FS: vfs.NewMem(), SegmentBytes: 64 << 10})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := db.Close(); err != nil {
				tb.Error(err)
			}
		})
		h, err := server.New(server.Options{Accounts: []server.Account{{Name: account, Keys: []string{testKey}, Store: db}}})
		if err != nil {
			tb.Fatal(err)
		}
		front := httptest.NewServer(h)
		tb.Cleanup(front.Close)
		s, err := remote.Open(remote.Endpoint{URL: front.URL + "/" + account, Account: account, Key: testKey}, remote.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		return s
	}})
}
