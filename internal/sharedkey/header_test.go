package sharedkey

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// macOf returns the signature of lines, computed independently of this package.
func macOf(tb testing.TB, key string, lines ...string) string {
	tb.Helper()
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		tb.Fatal(err)
	}
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(strings.Join(lines, "\n")))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// TestKnownSignatures compares with signatures that Python's hmac module computed from
// the strings to sign in the documentation.
func TestKnownSignatures(t *testing.T) {
	for _, c := range []struct {
		name                string
		method, path, query string
		header              map[string]string
		want                string
	}{
		{
			"insert", "POST", "/devstoreaccount1/Tables", "",
			map[string]string{"Content-Type": "application/json"},
			"SharedKey devstoreaccount1:Og79I+yVeAZeiUfhCJzz8otJ3nMM17YJ1qB9elyqb98=",
		},
		{
			"digest and escapes", "PUT", "/People(PartitionKey='a%20b',RowKey='%2525')", "timeout=30",
			map[string]string{"Content-Type": "application/json;odata=nometadata", "Content-Md5": "XUFAKrxLKna5cZ2REBfFkg=="},
			"SharedKey devstoreaccount1:uZwrfDw91R5IaQWhWk894TT3+NwVc3kmR8Lk4rCt8vY=",
		},
		{
			"lite", "GET", "/", "restype=service&comp=properties&timeout=30",
			map[string]string{"Content-Type": "not signed"},
			"SharedKeyLite devstoreaccount1:9e0erJC7/URQdzLDYT7sO3tGAFo9qoVBPknjviwFZGE=",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request(c.method, c.path, c.query)
			for name, value := range c.header {
				r.Header.Set(name, value)
			}
			sign := credential(t, key1).SharedKey
			if strings.HasPrefix(c.want, schemeLite) {
				sign = credential(t, key1).SharedKeyLite
			}
			if got, err := sign(r); err != nil || got != c.want {
				t.Errorf("signed with %q, %v, want %q", got, err, c.want)
			}
			r.Header.Set("Authorization", c.want)
			if _, err := verify(verifier(t), r); err != nil {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

// TestHeaders signs an insert that each case changes before or after.
func TestHeaders(t *testing.T) {
	const json = "application/json"
	date := func(d time.Duration) string { return noon.Add(d).Format(http.TimeFormat) }
	full := func(key, date, path string) string {
		return "SharedKey " + account + ":" + macOf(t, key, "POST", "", json, date, "/"+account+path)
	}
	lite := func(key, date, path string) string {
		return "SharedKeyLite " + account + ":" + macOf(t, key, date, "/"+account+path)
	}
	const path = "/devstoreaccount1/People"
	good := full(key1, date(0), path)
	signature := strings.TrimPrefix(good, "SharedKey "+account+":")
	set := func(name string, values ...string) func(*Request) {
		return func(r *Request) { r.Header[name] = values }
	}
	for _, c := range []struct {
		name          string
		authorization string
		change        func(*Request)
		want          *Refusal
	}{
		{"valid", good, nil, nil},
		{"second key", full(key2, date(0), path), nil, nil},
		{"lite", lite(key1, date(0), path), nil, nil},
		{"lite does not sign method and content", lite(key2, date(0), path), func(r *Request) { r.Method = "PUT"; r.Header.Del("Content-Type") }, nil},
		{"lite with two types", lite(key1, date(0), path), set("Content-Type", "a", "b"), nil},
		{"query except comp is not signed", good, func(r *Request) { r.RawQuery = "timeout=3&$filter=comp&Comp=x" }, nil},
		{"other headers", good, set("Accept", "a", "b"), nil},

		{"wrong key", full(otherKey, date(0), path), nil, refusedAuthentication},
		{"unknown account", strings.Replace(good, account, "nobody", 1), func(r *Request) { r.Account = "nobody" }, refusedAuthentication},
		{"other account in the header", strings.Replace(good, account, "other", 1), nil, refusedAuthentication},
		{"account in other case", strings.Replace(good, account, "DevStoreAccount1", 1), nil, refusedAuthentication},
		{"no signature", "SharedKey " + account + ":", nil, refusedAuthentication},
		{"no colon", "SharedKey " + account, nil, refusedAuthentication},
		{"nothing", "SharedKey", nil, refusedAuthentication},
		{"one character", "SharedKey " + account + ":A", nil, refusedAuthentication},
		{"a megabyte", "SharedKey " + account + ":" + strings.Repeat("A", 1<<20), nil, refusedAuthentication},
		{"not base64", "SharedKey " + account + ":" + strings.Repeat("*", signatureLen), nil, refusedAuthentication},
		{"no padding", strings.TrimSuffix(good, "="), nil, refusedAuthentication},
		{"more padding", good + "=", nil, refusedAuthentication},
		{"other last bits", good[:len(good)-2] + string(good[len(good)-2]+1) + "=", nil, refusedAuthentication},
		{"blank before", "SharedKey " + account + ": " + signature, nil, refusedAuthentication},
		{"two blanks", "SharedKey  " + account + ":" + signature, nil, refusedAuthentication},
		{"line feed inside", "SharedKey " + account + ":" + signature[:8] + "\n" + signature[8:], nil, refusedAuthentication},
		{"lite signature as full", strings.Replace(lite(key1, date(0), path), schemeLite, schemeFull, 1), nil, refusedAuthentication},
		{"full signature as lite", strings.Replace(good, schemeFull, schemeLite, 1), nil, refusedAuthentication},
		{"lite scheme in lower case", strings.ToLower(schemeLite) + " " + account + ":" + signature, nil, refusedAuthentication},
		{"scheme in lower case", strings.ToLower(schemeFull) + good[len(schemeFull):], nil, refusedAuthentication},
		{"other scheme", "Basic " + signature, nil, refusedScheme},

		{"other method", good, func(r *Request) { r.Method = "PUT" }, refusedAuthentication},
		{"other type", good, set("Content-Type", "application/json;charset=utf-8"), refusedAuthentication},
		{"digest added", good, set("Content-Md5", "XUFAKrxLKna5cZ2REBfFkg=="), refusedAuthentication},
		{"other path", good, func(r *Request) { r.Path += "x" }, refusedAuthentication},
		{"comp added", good, func(r *Request) { r.RawQuery = "comp=acl" }, refusedAuthentication},
		{"two authorizations", good, set("Authorization", good, good), refusedAuthentication},
		{"two types", good, set("Content-Type", json, json), refusedAuthentication},
		{
			"two types, signed as none", "SharedKey " + account + ":" + macOf(t, key1, "POST", "", "", date(0), "/"+account+path),
			set("Content-Type", json, json), refusedAuthentication,
		},
		{
			"two digests, signed as none", "SharedKey " + account + ":" + macOf(t, key1, "POST", "", json, date(0), "/"+account+path),
			set("Content-Md5", "a", "b"), refusedAuthentication,
		},
		{
			"two x-ms-dates beside the Date signed", good,
			func(r *Request) {
				r.Header["X-Ms-Date"] = []string{date(time.Minute), date(0)}
				r.Header.Set("Date", date(0))
			}, refusedAuthentication,
		},
		{"two x-ms-dates", good, set("X-Ms-Date", date(0), date(0)), refusedAuthentication},
		{"two Dates", good, set("Date", date(0), date(0)), refusedAuthentication},
		{"signature in the query too", good, func(r *Request) { r.RawQuery = "sig=" + signature }, refusedAuthentication},

		{"oldest valid date", full(key1, date(-maxSkew), path), set("X-Ms-Date", date(-maxSkew)), nil},
		{"latest valid date", full(key1, date(maxSkew), path), set("X-Ms-Date", date(maxSkew)), nil},
		{"too old", full(key1, date(-maxSkew-time.Second), path), set("X-Ms-Date", date(-maxSkew-time.Second)), refusedClock},
		{"too far in the future", full(key1, date(maxSkew+time.Second), path), set("X-Ms-Date", date(maxSkew+time.Second)), refusedClock},
		{"1601", full(key1, "Mon, 01 Jan 1601 00:00:00 GMT", path), set("X-Ms-Date", "Mon, 01 Jan 1601 00:00:00 GMT"), refusedClock},
		{"9999", full(key1, "Fri, 31 Dec 9999 23:59:59 GMT", path), set("X-Ms-Date", "Fri, 31 Dec 9999 23:59:59 GMT"), refusedClock},
		{"no date", full(key1, "", path), set("X-Ms-Date"), refusedClock},
		{"x-ms-date of another format", full(key1, "2026-03-04T12:00:00Z", path), set("X-Ms-Date", "2026-03-04T12:00:00Z"), refusedDate},
		{
			"x-ms-date with a fraction", full(key1, "Wed, 04 Mar 2026 12:00:00.5 GMT", path), set("X-Ms-Date", "Wed, 04 Mar 2026 12:00:00.5 GMT"), refusedDate,
		},
		{"long x-ms-date", full(key1, "", path), set("X-Ms-Date", strings.Repeat("1", 1<<20)), refusedDate},
		{"Date of another format", full(key1, "2026-03-04T12:00:00Z", path), func(r *Request) {
			r.Header = http.Header{"Date": {"2026-03-04T12:00:00Z"}, "Content-Type": {json}}
		}, refusedClock},
		{"Date alone", good, func(r *Request) { r.Header.Del("X-Ms-Date"); r.Header.Set("Date", date(0)) }, nil},
		{"Date signed", good, func(r *Request) { r.Header.Set("X-Ms-Date", date(time.Minute)); r.Header.Set("Date", date(0)) }, nil},
		{"x-ms-date signed", good, set("Date", date(time.Minute)), nil},
		{
			"stale date signed beside a fresh one", full(key1, date(-time.Hour), path),
			set("Date", date(-time.Hour)), refusedAuthentication,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request("POST", path, "")
			r.Header.Set("Content-Type", json)
			r.Header.Set("Authorization", c.authorization)
			if c.change != nil {
				c.change(r)
			}
			if values := r.Header["Authorization"]; len(values) == 0 {
				r.Header.Set("Authorization", c.authorization)
			}
			g, err := verify(verifier(t), r)
			if c.want != nil {
				wantRefusal(t, err, c.want)
				wantRefusal(t, g.Allow(Query, "People"), refusedAuthentication)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Allow(ACL, "People"); err != nil {
				t.Errorf("the grant of a key does not allow ACL: %v", err)
			}
		})
	}
}

// TestResources signs the path in each form that clients use.
func TestResources(t *testing.T) {
	for _, c := range []struct {
		name, path, query string
		secondary         bool
		signed            string // the canonicalized resource
		ok                bool
	}{
		{"host style", "/Tables", "", false, "/devstoreaccount1/Tables", true},
		{"path style", "/devstoreaccount1/Tables", "", false, "/devstoreaccount1/devstoreaccount1/Tables", true},
		{"path style with the account once", "/devstoreaccount1/Tables", "", false, "/devstoreaccount1/Tables", false},
		{"root", "/", "comp=properties&restype=service", false, "/devstoreaccount1/?comp=properties", true},
		{"empty path", "", "restype=service&comp=properties", false, "/devstoreaccount1/?comp=properties", true},
		{"comp omitted", "/T", "comp=acl", false, "/devstoreaccount1/T", false},
		{"comp escaped", "/T", "com%70=ac%6C", false, "/devstoreaccount1/T?comp=acl", true},
		{"comp empty", "/T", "comp=", false, "/devstoreaccount1/T?comp=", true},
		{"comp twice", "/T", "comp=acl&comp=acl", false, "/devstoreaccount1/T?comp=acl", false},
		{"comp twice, once escaped", "/T", "comp=acl&%63omp=x", false, "/devstoreaccount1/T?comp=acl", false},
		{"comp with a line feed", "/T", "comp=a%0Ab", false, "/devstoreaccount1/T?comp=a\nb", false},
		{"comp badly escaped", "/T", "comp=a%zz", false, "/devstoreaccount1/T?comp=a%zz", false},

		{"secondary, host style", "/Tables", "", true, "/devstoreaccount1/Tables", true},
		{"secondary, host style, another path", "/T", "", true, "/devstoreaccount1/S", false},
		{"secondary as sent", "/devstoreaccount1-secondary/Tables", "", true, "/devstoreaccount1/devstoreaccount1-secondary/Tables", true},
		{"secondary without suffix", "/devstoreaccount1-secondary/Tables", "", true, "/devstoreaccount1/devstoreaccount1/Tables", true},
		{"secondary root without suffix", "/devstoreaccount1-secondary", "", true, "/devstoreaccount1/devstoreaccount1", true},
		{
			"the primary's path below the secondary's", "/devstoreaccount1-secondary/devstoreaccount1/", "comp=stats", true,
			"/devstoreaccount1/devstoreaccount1/?comp=stats", true,
		},
		{"another account's path below the secondary's", "/devstoreaccount1-secondary/other/T", "", true, "/devstoreaccount1/other/T", false},
		{"another account with that prefix", "/devstoreaccount1-secondaryx/T", "", true, "/devstoreaccount1/devstoreaccount1x/T", false},
		{"suffix on the primary", "/devstoreaccount1-secondary/T", "", false, "/devstoreaccount1/devstoreaccount1/T", false},

		{"escapes as sent", "/T(PartitionKey=%27a%27)", "", false, "/devstoreaccount1/T(PartitionKey=%27a%27)", true},
		{"escapes in normal form", "/T%28PartitionKey=%27a%2f%e2%82%ac%27%29", "", false, "/devstoreaccount1/T(PartitionKey='a%2F%E2%82%AC')", true},
		{"bytes that need an escape", "/T(PartitionKey='a\"b')", "", false, "/devstoreaccount1/T(PartitionKey='a%22b')", true},
		{"a slash is not an escaped slash", "/T(PartitionKey='a%2Fb')", "", false, "/devstoreaccount1/T(PartitionKey='a/b')", false},
		{"a percent sign is not an escaped one", "/T(PartitionKey='%2541')", "", false, "/devstoreaccount1/T(PartitionKey='A')", false},
		{"secondary in normal form without suffix", "/devstoreaccount1-secondary/%54", "", true, "/devstoreaccount1/devstoreaccount1/T", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, lite := range []bool{false, true} {
				r := request("GET", c.path, c.query)
				r.Secondary = c.secondary
				lines := []string{"GET", "", "", r.Header.Get("X-Ms-Date"), c.signed}
				scheme := schemeFull
				if lite {
					scheme, lines = schemeLite, lines[3:]
				}
				r.Header.Set("Authorization", scheme+" "+account+":"+macOf(t, key1, lines...))
				if _, err := verify(verifier(t), r); (err == nil) != c.ok {
					t.Errorf("%s: %q?%s against %q: %v", scheme, c.path, c.query, c.signed, err)
				}
			}
		})
	}
}

func TestSignRequest(t *testing.T) {
	h, err := http.NewRequest("PUT", "http://127.0.0.1:10002/devstoreaccount1/T(PartitionKey='a%20b',RowKey='%25')?comp=acl", nil)
	if err != nil {
		t.Fatal(err)
	}
	h.Header.Set("Content-Type", "application/xml")
	if err := credential(t, key2).SignRequest(h, noon); err != nil {
		t.Fatal(err)
	}
	r := &Request{Method: h.Method, Path: h.URL.EscapedPath(), RawQuery: h.URL.RawQuery, Header: h.Header, Account: account}
	if _, err := verify(verifier(t), r); err != nil {
		t.Error(err)
	}
	h.Header["Content-Type"] = []string{"a", "b"}
	if err := credential(t, key2).SignRequest(h, noon); err == nil {
		t.Error("a request with two Content-Types was signed")
	}
	h.Header.Set("Content-Type", "a")
	h.URL.RawQuery = "comp=acl&comp=list"
	if err := credential(t, key2).SignRequest(h, noon); err == nil {
		t.Error("a request with two values of comp was signed")
	}
}

// TestSignDefaults signs a request without a path whose only date is Date.
func TestSignDefaults(t *testing.T) {
	r := request("GET", "", "comp=properties&restype=service")
	r.Header = http.Header{"Date": {noon.Format(http.TimeFormat)}}
	r.Header.Set("Authorization", must(t)(credential(t, key1).SharedKey(r)))
	if _, err := verify(verifier(t), r); err != nil {
		t.Errorf("refused: %v", err)
	}
}

func TestAnonymous(t *testing.T) {
	for _, c := range []struct {
		version []string
		query   string
		want    *Refusal
	}{
		{nil, "", refusedAnonymous},
		{[]string{"2019-07-07"}, "", refusedAnonymous},
		{[]string{"2019-12-11"}, "restype=service&comp=stats", refusedAnonymous},
		{[]string{"2019-12-12"}, "", challenge},
		{[]string{"2020-12-06"}, "comp=acl", challenge},
		{[]string{"2020-12-06"}, "restype=service&comp=stats", serviceChallenge},
		{[]string{"2020-12-06"}, "restype=service&comp=properties", serviceChallenge},
		{[]string{"latest"}, "", refusedAnonymous},
		{[]string{"2020-12-06", "2020-12-06"}, "", refusedAnonymous},
	} {
		t.Run(fmt.Sprint(c.version, c.query), func(t *testing.T) {
			r := request("GET", "/Tables", c.query)
			r.Header["X-Ms-Version"] = c.version
			_, err := verify(verifier(t), r)
			wantRefusal(t, err, c.want)
		})
	}
	if challenge.Status != 401 || challenge.Bare || !serviceChallenge.Bare || !strings.HasPrefix(challenge.Challenge, "Bearer authorization_uri=https://") {
		t.Errorf("challenge %+v", challenge)
	}
}

func TestNormalPath(t *testing.T) {
	for _, c := range [][2]string{
		{"", ""},
		{"/a/b", "/a/b"},
		{"/T(PartitionKey='',RowKey='-._~!$&*+,;=:@')", "/T(PartitionKey='',RowKey='-._~!$&*+,;=:@')"},
		{"/%41%7e%2E", "/A~."},
		{"/%2f%2F%25%5c", "/%2F%2F%25%5C"},
		{"/a b\u20ac\x00", "/a%20b%E2%82%AC%00"},
		{"/%", "/%25"},
		{"/%4", "/%254"},
		{"/%zz", "/%25zz"},
		{"/%4z%z4", "/%254z%25z4"},
		{"/%4:%:4", "/%254:%25:4"},
		{"/%1a", "/%1A"},
		{"/A%eF", "/A%EF"},
		{"/%41/b", "/A/b"},
		{"/azAZ09", "/azAZ09"},
		{"/`{[^", "/%60%7B%5B%5E"},
	} {
		got := normalPath(c[0])
		if got != c[1] {
			t.Errorf("normalPath(%q) = %q, want %q", c[0], got, c[1])
		}
		if again := normalPath(got); again != got {
			t.Errorf("%q is not normal: normalPath returns %q", got, again)
		}
	}
}
