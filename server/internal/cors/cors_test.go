package cors

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// rules are of two origins: one that is named, and all others.
var rules = []Rule{
	{
		AllowedMethods: []string{"GET", "PUT"}, AllowedOrigins: []string{"http://a.example"}, AllowedHeaders: []string{"x-ms-*"},
		ExposedHeaders: []string{"etag"}, MaxAge: 500,
	},
	{AllowedMethods: []string{"GET", "DELETE"}, AllowedOrigins: []string{"*"}},
}

// header returns the header of pairs of names and values.
func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// textOf writes fields in the order of their names, without the prefix that most have.
func textOf(fields []Field) string {
	var all []string
	for _, f := range fields {
		all = append(all, strings.TrimPrefix(f.Name, "Access-Control-")+": "+f.Value)
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

func TestPreflight(t *testing.T) {
	const origin, method, headers = "Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers"
	for _, c := range []struct {
		name  string
		given http.Header
		err   error
		want  string
	}{
		{"nothing", header(), ErrHeader, ""},
		{"no method", header(origin, "null"), ErrHeader, ""},
		{"empty origin", header(origin, "", method, "GET"), ErrHeader, ""},
		{"two origins", header(origin, "null", origin, "http://a.example", method, "GET"), ErrHeader, ""},
		{"method of no rule", header(origin, "null", method, "PUT"), ErrNoRule, ""},
		{"header of no rule", header(origin, "http://a.example", method, "PUT", headers, "accept"), ErrNoRule, ""},
		{"any origin", header(origin, "null", method, "GET"), nil, "Allow-Credentials: true; Allow-Methods: GET; Allow-Origin: *; Max-Age: 0"},
		{
			"lists of headers",
			header(origin, "http://a.example", method, "PUT", headers, "X-Ms-Date", headers, "x-ms-a, x-ms-b"),
			nil,
			"Allow-Credentials: true; Allow-Headers: X-Ms-Date,x-ms-a, x-ms-b; Allow-Methods: PUT; Allow-Origin: http://a.example; Max-Age: 500",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			fields, err := Preflight(rules, c.given)
			if got := textOf(fields); !errors.Is(err, c.err) || got != c.want {
				t.Errorf("preflight with %v:\ngot  %s, error %v\nwant %s, error %v", c.given, got, err, c.want, c.err)
			}
		})
	}
}

func TestFields(t *testing.T) {
	for _, c := range []struct {
		name   string
		rules  []Rule
		method string
		given  http.Header
		want   string
	}{
		{"no rules", nil, "GET", header("Origin", "null"), ""},
		{"no origin, a rule for all", rules, "GET", header(), "Allow-Origin: *"},
		{"no origin, no rule for all", rules[:1], "GET", header(), "Vary: Origin"},
		{"no origin, no rule for the method", rules, "HEAD", header(), "Vary: Origin"},
		{"an origin without a rule", rules[:1], "GET", header("Origin", "null"), "Vary: Origin"},
		{"any origin, of a read", rules, "GET", header("Origin", "null"), "Allow-Origin: *"},
		{"no origin, of a write", rules, "PUT", header(), ""},
		{"two origins", rules, "GET", header("Origin", "null", "Origin", "null"), "Allow-Origin: *"},
		{"method of no rule", rules, "MERGE", header("Origin", "http://a.example"), ""},
		{"any origin", rules, "DELETE", header("Origin", "http://a.example"), "Allow-Origin: *"},
		{
			"named origin", rules, "GET", header("Origin", "http://a.example"),
			"Allow-Credentials: true; Allow-Origin: http://a.example; Expose-Headers: etag; Vary: Origin",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, "/", nil)
			r.Header = c.given
			if got := textOf(Fields(c.rules, r, header("Etag", "1"))); got != c.want {
				t.Errorf("response to %s with %v:\ngot  %s\nwant %s", c.method, c.given, got, c.want)
			}
		})
	}
}
