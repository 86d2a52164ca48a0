package server_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
	"github.com/tablerock-db/tablerock/tabletest"
)

// backendVariable is the environment variable with the backend of the stores of the tests:
// postgres, or by default the engine in memory and the map of storetest.
const backendVariable = "TABLEROCK_TEST_BACKEND"

// onPostgres reports whether the tests use PostgreSQL.
func onPostgres(tb testing.TB) bool {
	tb.Helper()
	switch name := os.Getenv(backendVariable); name {
	case "":
		return false
	case "postgres":
		return true
	default:
		tb.Fatalf("%s is %q, want postgres", backendVariable, name)
		return false
	}
}

// thePostgres is the database of all tests of the process.
var thePostgres struct {
	once     sync.Once
	database *postgres.Database
	accounts atomic.Int64
}

// newStore returns an empty store of PostgreSQL, if the tests use it, else other.
func newStore(tb testing.TB, other func() store.Store) store.Store {
	tb.Helper()
	if !onPostgres(tb) {
		return other()
	}
	p := &thePostgres
	p.once.Do(func() {
		ctx, o := context.Background(), &postgres.Options{AllowAsync: true}
		url := pgtest.Shared(tb).KeepDatabase(tb)
		if err := postgres.Init(ctx, url, o); err != nil {
			tb.Fatal(err)
		}
		var err error
		if p.database, err = postgres.Connect(ctx, url, o); err != nil {
			tb.Fatal(err)
		}
	})
	if p.database == nil {
		tb.Fatal("no database")
	}
	s, err := p.database.Account(context.Background(), fmt.Sprintf("a%d", p.accounts.Add(1)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// testServer is an account of a running server.
type testServer struct{ endpoint, name, key string }

// newServer starts a server, with the development account.
func newServer(tb testing.TB) testServer {
	tb.Helper()
	if !onPostgres(tb) {
		s := tabletest.New(tb)
		return testServer{s.Endpoint, s.Account, s.Key}
	}
	h, err := server.New(server.Options{Accounts: []server.Account{{Name: wireAccount, Keys: []string{wireKey}, Store: newStore(tb, nil)}}})
	if err != nil {
		tb.Fatal(err)
	}
	front := httptest.NewServer(h)
	tb.Cleanup(front.Close)
	return testServer{front.URL + "/" + wireAccount, wireAccount, wireKey}
}
