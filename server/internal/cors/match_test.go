package cors

import (
	"net/http"
	"testing"
)

func TestMatch(t *testing.T) {
	rules := []Rule{
		{AllowedMethods: []string{"GET"}, AllowedOrigins: []string{"http://a.example", "http://b.example"}, AllowedHeaders: []string{"x-one"}},
		{AllowedMethods: []string{"GET", "PUT"}, AllowedOrigins: []string{"http://a.example"}, AllowedHeaders: []string{"x-*", "Accept"}},
		{AllowedMethods: []string{"DELETE"}, AllowedOrigins: []string{"*"}, AllowedHeaders: []string{"*"}},
		{AllowedMethods: []string{"MERGE"}, AllowedOrigins: []string{"*", "http://a.example"}},
		{AllowedMethods: []string{"PATCH"}, AllowedOrigins: []string{"https://*.c.example", "http://*.d.example:8080"}},
	}
	const none = -1
	for _, c := range []struct {
		name, origin, method string
		headers              []string
		actual, preflight    int // of rules
		allowed              string
	}{
		{"first", "http://a.example", "GET", nil, 0, 0, "http://a.example"},
		{"first of several that match", "http://a.example", "GET", []string{"X-ONE"}, 0, 0, "http://a.example"},
		{"second by a header", "http://a.example", "GET", []string{"x-one, x-two"}, 0, 1, "http://a.example"},
		{"headers in two lists", "http://a.example", "GET", []string{"x-one", " accept\t,,x-"}, 0, 1, "http://a.example"},
		{"header of none", "http://b.example", "GET", []string{"x-two"}, 0, none, "http://b.example"},
		{"header shorter than the prefix", "http://a.example", "PUT", []string{"x"}, 1, none, "http://a.example"},
		{"second by the method", "http://a.example", "PUT", []string{""}, 1, 1, "http://a.example"},
		{"origin in another case", "http://A.example", "GET", nil, none, none, ""},
		{"origin with more", "http://a.example.com", "GET", nil, none, none, ""},
		{"no origin", "", "GET", nil, none, none, ""},
		{"no origin, star", "", "DELETE", nil, 2, 2, "*"},
		{"method in another case", "http://a.example", "get", nil, none, none, ""},
		{"method of none", "http://a.example", "POST", nil, none, none, ""},
		{"star", "null", "DELETE", []string{"anything"}, 2, 2, "*"},
		{"star, and an invalid header", "null", "DELETE", []string{"any thing"}, 2, none, "*"},
		{"no headers allowed", "null", "MERGE", []string{"a"}, 3, none, "*"},
		{"subdomain", "https://a.c.example", "PATCH", nil, 4, 4, "https://a.c.example"},
		{"subdomain of a subdomain", "https://b.a.c.example", "PATCH", nil, 4, 4, "https://b.a.c.example"},
		{"subdomain with a port", "http://a.d.example:8080", "PATCH", nil, 4, 4, "http://a.d.example:8080"},
		{"subdomain with another port", "https://a.c.example:8080", "PATCH", nil, none, none, ""},
		{"subdomain by another scheme", "http://a.c.example", "PATCH", nil, none, none, ""},
		{"the domain itself", "https://c.example", "PATCH", nil, none, none, ""},
		{"an empty subdomain", "https://.c.example", "PATCH", nil, none, none, ""},
		{"another domain with the same end", "https://ac.example", "PATCH", nil, none, none, ""},
		{"a path with the same end", "https://evil.example/.c.example", "PATCH", nil, none, none, ""},
		{"no origin, subdomains", "", "PATCH", nil, none, none, ""},
		{"named beside a star", "http://a.example", "MERGE", nil, 3, 3, "*"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := func(i int) *Rule {
				if i == none {
					return nil
				}
				return &rules[i]
			}
			if got := match(rules, c.origin, c.method, nil); got != at(c.actual) {
				t.Errorf("match(%q, %q, nil): got %+v, want rule %d", c.origin, c.method, got, c.actual)
			} else if got != nil && got.origin(c.origin) != c.allowed {
				t.Errorf("rule %d for %q: got origin %q, want %q", c.actual, c.origin, got.origin(c.origin), c.allowed)
			}
			if got := match(rules, c.origin, c.method, c.headers); got != at(c.preflight) {
				t.Errorf("match(%q, %q, %q): got %+v, want rule %d", c.origin, c.method, c.headers, got, c.preflight)
			}
		})
	}
}

func TestExposed(t *testing.T) {
	h := http.Header{}
	for _, name := range []string{
		"X-Ms-Version", "ETag", "Server", "Content-Type", "x-ms-request-id", "Cache-Control", "X-Content-Type-Options",
		"X-Ms-Client-Request-Id", "Vary", "Content-Length",
	} {
		h.Set(name, "1")
	}
	for _, c := range []struct {
		name   string
		expose []string
		want   string
	}{
		{"none", nil, ""},
		{
			"star",
			[]string{"*"},
			"x-ms-request-id,x-ms-client-request-id,Server,x-ms-version,X-Content-Type-Options,Cache-Control,ETag,Content-Type,Content-Length,Date,Transfer-Encoding",
		},
		{"literals, there or not", []string{"etag", "x-ms-meta-a"}, "etag,x-ms-meta-a"},
		{"literals and a prefix", []string{"X-MS-*", "x-ms-version", "date"}, "x-ms-version,date,x-ms-request-id,x-ms-client-request-id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := (&Rule{ExposedHeaders: c.expose}).exposed(h); got != c.want {
				t.Errorf("exposed by %q of %v:\ngot  %q\nwant %q", c.expose, h, got, c.want)
			}
		})
	}
}

// TestExposedOfRefusal exposes the headers that only refusals have. A page does not see when
// to try again otherwise.
func TestExposedOfRefusal(t *testing.T) {
	h := http.Header{"Retry-After": {"1"}, "Allow": {"GET"}, "Www-Authenticate": {"Bearer"}}
	for expose, want := range map[string]string{
		"*":       "Retry-After,Allow,WWW-Authenticate,Content-Length,Date,Transfer-Encoding",
		"retry-*": "Retry-After",
		"x-ms-*":  "",
	} {
		if got := (&Rule{ExposedHeaders: []string{expose}}).exposed(h); got != want {
			t.Errorf("exposed by %q: got %q, want %q", expose, got, want)
		}
	}
}
