package sharedkey

import (
	"slices"
	"testing"
	"time"
)

func TestDescribe(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	const (
		insecure = "It may be sent over http, where others can read and use it."
		writes   = "It allows writes from any address."
		https    = "Protocol (spr=https): https refuses connections that others can read."
		expiry   = "Expiry (se=2026-03-05): The signature is refused from this time on (UTC)."
	)
	for _, c := range []struct {
		query             string
		summary, warnings []string
	}{
		{"%zz", nil, nil},
		{"tn=T&sp=rx&se=2026-03-05", []string{"Permissions (sp=rx): read and query.", expiry}, []string{insecure}},
		{"tn=T&sp=ra&se=2026-03-05&sip=10.0.0.1&spr=https", []string{
			"Permissions (sp=ra): read and query, add.", expiry, "Addresses (sip=10.0.0.1): Only this address, or range of addresses, may use it. Empty: any.",
			https,
		}, nil},
		{"ss=t&srt=c&sp=l&se=2026-03-05&spr=https,http", []string{
			"Permissions (sp=l): list tables.", "Resource types (srt=c): tables.", expiry,
			"Protocol (spr=https,http): https refuses connections that others can read.",
		}, []string{insecure}},
		{"tn=T&sp=u&spr=https", []string{"Permissions (sp=u): update.", https}, []string{writes}},
		{"tn=T&si=readers&se=2030-01-01&spr=https", []string{
			"Expiry (se=2030-01-01): The signature is refused from this time on (UTC).", "Stored policy (si=readers): The access policy of the table that has the " +
				"fields left empty here. Removing the policy ends the signature; without one only a new account key does.", https,
		}, nil},
	} {
		summary, warnings := Describe(c.query, now)
		if !slices.Equal(summary, c.summary) {
			t.Errorf("%s: summary\n%q\nwant\n%q", c.query, summary, c.summary)
		}
		if !slices.Equal(warnings, c.warnings) {
			t.Errorf("%s: got warnings %q, want %q", c.query, warnings, c.warnings)
		}
	}
}

func TestInOrder(t *testing.T) {
	for _, c := range []struct{ letters, order, want string }{
		{"", "raud", ""}, {"duar", "raud", "raud"}, {"xdrd", "raud", "rdx"}, {"rdxr", "raud", "rdx"},
	} {
		if got := InOrder(c.letters, c.order); got != c.want {
			t.Errorf("InOrder(%q, %q) = %q, want %q", c.letters, c.order, got, c.want)
		}
	}
}

// TestDescribeWarnsOfExpiry describes signatures that expire, in each form of a time. The
// warnings are those of the expiry alone.
func TestDescribeWarnsOfExpiry(t *testing.T) {
	const (
		long    = "It is valid for more than a week, and only a new account key ends it earlier. A stored policy could."
		expired = "It has expired already."
	)
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		expiry string
		want   []string
	}{
		{"2026-03-11T12:00:00Z", nil},
		{"2026-03-11T12:00:01Z", []string{long}},
		{"2026-03-11T12:01Z", []string{long}},
		{"2030-01-01", []string{long}},
		{"2026-03-05", nil},
		{"2026-03-04T12:00:01Z", nil},
		{"2026-03-04T12:00:00Z", []string{expired}},
		{"2026-03-04T11:59Z", []string{expired}},
		{"2026-03-04", []string{expired}},
	} {
		query := must(t)(credential(t, key1).TableSAS(TableSAS{Table: "People", Permissions: "r", Protocol: "https", Expiry: c.expiry}))
		if _, got := Describe(query, now); !slices.Equal(got, c.want) {
			t.Errorf("a signature that expires %s, at %v: got warnings %q, want %q", c.expiry, now, got, c.want)
		}
	}
}
