package e2e

import (
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// tableSAS returns a client with a shared access signature of one table. It adds the range of
// keys to the query, because the SDK signs the range and omits it there.
func tableSAS(t *testing.T, e *endpoint, table string, v aztables.SASSignatureValues) *aztables.Client {
	t.Helper()
	v.TableName = table
	query := must(url.ParseQuery(must(v.Sign(e.credential(t)))(t)))(t)
	for name, value := range map[string]string{"spk": v.StartPartitionKey, "srk": v.StartRowKey, "epk": v.EndPartitionKey, "erk": v.EndRowKey} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return must(aztables.NewClientWithNoCredential(e.url+"/"+table+"?"+query.Encode(), options()))(t)
}

// lasting returns a signature for letters that is valid for an hour.
func lasting(letters string) aztables.SASSignatureValues {
	return aztables.SASSignatureValues{Permissions: letters, ExpiryTime: time.Now().UTC().Add(time.Hour)}
}

var (
	unauthenticated = refusal{403, "AuthenticationFailed"}
	wrongPermission = refusal{403, "AuthorizationPermissionMismatch"}
	outOfRange      = refusal{403, "AuthorizationFailure"}
)

// TestTableSAS runs each operation with each set of permissions.
func TestTableSAS(t *testing.T) {
	name, owner := newTable(t)
	operations := []struct {
		name  string
		needs string
		do    func(c *aztables.Client) error
	}{
		{"query", "r", func(c *aztables.Client) error { _, err := queryRows(t.Context(), c, nil); return err }},
		{"get", "r", func(c *aztables.Client) error { _, err := c.GetEntity(t.Context(), "p", "there", nil); return err }},
		{"insert", "a", func(c *aztables.Client) error { return insert(t, c, entity("p", "inserted"), nil) }},
		{"merge", "u", func(c *aztables.Client) error {
			return update(aztables.UpdateModeMerge)(t, c, entity("p", "there"), nil)
		}},
		{"replace", "u", func(c *aztables.Client) error {
			return update(aztables.UpdateModeReplace)(t, c, entity("p", "there"), nil)
		}},
		{"upsert by merge", "au", func(c *aztables.Client) error {
			return upsert(aztables.UpdateModeMerge)(t, c, entity("p", "upserted"), nil)
		}},
		{"upsert by replace", "au", func(c *aztables.Client) error {
			return upsert(aztables.UpdateModeReplace)(t, c, entity("p", "upserted"), nil)
		}},
		{"delete", "d", func(c *aztables.Client) error { return remove(t, c, entity("p", "doomed"), nil) }},
	}
	for _, letters := range []string{"r", "a", "u", "d", "ra", "au", "raud"} {
		client := tableSAS(t, shared, name, lasting(letters))
		for _, op := range operations {
			t.Run(letters+"/"+op.name, func(t *testing.T) {
				_, err := owner.DeleteEntity(t.Context(), "p", "inserted", nil)
				if got := refusalOf(err); got.status != 0 && got.status != 404 {
					t.Fatal(err)
				}
				for _, row := range []string{"there", "doomed"} {
					must(owner.UpsertEntity(t.Context(), entity("p", row), nil))(t)
				}
				want := refusal{}
				if !contains(letters, op.needs) {
					want = wrongPermission
				}
				wantRefusal(t, op.do(client), want)
			})
		}
	}
}

// contains reports whether set has all letters.
func contains(set, letters string) bool {
	has := map[rune]bool{}
	for _, l := range set {
		has[l] = true
	}
	for _, l := range letters {
		if !has[l] {
			return false
		}
	}
	return true
}

// TestTableSASRange checks that every operation is limited to the range of a signature.
func TestTableSASRange(t *testing.T) {
	name, owner := newTable(t)
	for _, p := range []string{"a", "b", "c", "d"} {
		for _, r := range []string{"1", "2", "3"} {
			must(owner.AddEntity(t.Context(), entity(p, p+r, property{"V", "", "1"}), nil))(t)
		}
	}
	inside := []string{"b2", "b3", "c1", "c2"}
	v := lasting("raud")
	v.StartPartitionKey, v.StartRowKey, v.EndPartitionKey, v.EndRowKey = "b", "b2", "c", "c2"
	client := tableSAS(t, shared, name, v)
	for _, filter := range []string{
		"", "V eq 1", "PartitionKey ge 'a' and PartitionKey le 'd'",
		"PartitionKey eq 'b' or PartitionKey eq 'c'", "not (PartitionKey eq 'a')",
	} {
		wantStrings(t, filter, rows(t, client, filter), inside)
	}
	wantStrings(t, "outside", rows(t, client, "PartitionKey eq 'a'"), []string{})
	pages, err := queryRows(t.Context(), client, &aztables.ListEntitiesOptions{Top: pointer(int32(1))})
	if err != nil {
		t.Fatal(err)
	}
	wantStrings(t, "pages of one", pages, inside)
	first := must(owner.NewListEntitiesPager(&aztables.ListEntitiesOptions{Top: pointer(int32(1))}).NextPage(t.Context()))(t)
	resumed, err := queryRows(t.Context(), client, &aztables.ListEntitiesOptions{NextPartitionKey: first.NextPartitionKey, NextRowKey: first.NextRowKey})
	if err != nil {
		t.Fatal(err)
	}
	wantStrings(t, "with a continuation from before the range", resumed, inside)

	for _, c := range []struct {
		partition, row string
		want           refusal
	}{
		{"a", "a1", outOfRange},
		{"b", "b1", outOfRange},
		{"b", "b2", refusal{}},
		{"b", "zzz", refusal{}},
		{"bb", "", refusal{}},
		{"c", "c2", refusal{}},
		{"c", "c3", outOfRange},
		{"d", "d1", outOfRange},
	} {
		t.Run(c.partition+"/"+c.row, func(t *testing.T) {
			text := entity(c.partition, c.row, property{"V", "", "2"})
			for _, do := range []func() error{
				func() error { return upsert(aztables.UpdateModeReplace)(t, client, text, nil) },
				func() error { return update(aztables.UpdateModeMerge)(t, client, text, nil) },
				func() error { _, err := client.GetEntity(t.Context(), c.partition, c.row, nil); return err },
				func() error { return remove(t, client, text, nil) },
				func() error { return insert(t, client, text, nil) },
			} {
				wantRefusal(t, do(), c.want)
			}
		})
	}
	t.Run("transaction", func(t *testing.T) {
		must(client.SubmitTransaction(t.Context(), []aztables.TransactionAction{
			action(opInsertReplace, entity("b", "b4")), action(opInsertReplace, entity("b", "b5")),
		}, nil))(t)
		_, err := client.SubmitTransaction(t.Context(), []aztables.TransactionAction{
			action(opInsertReplace, entity("b", "b6")), action(opInsertReplace, entity("b", "b1")),
		}, nil)
		if refusalOf(err).status == 0 {
			t.Error("a transaction outside the range succeeded")
		}
		if _, err := owner.GetEntity(t.Context(), "b", "b6", nil); refusalOf(err).status != 404 {
			t.Errorf("the transaction wrote something: %v", err)
		}
		if m := get(t, owner, "b", "b1"); m["V"] != 1.0 {
			t.Errorf("b1 was written: %v", m)
		}
	})
}

// TestRefusedSAS uses signatures that are invalid, expired or not yet valid, and valid ones.
func TestRefusedSAS(t *testing.T) {
	name, owner := newTable(t)
	other, _ := newTable(t)
	must(owner.AddEntity(t.Context(), entity("p", "r"), nil))(t)
	now := time.Now().UTC()
	otherKey := *shared
	otherKey.key = "c3RyYW5nZXI="
	with := func(change func(*aztables.SASSignatureValues)) aztables.SASSignatureValues {
		v := lasting("r")
		change(&v)
		return v
	}
	for _, c := range []struct {
		name   string
		signer *endpoint
		table  string
		values aztables.SASSignatureValues
		want   refusal
	}{
		{"good", shared, name, lasting("r"), refusal{}},
		{"of another version", shared, name, with(func(v *aztables.SASSignatureValues) { v.Version = "2015-04-05" }), refusal{}},
		{"started", shared, name, with(func(v *aztables.SASSignatureValues) { v.StartTime = now.Add(-time.Hour) }), refusal{}},
		{"not started", shared, name, with(func(v *aztables.SASSignatureValues) { v.StartTime = now.Add(30 * time.Minute) }), unauthenticated},
		{"expired", shared, name, with(func(v *aztables.SASSignatureValues) { v.ExpiryTime = now.Add(-time.Hour) }), unauthenticated},
		{"another key", &otherKey, name, lasting("r"), unauthenticated},
		{"from here", shared, name, with(func(v *aztables.SASSignatureValues) {
			v.IPRange.Start, v.IPRange.End = ip("127.0.0.0"), ip("127.0.0.9")
		}), refusal{}},
		{
			"from elsewhere", shared, name, with(func(v *aztables.SASSignatureValues) { v.IPRange.Start = ip("192.0.2.1") }),
			refusal{403, "AuthorizationSourceIPMismatch"},
		},
		{
			"https alone", shared, name, with(func(v *aztables.SASSignatureValues) { v.Protocol = aztables.SASProtocolHTTPS }),
			refusal{403, "AuthorizationProtocolMismatch"},
		},
		{"http too", shared, name, with(func(v *aztables.SASSignatureValues) { v.Protocol = aztables.SASProtocolHTTPSandHTTP }), refusal{}},
		{"an unknown policy", shared, name, with(func(v *aztables.SASSignatureValues) { v.Identifier = "nobody" }), unauthenticated},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := tableSAS(t, c.signer, c.table, c.values).GetEntity(t.Context(), "p", "r", nil)
			wantRefusal(t, err, c.want)
		})
	}
	t.Run("another table", func(t *testing.T) {
		values := lasting("r")
		values.TableName = other
		query := must(values.Sign(shared.credential(t)))(t)
		client := must(aztables.NewClientWithNoCredential(shared.url+"/"+name+"?"+query, options()))(t)
		if _, err := client.GetEntity(t.Context(), "p", "r", nil); refusalOf(err).status != 403 {
			t.Errorf("got %v, want 403", err)
		}
	})
	t.Run("no signature", func(t *testing.T) {
		client := must(aztables.NewClientWithNoCredential(shared.url+"/"+name, options()))(t)
		_, err := client.GetEntity(t.Context(), "p", "r", nil)
		if got := refusalOf(err).status; got != 403 && got != 401 {
			t.Errorf("got %v, want 401 or 403", err)
		}
	})
	t.Run("operations that no table SAS allows", func(t *testing.T) {
		client := tableSAS(t, shared, name, lasting("raud"))
		_, err := client.GetAccessPolicy(t.Context(), nil)
		if refusalOf(err).status != 403 {
			t.Errorf("policies of the table: got %v, want 403", err)
		}
		if _, err = client.Delete(t.Context(), nil); refusalOf(err).status != 403 {
			t.Errorf("delete the table: got %v, want 403", err)
		}
		get(t, owner, "p", "r")
	})
}

func ip(s string) net.IP { return net.ParseIP(s) }

// TestStoredPolicy uses a signature with the times and permissions of a stored policy, and
// deletes the policy.
func TestStoredPolicy(t *testing.T) {
	name, owner := newTable(t)
	must(owner.AddEntity(t.Context(), entity("p", "r"), nil))(t)
	set := func(policies ...*aztables.SignedIdentifier) {
		t.Helper()
		must(owner.SetAccessPolicy(t.Context(), &aztables.SetAccessPolicyOptions{TableACL: policies}))(t)
	}
	stored := func(id, letters string, expiry time.Time) *aztables.SignedIdentifier {
		return &aztables.SignedIdentifier{ID: &id, AccessPolicy: &aztables.AccessPolicy{
			Start: pointer(time.Now().UTC().Add(-time.Hour)), Expiry: &expiry, Permission: &letters,
		}}
	}
	hour, past := time.Now().UTC().Add(time.Hour), time.Now().UTC().Add(-time.Minute)
	client := tableSAS(t, shared, name, aztables.SASSignatureValues{Identifier: "policy"})
	read := func() error { _, err := client.GetEntity(t.Context(), "p", "r", nil); return err }
	write := func() error { return insert(t, client, entity("p", "new"), nil) }

	set(stored("other", "raud", hour))
	wantRefusal(t, read(), unauthenticated)
	set(stored("other", "raud", hour), stored("policy", "r", hour))
	wantRefusal(t, read(), refusal{})
	wantRefusal(t, write(), wrongPermission)
	set(stored("policy", "ra", hour))
	wantRefusal(t, write(), refusal{})
	set(stored("policy", "ra", past))
	wantRefusal(t, read(), unauthenticated)
	set()
	wantRefusal(t, read(), unauthenticated)
}

// accountSAS returns a client of the account with a shared access signature.
func accountSAS(t *testing.T, types, letters string) *aztables.ServiceClient {
	t.Helper()
	query := must(aztables.AccountSASSignatureValues{
		Protocol: aztables.SASProtocolHTTPSandHTTP, ExpiryTime: time.Now().UTC().Add(time.Hour),
		Services: "t", ResourceTypes: types, Permissions: letters,
	}.Sign(shared.credential(t)))(t)
	return must(aztables.NewServiceClientWithNoCredential(shared.url+"/?"+query.Encode(), options()))(t)
}

func TestAccountSAS(t *testing.T) {
	name, owner := newTable(t)
	must(owner.AddEntity(t.Context(), entity("p", "r"), nil))(t)
	wrongType := refusal{403, "AuthorizationResourceTypeMismatch"}
	missing := refusal{404, "ResourceNotFound"}
	for _, c := range []struct {
		name           string
		types, letters string
		do             func(s *aztables.ServiceClient) error
		want           refusal
	}{
		{"list tables", "c", "l", listOnce(t), refusal{}},
		{"list tables without l", "c", "r", listOnce(t), wrongPermission},
		{"list tables without c", "so", "rl", listOnce(t), wrongType},
		{"make a table without c", "o", "c", func(s *aztables.ServiceClient) error { _, err := s.CreateTable(t.Context(), name, nil); return err }, wrongType},
		{
			"make a table", "c", "c", func(s *aztables.ServiceClient) error { _, err := s.CreateTable(t.Context(), name, nil); return err },
			refusal{409, "TableAlreadyExists"},
		},
		{
			"make a table with w", "c", "w", func(s *aztables.ServiceClient) error { _, err := s.CreateTable(t.Context(), name, nil); return err },
			refusal{409, "TableAlreadyExists"},
		},
		{"delete a table", "c", "d", func(s *aztables.ServiceClient) error {
			_, err := s.DeleteTable(t.Context(), "NoSuchTable", nil)
			return err
		}, missing},
		{"delete a table without d", "c", "rwlc", func(s *aztables.ServiceClient) error {
			_, err := s.DeleteTable(t.Context(), "NoSuchTable", nil)
			return err
		}, wrongPermission},
		{"query", "o", "r", func(s *aztables.ServiceClient) error {
			_, err := queryRows(t.Context(), s.NewClient(name), nil)
			return err
		}, refusal{}},
		{"query without o", "sc", "r", func(s *aztables.ServiceClient) error {
			_, err := queryRows(t.Context(), s.NewClient(name), nil)
			return err
		}, wrongType},
		{
			"insert", "o", "a", func(s *aztables.ServiceClient) error { return insert(t, s.NewClient(name), entity("p", "r"), nil) },
			refusal{409, "EntityAlreadyExists"},
		},
		{"insert without a", "o", "ru", func(s *aztables.ServiceClient) error { return insert(t, s.NewClient(name), entity("p", "r"), nil) }, wrongPermission},
		{"update", "o", "u", func(s *aztables.ServiceClient) error {
			return update(aztables.UpdateModeMerge)(t, s.NewClient(name), entity("p", "r"), nil)
		}, refusal{}},
		{"delete", "o", "d", func(s *aztables.ServiceClient) error {
			return remove(t, s.NewClient(name), entity("p", "none"), nil)
		}, missing},
		{"delete without d", "o", "rau", func(s *aztables.ServiceClient) error {
			return remove(t, s.NewClient(name), entity("p", "r"), nil)
		}, wrongPermission},
		{"transaction", "o", "au", func(s *aztables.ServiceClient) error {
			_, err := s.NewClient(name).SubmitTransaction(t.Context(), adds(2), nil)
			return err
		}, refusal{}},
		{"properties", "s", "r", func(s *aztables.ServiceClient) error { _, err := s.GetProperties(t.Context(), nil); return err }, refusal{}},
		{"properties without s", "co", "r", func(s *aztables.ServiceClient) error { _, err := s.GetProperties(t.Context(), nil); return err }, wrongType},
		{"set properties without w", "s", "r", func(s *aztables.ServiceClient) error {
			_, err := s.SetProperties(t.Context(), aztables.ServiceProperties{}, nil)
			return err
		}, wrongPermission},
	} {
		t.Run(c.name, func(t *testing.T) { wantRefusal(t, c.do(accountSAS(t, c.types, c.letters)), c.want) })
	}
}

func listOnce(t *testing.T) func(s *aztables.ServiceClient) error {
	return func(s *aztables.ServiceClient) error {
		_, err := s.NewListTablesPager(nil).NextPage(t.Context())
		return err
	}
}

// TestWrongKeys uses a wrong key and an account that does not exist.
func TestWrongKeys(t *testing.T) {
	for _, c := range []struct{ name, account, key string }{
		{"another key", shared.account, "c3RyYW5nZXI="},
		{"another account", "nobody", shared.key},
	} {
		t.Run(c.name, func(t *testing.T) {
			cred := must(aztables.NewSharedKeyCredential(c.account, c.key))(t)
			service := must(aztables.NewServiceClientWithSharedKey(shared.url, cred, options()))(t)
			wantRefusal(t, listOnce(t)(service), unauthenticated)
		})
	}
}

// TestBearerOverHTTP sends a bearer token over HTTP. The SDK refuses to do that.
func TestBearerOverHTTP(t *testing.T) {
	text := must(token{}.GetToken(t.Context(), policy.TokenRequestOptions{}))(t).Token
	resp := ask(t, http.MethodGet, shared.url+"/Tables", map[string]string{"Authorization": "Bearer " + text, "x-ms-version": "2020-12-06"})
	if got := resp.StatusCode; got != 403 && got != 401 {
		t.Errorf("got %d, want 401 or 403", got)
	}
}
