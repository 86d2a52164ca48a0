package sharedkey

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

const (
	account  = "devstoreaccount1"
	key1     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	key2     = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	otherKey = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
)

// noon is the current time in the tests.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// verifier returns a Verifier for one account with two keys.
func verifier(tb testing.TB) *Verifier {
	tb.Helper()
	keys, err := NewKeys(key1, key2)
	if err != nil {
		tb.Fatal(err)
	}
	return &Verifier{
		Keys: func(name string) *Keys {
			if name != account {
				return nil
			}
			return keys
		},
		Now: func() time.Time { return noon },
	}
}

func credential(tb testing.TB, key string) *Credential {
	tb.Helper()
	c, err := NewCredential(account, key)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// request returns a request with x-ms-date and without credentials.
func request(method, path, query string) *Request {
	return &Request{
		Method: method, Path: path, RawQuery: query, Account: account, Remote: netip.MustParseAddr("127.0.0.1"),
		Header: http.Header{"X-Ms-Date": {noon.Format(http.TimeFormat)}},
	}
}

func wantRefusal(t *testing.T, err error, want *Refusal) {
	t.Helper()
	var got *Refusal
	if !errors.As(err, &got) {
		t.Fatalf("error %v, want %v", err, want)
	}
	if *got != *want {
		t.Fatalf("refused with %+v, want %+v", got, want)
	}
}

func verify(v *Verifier, r *Request) (Grant, error) { return v.Verify(context.Background(), r) }
