package sharedkey

import (
	"slices"
	"testing"
	"time"
)

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
