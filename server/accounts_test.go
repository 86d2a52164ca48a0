package server_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store/storetest"
)

const otherKey = "YW5vdGhlciBrZXkgb2YgdGVzdHMsIDMyIGJ5dGVzLi4="

// TestSetAccounts rotates keys, adds and removes accounts of a server that runs.
func TestSetAccounts(t *testing.T) {
	first, second := storetest.NewMap(nil), storetest.NewMap(nil)
	one := server.Account{Name: "one", Keys: []string{testKey}, Store: first}
	two := server.Account{Name: "two", Keys: []string{testKey}, Store: second}
	rotated := server.Account{Name: "one", Keys: []string{otherKey}, Store: first}
	s, err := server.New(server.Options{Accounts: []server.Account{one}, Now: func() time.Time { return testTime }})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name                        string
		set                         []server.Account
		refused                     bool
		oneOld, oneNew, twoOld, bad int // statuses
	}{
		{"at the start", nil, true, 200, 403, 403, 403},
		{"a second key", []server.Account{{Name: "one", Keys: []string{testKey, otherKey}, Store: first}}, false, 200, 200, 403, 403},
		{"one key, two accounts", []server.Account{rotated, two}, false, 403, 200, 200, 403},
		{"a bad key", []server.Account{one, {Name: "two", Keys: []string{"x"}, Store: second}}, true, 403, 200, 200, 403},
		{"the same name twice", []server.Account{one, one}, true, 403, 200, 200, 403},
		{"without the first", []server.Account{two}, false, 403, 403, 200, 403},
		{"with the first again", []server.Account{one, two}, false, 200, 403, 200, 403},
	} {
		if err := s.SetAccounts(step.set); (err != nil) != step.refused {
			t.Fatalf("%s: error %v, want one: %v", step.name, err, step.refused)
		}
		for _, q := range []struct {
			account, key string
			want         int
		}{{"one", testKey, step.oneOld}, {"one", otherKey, step.oneNew}, {"two", testKey, step.twoOld}, {"six", testKey, step.bad}} {
			if got := tablesStatus(t, s, q.account, q.key); got != q.want {
				t.Errorf("%s: account %s with key %.8s: status %d, want %d", step.name, q.account, q.key, got, q.want)
			}
		}
	}
}

// TestSetAccountsKeepsProperties changes the service properties before and after
// SetAccounts: both use one cache, so that no request gets older rules.
func TestSetAccountsKeepsProperties(t *testing.T) {
	c := newClient(t)
	s := c.handler.(*server.Server)
	account := server.Account{Name: testAccount, Keys: []string{testKey}, Store: c.store}
	for range 3 {
		if err := s.SetAccounts([]server.Account{account}); err != nil {
			t.Fatal(err)
		}
		if res := c.signed(http.MethodGet, "/acct/Tables", "", "Accept", "application/json"); res.StatusCode != http.StatusOK {
			t.Fatalf("status %d", res.StatusCode)
		}
	}
	if n := c.store.reads.Load(); n != 1 {
		t.Errorf("the properties were read %d times, want once", n)
	}
}

// TestSetAccountsWhileServing adds and removes an account while requests for it run. Each
// gets a valid response.
func TestSetAccountsWhileServing(t *testing.T) {
	one := server.Account{Name: "one", Keys: []string{testKey}, Store: storetest.NewMap(nil)}
	two := server.Account{Name: "two", Keys: []string{testKey}, Store: storetest.NewMap(nil)}
	s, err := server.New(server.Options{Accounts: []server.Account{one}, Now: func() time.Time { return testTime }})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 300 {
				if got := tablesStatus(t, s, "two", testKey); got != http.StatusOK && got != http.StatusForbidden {
					t.Errorf("status %d, want 200 or 403", got)
				}
			}
		})
	}
	for i := range 300 {
		if err := s.SetAccounts([]server.Account{one, two}[:1+i%2]); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}

// tablesStatus returns the status of a query of the account's tables.
func tablesStatus(t *testing.T, h http.Handler, account, key string) int {
	credential, err := sharedkey.NewCredential(account, key)
	if err != nil {
		t.Error(err)
		return 0
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/"+account+"/Tables", http.NoBody)
	if err != nil {
		t.Error(err)
		return 0
	}
	r.Header.Set("Accept", "application/json")
	if err := credential.SignRequest(r, testTime); err != nil {
		t.Error(err)
	}
	return serve(h, r).StatusCode
}
