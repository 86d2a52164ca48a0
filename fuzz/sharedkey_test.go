package fuzz

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

const (
	keyedAccount = "acct"
	accountKey   = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
)

// keyedNoon is the time at which signatures are verified.
var keyedNoon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func keyHolders(tb testing.TB) (*sharedkey.Verifier, *sharedkey.Credential) {
	tb.Helper()
	keys, err := sharedkey.NewKeys(accountKey)
	if err != nil {
		tb.Fatal(err)
	}
	c, err := sharedkey.NewCredential(keyedAccount, accountKey)
	if err != nil {
		tb.Fatal(err)
	}
	return &sharedkey.Verifier{
		Keys:  func(string) *sharedkey.Keys { return keys },
		Now:   func() time.Time { return keyedNoon },
		OAuth: true,
	}, c
}

// FuzzSharedKey signs any request. The signature verifies, and does not after a change of a
// signed byte. Any other Authorization is refused without a panic.
func FuzzSharedKey(f *testing.F) {
	f.Add("GET", "/acct/Tables", "", "", "", false, false, uint16(3), byte(1))
	f.Add("POST", "/acct/T(PartitionKey='a%20b',RowKey='%2525')", "timeout=3&$filter=x", "application/json", "SharedKey acct:x",
		true, false, uint16(30), byte(0x20))
	f.Add("PUT", "/acct-secondary/T%2f", "comp=acl", "application/xml", "Bearer a.b.c", false, true, uint16(15), byte(0x20))
	f.Add("GET", "/", "restype=service&comp=properties", "", "Bearer e30.e30.e30", true, true, uint16(0), byte(0xff))
	f.Add("GET", "/%", "comp=%", "a\tb", "SharedKeyLite acct:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", false, false, uint16(1), byte(2))
	f.Fuzz(func(t *testing.T, method, path, query, contentType, authorization string, lite, secondary bool, at uint16, flip byte) {
		if !strings.HasPrefix(path, "/") || !onRequestLine(method+path+query) || !inHeader(contentType+authorization) {
			return
		}
		v, c := keyHolders(t)
		r := &sharedkey.Request{
			Method: method, Path: path, RawQuery: query, Account: keyedAccount, Secondary: secondary, TLS: true,
			Remote: netip.MustParseAddr("10.0.0.1"),
			Header: http.Header{"X-Ms-Date": {keyedNoon.Format(http.TimeFormat)}, "Content-Type": {contentType}, "Authorization": {authorization}},
		}
		if g, err := v.Verify(t.Context(), r); err == nil && !strings.HasPrefix(authorization, "Bearer ") {
			t.Fatalf("%q, %q is granted %+v", query, authorization, g)
		}
		sign := c.SharedKey
		if lite {
			sign = c.SharedKeyLite
		}
		signed, err := sign(r)
		if err != nil || isSAS(query) {
			return
		}
		r.Header.Set("Authorization", signed)
		g, err := v.Verify(t.Context(), r)
		if err != nil {
			t.Fatalf("%q %q ? %q of type %q, signed with %q: %v", method, path, query, contentType, signed, err)
		}
		if err := g.Allow(sharedkey.ACL, "T"); err != nil {
			t.Fatal(err)
		}
		changed := []*string{&r.Path, &signed, &r.Method, &contentType}
		if lite {
			changed = changed[:2]
		}
		what := changed[int(at>>8)%len(changed)]
		if *what == "" || flip == 0 {
			return
		}
		before := *what
		bytes := []byte(before)
		bytes[int(at&0xff)%len(bytes)] ^= flip
		*what = string(bytes)
		if what == &r.Path && samePath(before, r.Path) {
			return
		}
		r.Header.Set("Authorization", signed)
		r.Header.Set("Content-Type", contentType)
		if _, err := v.Verify(t.Context(), r); err == nil {
			t.Fatalf("%q in place of %q still verifies", *what, before)
		}
	})
}

// onRequestLine reports whether text can be in a request line.
func onRequestLine(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f })
}

// inHeader reports whether text can be the value of a header.
func inHeader(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}

// isSAS reports whether a query has a parameter of a shared access signature.
func isSAS(query string) bool {
	return slices.ContainsFunc(strings.Split(query, "&"), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		return err == nil && (name == "sig" || name == "sv")
	})
}

// samePath reports whether two escaped paths mean the same.
func samePath(a, b string) bool {
	x, errA := url.PathUnescape(a)
	y, errB := url.PathUnescape(b)
	return errA == nil && errB == nil && x == y
}
