package remote_test

import (
	"testing"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/remote"
	"github.com/tablerock-db/tablerock/store/storetest"
	"github.com/tablerock-db/tablerock/tabletest"
)

// TestContract tests the contract that the protocol can promise.
func TestContract(t *testing.T) {
	storetest.Run(t, storetest.Backend{Protocol: true, Open: func(tb testing.TB) store.Store {
		e, err := remote.ParseConnectionString(tabletest.New(tb).ConnectionString())
		if err != nil {
			tb.Fatal(err)
		}
		s, err := remote.Open(e, remote.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		return s
	}})
}
