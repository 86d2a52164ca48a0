package server_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/store"
)

const aclPath = "/acct/People?comp=acl"

func TestTableACL(t *testing.T) {
	c := newClient(t)
	const none = bom + "<SignedIdentifiers />"
	c.want(c.signed("GET", aclPath, ""), response{status: 200, body: none})
	c.want(c.signed("PUT", aclPath, "<?xml version='1.0' encoding='utf-8'?>\n<SignedIdentifiers><SignedIdentifier><Id>testid</Id><AccessPolicy>"+
		"<Start>2021-06-08</Start><Expiry>2021-06-08T03:10:09Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier>"+
		"<SignedIdentifier><Id>empty</Id><AccessPolicy /></SignedIdentifier></SignedIdentifiers>", "Content-Type", "application/xml"), response{status: 204})
	const two = bom + "<SignedIdentifiers><SignedIdentifier><Id>testid</Id><AccessPolicy><Start>2021-06-08T00:00:00.0000000Z</Start>" +
		"<Expiry>2021-06-08T03:10:09.0000000Z</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier>" +
		"<SignedIdentifier><Id>empty</Id></SignedIdentifier></SignedIdentifiers>"
	c.want(c.signed("GET", "/acct/pEOPLE?comp=acl", ""), response{status: 200, body: two})

	// A refused document changes nothing.
	six := strings.Repeat("<SignedIdentifier><Id>a</Id></SignedIdentifier>", 6)
	for _, doc := range []string{
		"<SignedIdentifiers>" + six + "</SignedIdentifiers>", "{}", "<!DOCTYPE a><SignedIdentifiers />",
		"<SignedIdentifiers />" + strings.Repeat(" ", 64<<10), strings.Repeat("<a>", 10_000),
	} {
		c.want(c.signed("PUT", aclPath, doc), response{status: 400, code: "InvalidXmlDocument"})
	}
	c.want(c.signed("GET", aclPath, ""), response{status: 200, body: two})

	// Requests as old clients send them.
	c.want(c.signed("PUT", aclPath, "", "Accept", "application/atom+xml,application/xml", "Content-Type", ""), response{status: 204})
	c.want(c.signed("GET", aclPath, "", "Accept", "application/atom+xml,application/xml"), response{status: 200, body: none})
}

func TestTableACLRefused(t *testing.T) {
	const doc = "<SignedIdentifiers />"
	for _, q := range []struct {
		name, method, path, body string
		want                     response
	}{
		{"get of a missing table", "GET", "/acct/Nobody?comp=acl", "", response{status: 404, code: "ResourceNotFound"}},
		{"set of a missing table", "PUT", "/acct/Nobody?comp=acl", doc, response{status: 404, code: "ResourceNotFound"}},
		{"get of an illegal name", "GET", "/acct/my_table?comp=acl", "", response{status: 400, code: "InvalidResourceName"}},
		{"set of an illegal name", "PUT", "/acct/my_table?comp=acl", "{}", response{status: 400, code: "InvalidResourceName"}},
		{"set of a short name", "PUT", "/acct/ab?comp=acl", doc, response{status: 400, code: "OutOfRangeInput"}},
		{"document before table", "PUT", "/acct/Nobody?comp=acl", "{}", response{status: 400, code: "InvalidXmlDocument"}},
		{"on the secondary", "PUT", "/acct-secondary/People?comp=acl", doc, response{status: 403, code: "InsufficientAccountPermissions"}},
	} {
		t.Run(q.name, func(t *testing.T) {
			c := newClient(t)
			c.want(c.signed(q.method, q.path, q.body), q.want)
		})
	}
}

// TestDamagedMeta stores metadata that does not decode.
func TestDamagedMeta(t *testing.T) {
	c := newClient(t)
	c.store.SetTableMeta(t.Context(), "People", []byte("damaged"))
	c.store.Store.SetAccountMeta(t.Context(), []byte("damaged"))
	for _, path := range []string{aclPath, propertiesPath} {
		c.want(c.signed("GET", path, "", "Origin", "http://a.example"), response{status: 500, code: "InternalError"})
		if e := c.events[len(c.events)-1]; e.Err == nil || !strings.Contains(e.Err.Error(), "damaged") {
			t.Errorf("%s: got event %+v, want the cause in Err", path, e)
		}
	}
	// A request from another origin must not be served as if there were no rules.
	c.want(c.send("OPTIONS", "/acct/People", "", "Origin", "http://a.example", "Access-Control-Request-Method", "GET"),
		response{status: 500, code: "InternalError"})
	for _, origin := range [][]string{nil, {"Origin", "http://a.example"}} {
		res := c.signed("GET", "/acct/People()", "", origin...)
		wantCors(t, res, nil)
		if e := c.events[len(c.events)-1]; res.StatusCode != http.StatusOK || errors.Is(e.Err, store.ErrCorrupt) != (origin != nil) {
			t.Errorf("with headers %q: got status %d, event %+v", origin, res.StatusCode, e)
		}
	}
	c.want(c.signed("PUT", propertiesPath, "<StorageServiceProperties><Cors /></StorageServiceProperties>"), response{status: 500, code: "InternalError"})
	// New policies replace all old ones.
	c.want(c.signed("PUT", aclPath, ""), response{status: 204})
	c.want(c.signed("GET", aclPath, ""), response{status: 200, body: bom + "<SignedIdentifiers />"})
}

// TestStoredPolicy sends signatures that refer to a stored policy, while the policy changes.
func TestStoredPolicy(t *testing.T) {
	c := newClient(t)
	query := func(table, id string) int {
		t.Helper()
		sas, err := c.credential.TableSAS(sharedkey.TableSAS{Table: table, Identifier: id})
		if err != nil {
			t.Fatal(err)
		}
		return c.send("GET", "/acct/"+url.PathEscape(table)+"()?"+sas, "", "Accept", "application/json").StatusCode
	}
	set := func(expiry, permission string) {
		t.Helper()
		c.want(c.signed("PUT", aclPath, "<SignedIdentifiers><SignedIdentifier><Id>reader</Id><AccessPolicy><Start>2021-06-17T16:54:22.9999999Z</Start>"+
			"<Expiry>"+expiry+"</Expiry><Permission>"+permission+"</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"), response{status: 204})
	}
	for _, step := range []struct {
		name          string
		change        func()
		table, policy string
		want          int
	}{
		{"no policy", func() {}, "People", "reader", 403},
		{"a policy", func() { set("2021-06-17T16:54:23.0000001Z", "r") }, "People", "reader", 200},
		{"table in another case", func() {}, "peOPLE", "reader", 200},
		{"a policy of another name", func() {}, "People", "Reader", 403},
		{"a missing table", func() {}, "Nobody", "reader", 403},
		{"an invalid table name", func() {}, "ab", "reader", 403},
		{"letters in another order", func() { set("2021-06-18", "dr") }, "People", "reader", 200},
		{"the wrong letter", func() { set("2021-06-18", "a") }, "People", "reader", 403},
		{"expired", func() { set("2021-06-17T16:54:23Z", "r") }, "People", "reader", 403},
		{"withdrawn", func() { c.want(c.signed("PUT", aclPath, ""), response{status: 204}) }, "People", "reader", 403},
	} {
		step.change()
		if got := query(step.table, step.policy); got != step.want {
			t.Errorf("%s: got status %d, want %d", step.name, got, step.want)
		}
	}
}
