package fuzz

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// FuzzSAS makes tokens of any content. Each token verifies or is refused because of its
// content, grants what it says, and is refused after a change of its text. The bytes of
// extra are appended to its query.
func FuzzSAS(f *testing.F) {
	f.Add("2019-02-02", "People", "raud", "", "2026-03-05", "", "", "a", "1", "b", "2", "", "&timeout=3", uint16(0), byte(0))
	f.Add("2013-08-15", "T", "r", "2026-03-04T00:00Z", "2026-03-05T00:00:00Z", "", "", "", "", "", "", "", "&sp=raud", uint16(40), byte(1))
	f.Add("2020-12-06", "", "rwdlacu", "", "2026-03-05", "10.0.0.0-10.0.0.9", "https", "", "", "", "", "sco", "&ses=", uint16(9), byte(0x20))
	f.Add("2015-04-05", "$MetricsX", "ud", "", "2026-03-04T12:00:00.5+00:00", "10.0.0.1", "https,http",
		" +%", "", "\U0001F600", "\uE000", "", "&epk=", uint16(77), byte(3))
	f.Add("2031-01-01", "T", "a", "2027-01-01", "2027-01-02", "::ffff:10.0.0.1", "", "", "", "", "", "", "&&=;%zz=1&%73v=", uint16(80), byte(0x11))
	f.Fuzz(func(t *testing.T, version, table, letters, start, expiry, ip, protocol, spk, srk, epk, erk, types, extra string, at uint16, flip byte) {
		v, c := keyHolders(t)
		ask := func(query string) (sharedkey.Grant, error) {
			return v.Verify(t.Context(), &sharedkey.Request{
				Method: "GET", Path: "/acct/T", RawQuery: query, Account: keyedAccount, Remote: netip.MustParseAddr("10.0.0.1"),
			})
		}
		if g, err := ask(extra); err == nil {
			t.Fatalf("%q is granted %+v", extra, g)
		}
		var query string
		var err error
		if types == "" {
			query, err = c.TableSAS(sharedkey.TableSAS{
				Version: version, Table: table, Permissions: letters, Start: start, Expiry: expiry, IP: ip, Protocol: protocol,
				StartPartition: spk, StartRow: srk, EndPartition: epk, EndRow: erk,
			})
		} else {
			query, err = c.AccountSAS(sharedkey.AccountSAS{
				Version: version, ResourceTypes: types, Permissions: letters, Start: start, Expiry: expiry, IP: ip, Protocol: protocol,
			})
		}
		if err != nil {
			return
		}
		g, err := ask(query)
		var refusal *sharedkey.Refusal
		switch {
		case err == nil:
			checkGrant(t, &g, table, letters, types, edm.Key{Partition: spk, Row: srk}, edm.Key{Partition: epk, Row: erk})
		case !errors.As(err, &refusal) || refusal.Status != 403:
			t.Fatalf("%q: %v", query, err)
		}
		changed := []byte(query)
		changed[int(at)%len(changed)] ^= flip
		if other := string(changed) + extra; !sameToken(query, other) {
			if g, err := ask(other); err == nil {
				t.Fatalf("%q in place of %q is granted %+v", other, query, g)
			}
		}
	})
}

func checkGrant(t *testing.T, g *sharedkey.Grant, table, letters, types string, start, end edm.Key) {
	t.Helper()
	for action, needs := range map[sharedkey.Action]string{
		sharedkey.Query: "r", sharedkey.Insert: "a", sharedkey.Update: "u", sharedkey.DeleteEntity: "d", sharedkey.ACL: "?",
	} {
		want := strings.Contains(letters, needs) && (types == "" || strings.Contains(types, "o"))
		if got := g.Allow(action, strings.ToUpper(table)) == nil; got != want {
			t.Fatalf("action %d with letters %q: allowed %v, want %v", action, letters, got, want)
		}
		if types == "" && g.Allow(action, table+"x") == nil {
			t.Fatalf("action %d is allowed on another table", action)
		}
	}
	r, bounded := g.Bounds()
	if want := start.Partition != "" || end.Partition != ""; bounded != want {
		t.Fatalf("bounded: %v, want %v", bounded, want)
	}
	for _, k := range []edm.Key{{}, start, end, {Partition: start.Partition}, {Partition: end.Partition, Row: end.Row + "x"}, {Partition: "m", Row: "m"}} {
		after := edm.Compare(k.Partition, start.Partition) > 0 || k.Partition == start.Partition && edm.Compare(k.Row, start.Row) >= 0
		before := end.Partition == "" || edm.Compare(k.Partition, end.Partition) < 0 ||
			k.Partition == end.Partition && (end.Row == "" || edm.Compare(k.Row, end.Row) <= 0)
		if got := r.Contains(k); got != (after && before) {
			t.Fatalf("%+v in %+v: %v, want %v", k, r, got, after && before)
		}
	}
}

// sameToken reports whether two queries can mean the same to a verifier. It returns true for
// queries that package net/url does not parse completely.
func sameToken(a, b string) bool {
	x, errA := url.ParseQuery(a)
	y, errB := url.ParseQuery(b)
	if errA != nil || errB != nil {
		return true
	}
	for _, name := range strings.Fields("epk erk se ses sip si sp spr srt ss sig st spk srk tn sv") {
		said, says := x.Get(name), y.Get(name)
		switch name {
		case "tn":
			said, says = edm.FoldTableName(said), edm.FoldTableName(says)
		case "sig":
			says = strings.ReplaceAll(says, " ", "+")
		}
		if said != says || len(y[name]) > 1 {
			return false
		}
	}
	return true
}
