package postgres

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// TestContractOnServer tests the contract of package store on the server that
// TABLEROCK_TEST_POSTGRES names, which can be another than PostgreSQL. It neither kills nor
// configures the server; TestContract does.
func TestContractOnServer(t *testing.T) {
	if os.Getenv("TABLEROCK_TEST_POSTGRES") == "" {
		t.Skip("TABLEROCK_TEST_POSTGRES names no server")
	}
	url, o := pgtest.Shared(t).NewDatabase(t), &Options{AllowAsync: true}
	if err := Init(t.Context(), url, o); err != nil {
		t.Fatal(err)
	}
	d, err := Connect(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &contract{d: d}
	var accounts atomic.Int64
	storetest.Run(t, storetest.Backend{
		Open: func(tb testing.TB) store.Store { return c.account(tb, fmt.Sprintf("a%d", accounts.Add(1))) },
		Reopen: func(tb testing.TB, s store.Store) store.Store {
			if err := s.Close(); err != nil {
				tb.Error(err)
			}
			return c.account(tb, nameOf(s))
		},
	})
}
