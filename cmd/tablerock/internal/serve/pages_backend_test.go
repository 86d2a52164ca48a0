package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/internal/explorer"
	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// TestPagesOfBackend reads and changes the data of an account in PostgreSQL by the API of the
// pages, whose live state has requests and the pool of connections only.
func TestPagesOfBackend(t *testing.T) {
	address := pgtest.Start(t, "fsync=off").NewDatabase(t)
	if err := postgres.Init(t.Context(), address, &postgres.Options{AllowAsync: true}); err != nil {
		t.Fatal(err)
	}
	r := start(t, "--backend", address, "--allow-async")
	call := logIn(t, r, r.admin+explorer.Root, map[string]string{"account": developmentAccount, "key": developmentKey})
	var accounts struct{ Accounts []explorer.AccountInfo }
	call("accounts", nil, &accounts)
	if len(accounts.Accounts) != 1 {
		t.Fatalf("the accounts are %+v", accounts)
	}
	if a := accounts.Accounts[0]; !strings.HasPrefix(a.Where, "postgres://") || a.Engine || a.Failure != nil || !a.ACL || !a.SAS || a.ReadOnly {
		t.Errorf("the account is %+v", a)
	}
	on := func(more map[string]any) map[string]any {
		more["account"], more["table"] = developmentAccount, "Orders"
		return more
	}
	call("tables/create", on(map[string]any{}), &struct{}{})
	const rows = 25
	for i := range rows {
		entity := explorer.Entity{
			PartitionKey: "p", RowKey: fmt.Sprintf("%02d", i),
			Properties: []explorer.Property{{Name: "N", Type: "Edm.Int64", Value: fmt.Sprint(i)}},
		}
		var written explorer.Written
		call("entity", on(map[string]any{"op": "insert", "entity": entity}), &written)
		if written.ETag == "" {
			t.Errorf("the insertion of row %d returns no ETag", i)
		}
	}
	var tables struct{ Tables []explorer.TableInfo }
	call("tables?a="+developmentAccount, nil, &tables)
	if len(tables.Tables) != 1 || tables.Tables[0].Name != "Orders" {
		t.Errorf("the tables are %+v", tables)
	}
	of := "a=" + developmentAccount + "&t=Orders"
	var found []string
	for next, pages := "", 0; pages == 0 || next != ""; pages++ {
		if pages > rows {
			t.Fatal("the pages do not end")
		}
		var page explorer.EntityPage
		call("entities?"+of+"&top=10&next="+url.QueryEscape(next), nil, &page)
		for _, e := range page.Rows {
			found = append(found, e.RowKey+"="+e.Properties[0].Value)
		}
		next = page.Next
	}
	if len(found) != rows || found[0] != "00=0" || found[rows-1] != "24=24" {
		t.Errorf("the pages have %q", found)
	}
	policy := explorer.Policy{ID: "readers", Expiry: "2030-01-02T03:04:05Z", Permission: "r"}
	call("acl", on(map[string]any{"policies": []explorer.Policy{policy}}), &struct{}{})
	var acl struct{ Policies []explorer.Policy }
	call("acl?"+of, nil, &acl)
	if len(acl.Policies) != 1 || acl.Policies[0] != policy {
		t.Errorf("the policies are %+v", acl)
	}
	r.want(t, http.StatusOK, http.MethodGet, r.url+"/Orders(PartitionKey='p',RowKey='07')", "")
	var live explorer.Live
	call("live", nil, &live)
	if len(live.Engines) != 0 || live.Cache != nil {
		t.Errorf("the live state has the engines %+v and the cache %+v", live.Engines, live.Cache)
	}
	var pool []postgres.Stats
	if err := json.Unmarshal(live.Pool, &pool); err != nil || len(pool) != 1 {
		t.Errorf("the pool is %s, error %v", live.Pool, err)
	}
	if len(live.Last) == 0 || live.Last[0].Operation != "GetEntity" || live.Last[0].Table != "Orders" || live.Requests.Count == 0 {
		t.Errorf("the requests are %+v, the last of them %+v", live.Requests, live.Last)
	}
}
