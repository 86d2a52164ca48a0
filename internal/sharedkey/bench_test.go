package sharedkey

import (
	"net/http"
	"strings"
	"testing"
)

// BenchmarkVerify measures each authorization scheme, and refusals, which must take the
// same time for each reason.
func BenchmarkVerify(b *testing.B) {
	v, c := verifier(b), credential(b, key1)
	signed := func(sign func(*Request) (string, error)) *Request {
		r := request("POST", "/devstoreaccount1/People(PartitionKey='partition',RowKey='0000000001')", "$select=a,b,c&timeout=30")
		r.Header = http.Header{"X-Ms-Date": r.Header["X-Ms-Date"], "Content-Type": {"application/json"}, "X-Ms-Version": {"2019-02-02"}}
		a, err := sign(r)
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Authorization", a)
		return r
	}
	with := func(authorization func(string) string) *Request {
		r := signed(c.SharedKey)
		r.Header.Set("Authorization", authorization(r.Header.Get("Authorization")))
		return r
	}
	token := func(query string, err error) *Request {
		if err != nil {
			b.Fatal(err)
		}
		return request("GET", "/devstoreaccount1/People()", query)
	}
	const at = len(schemeFull + " " + account + ":")
	unknownAccount := signed(c.SharedKey)
	unknownAccount.Account = "nobody"
	for _, k := range []struct {
		name string
		r    *Request
		ok   bool
	}{
		{"scheme=SharedKey", signed(c.SharedKey), true},
		{"scheme=SharedKeyLite", signed(c.SharedKeyLite), true},
		{"scheme=tableSAS", token(c.TableSAS(TableSAS{Table: "People", Permissions: "raud", Expiry: "2026-03-05T00:00:00Z"})), true},
		{"scheme=accountSAS", token(c.AccountSAS(AccountSAS{ResourceTypes: "sco", Permissions: "rwdlacu", Expiry: "2026-03-05T00:00:00Z"})), true},
		{"refused=account", unknownAccount, false},
		{"refused=base64", with(func(s string) string { return s[:len(s)-8] + "********" }), false},
		{"refused=firstByte", with(func(s string) string { return strings.Replace(s, s[at:at+4], "AAAA", 1) }), false},
		{"refused=lastByte", with(func(s string) string { return s[:len(s)-4] + "AAA=" }), false},
	} {
		b.Run(k.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := verify(v, k.r); (err == nil) != k.ok {
					b.Fatal(err)
				}
			}
		})
	}
}
