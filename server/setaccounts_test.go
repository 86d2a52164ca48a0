package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// TestSetAccountsOtherStore gives an account another store: the properties are those of
// that store.
func TestSetAccountsOtherStore(t *testing.T) {
	c := newClient(t)
	const document = `<?xml version="1.0"?><StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://x.example</AllowedOrigins>` +
		`<AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds><ExposedHeaders/><AllowedHeaders/></CorsRule></Cors></StorageServiceProperties>`
	const path = "/" + testAccount + "/?restype=service&comp=properties"
	if r := c.signed(http.MethodPut, path, document); r.StatusCode != http.StatusAccepted {
		t.Fatalf("status %d", r.StatusCode)
	}
	rules := func() int {
		t.Helper()
		var body strings.Builder
		if err := c.signed(http.MethodGet, path, "").Write(&body); err != nil {
			t.Fatal(err)
		}
		return strings.Count(body.String(), "http://x.example")
	}
	if n := rules(); n != 1 {
		t.Fatalf("%d rules, want 1", n)
	}
	s := c.handler.(*server.Server)
	set := func(a server.Account) {
		t.Helper()
		a.Name, a.Keys = testAccount, []string{testKey}
		if err := s.SetAccounts([]server.Account{a}); err != nil {
			t.Fatal(err)
		}
	}
	set(server.Account{Store: &metaStore{Store: storetest.NewMap(nil)}})
	if n := rules(); n != 0 {
		t.Errorf("%d rules in a new store, want 0", n)
	}
	set(server.Account{Store: c.store})
	if n := rules(); n != 1 {
		t.Errorf("%d rules in the first store, want 1", n)
	}
}
