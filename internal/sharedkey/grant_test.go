package sharedkey

import (
	"fmt"
	"strings"
	"testing"
)

// TestAllow tests which grants cover each action: a key, a bearer token, and for each
// kind of shared access signature the letters.
func TestAllow(t *testing.T) {
	c := credential(t, key1)
	const all = "rwdlacu"
	for _, a := range []struct {
		action   Action
		resource byte   // the required letter of srt
		account  string // an account SAS needs one of these letters, of table all
		table    string // a table SAS needs all these letters
	}{
		{ReadProperties, 's', "r", ""},
		{WriteProperties, 's', "w", ""},
		{ReadStats, 's', "r", ""},
		{ListTables, 'c', "l", ""},
		{CreateTable, 'c', "cw", ""},
		{DeleteTable, 'c', "d", ""},
		{ACL, 0, "", ""},
		{Query, 'o', "r", "r"},
		{Insert, 'o', "a", "a"},
		{Update, 'o', "u", "u"},
		{Upsert, 'o', "au", "au"},
		{DeleteEntity, 'o', "d", "d"},
	} {
		for _, resources := range []string{"s", "c", "o", "sco"} {
			for _, letters := range append(strings.Split(all, ""), "au") {
				query := must(t)(c.AccountSAS(AccountSAS{ResourceTypes: resources, Permissions: letters, Expiry: "2026-03-05"}))
				var want *Refusal
				switch {
				case a.resource == 0:
					want = refusedOperation
				case !hasLetter(resources, a.resource):
					want = refusedResourceType
				case !strings.ContainsAny(letters, a.account), len(letters) < len(a.table):
					want = refusedPermission
				}
				allow(t, query, a.action, "T", want)
			}
		}
		for _, letters := range []string{"r", "a", "u", "d", "ra", "au", "ud", "rd", "rau", "rud", "rad", "aud", "raud"} {
			query := must(t)(c.TableSAS(TableSAS{Table: "People", Permissions: letters, Expiry: "2026-03-05"}))
			var want *Refusal
			if a.table == "" {
				want = refusedOperation
			}
			for i := range len(a.table) {
				if !hasLetter(letters, a.table[i]) {
					want = refusedPermission
				}
			}
			allow(t, query, a.action, "pEOPLE", want)
			allow(t, query, a.action, "Other", refusedOperation)
			allow(t, query, a.action, "", refusedOperation)
		}
		key, bearer, zero := Grant{kind: byKey}, Grant{kind: byBearer}, Grant{}
		if err := key.Allow(a.action, "T"); err != nil {
			t.Errorf("action %d by key: %v", a.action, err)
		}
		if err := bearer.Allow(a.action, "T"); (err == nil) != (a.action != ACL) {
			t.Errorf("action %d by bearer: %v", a.action, err)
		}
		wantRefusal(t, zero.Allow(a.action, "T"), refusedAuthentication)
	}
	key, bearer := Grant{kind: byKey}, Grant{kind: byBearer}
	wantRefusal(t, bearer.Allow(ACL, "T"), refusedBearerACL)
	wantRefusal(t, key.Allow(actions, "T"), refusedOperation)
}

func hasLetter(letters string, letter byte) bool {
	for i := range len(letters) {
		if letters[i] == letter {
			return true
		}
	}
	return false
}

func allow(t *testing.T, query string, a Action, table string, want *Refusal) {
	t.Helper()
	g, err := verify(verifier(t), request("GET", "/T", query))
	if err != nil {
		t.Fatal(err)
	}
	got := g.Allow(a, table)
	if want == nil && got != nil || want != nil && got != error(want) {
		t.Errorf("action %d on %q with %s: %v, want %v", a, table, query, got, want)
	}
}

func TestRefusalMessages(t *testing.T) {
	for _, c := range []struct {
		refusal *Refusal
		want    string
	}{
		{
			refusedAuthentication,
			"403 AuthenticationFailed Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly " +
				"including the signature.",
		},
		{refusedOperation, "403 AuthorizationFailure This request is not authorized to perform this operation."},
		{refusedPermission, "403 AuthorizationPermissionMismatch This request is not authorized to perform this operation using this permission."},
		{refusedResourceType, "403 AuthorizationResourceTypeMismatch This request is not authorized to perform this operation using this resource type."},
		{refusedService, "403 AuthorizationServiceMismatch This request is not authorized to perform this operation using this service."},
		{refusedProtocol, "403 AuthorizationProtocolMismatch This request is not authorized to perform this operation using this protocol."},
		{refusedBearerACL, "404 ResourceNotFound The specified resource does not exist."},
		{refusedDate, "400 InvalidHeaderValue The value for one of the HTTP headers is not in the correct format."},
		{challenge, "401 NoAuthenticationInformation Server failed to authenticate the request. Please refer to the information in the www-authenticate header."},
		{refusedToken, "401 InvalidAuthenticationInfo Server failed to authenticate the request. Please refer to the information in the www-authenticate header."},
	} {
		if got := fmt.Sprint(c.refusal.Status, " ", c.refusal.Code, " ", c.refusal.Message); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	if refusedAuthentication.Error() != "AuthenticationFailed: "+authenticationMessage {
		t.Error(refusedAuthentication.Error())
	}
}
