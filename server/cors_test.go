package server_test

import (
	"net/http"
	"strings"
	"testing"
)

// corsHeaders are the headers of CORS, without their prefix.
var corsHeaders = []string{"Allow-Origin", "Allow-Methods", "Allow-Headers", "Max-Age", "Allow-Credentials", "Expose-Headers"}

func corsOf(h http.Header) map[string]string {
	got := map[string]string{}
	for _, name := range corsHeaders {
		if v := h["Access-Control-"+name]; len(v) > 0 {
			got[name] = strings.Join(v, "|")
		}
	}
	if v := h["Vary"]; len(v) > 0 {
		got["Vary"] = strings.Join(v, "|")
	}
	return got
}

func wantCors(t *testing.T, res *http.Response, want map[string]string) {
	t.Helper()
	got := corsOf(res.Header)
	for name, value := range want {
		if got[name] != value {
			t.Errorf("got %s %q, want %q", name, got[name], value)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("got also %v, want only %v", got, want)
	}
}

func TestPreflight(t *testing.T) {
	const origin, method, headers = "Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers"
	rules := document("<Cors>" + aRule + anyRule + "</Cors>")
	refused := response{status: 403, code: "CorsPreflightFailure"}
	missing := response{status: 400, code: "InvalidHeaderValue"}
	ok := response{status: 200}
	for _, q := range []struct {
		name, rules, path string
		headers           []string
		want              response
		cors              map[string]string
	}{
		{"no rules", "", "/acct/People", []string{origin, "http://a.example", method, "GET"}, refused, nil},
		{"no account", rules, "/nobody/People", []string{origin, "http://a.example", method, "GET"}, refused, nil},
		{"no origin", rules, "/acct/People", []string{method, "GET"}, missing, nil},
		{"no method", rules, "/acct/People", []string{origin, "http://a.example"}, missing, nil},
		{"empty method", rules, "/acct/People", []string{origin, "http://a.example", method, ""}, missing, nil},
		{"neither, no rules", "", "/acct/People", nil, missing, nil},
		{
			"a rule", rules, "/acct/Nobody(PartitionKey='a',RowKey='b')",
			[]string{origin, "http://a.example", method, "PUT", headers, "X-Ms-Date, accept"},
			ok,
			map[string]string{
				"Allow-Origin": "http://a.example", "Allow-Methods": "PUT", "Allow-Headers": "X-Ms-Date, accept",
				"Max-Age": "500", "Allow-Credentials": "true",
			},
		},
		{
			"any origin", rules, "/acct",
			[]string{origin, "null", method, "DELETE"},
			ok,
			map[string]string{"Allow-Origin": "*", "Allow-Methods": "DELETE", "Max-Age": "0", "Allow-Credentials": "true"},
		},
		{"a header of no rule", rules, "/acct/People", []string{origin, "http://a.example", method, "PUT", headers, "content-type"}, refused, nil},
		{"a method of no rule", rules, "/acct/People", []string{origin, "http://a.example", method, "POST"}, refused, nil},
		{"an invalid method", rules, "/acct/People", []string{origin, "null", method, "GET\x00"}, refused, nil},
		{"an origin of no rule", rules, "/acct/People", []string{origin, "http://a.example.evil", method, "PUT"}, refused, nil},
		{"a path of no resource", rules, "/acct/a/b/c?%zz", []string{origin, "null", method, "GET"}, ok, map[string]string{
			"Allow-Origin": "*", "Allow-Methods": "GET", "Max-Age": "0", "Allow-Credentials": "true",
		}},
	} {
		t.Run(q.name, func(t *testing.T) {
			c := newClient(t)
			if q.rules != "" {
				c.want(c.signed("PUT", propertiesPath, q.rules), response{status: 202})
			}
			res := c.send("OPTIONS", q.path, "", q.headers...)
			wantCors(t, res, q.cors)
			c.want(res, q.want)
			if e := c.events[len(c.events)-1]; e.Operation != "Preflight" || e.Status != q.want.status || e.Code != q.want.code {
				t.Errorf("got event %+v, want a preflight of %+v", e, q.want)
			}
		})
	}
	t.Run("two origins", func(t *testing.T) {
		c := newClient(t)
		r := c.request("OPTIONS", "/acct/People", "", method, "GET")
		r.Header[origin] = []string{"http://a.example", "null"}
		c.want(c.do(r), missing)
	})
}

func TestActualCors(t *testing.T) {
	c := newClient(t)
	c.want(c.signed("GET", propertiesPath, "", "Origin", "http://a.example"), response{
		status: 200, body: bom + document(loggingOff, hoursOff, minutesOff, "<Cors />"),
	})
	wantCors(t, c.signed("GET", propertiesPath, "", "Origin", "http://a.example"), nil)
	c.want(c.signed("PUT", propertiesPath, document("<Cors>"+aRule+anyRule+"</Cors>")), response{status: 202})

	const xml = "x-ms-request-id,Server,x-ms-version,Content-Type,Content-Length,Date,Transfer-Encoding"
	const failed = "x-ms-request-id,Server,x-ms-version,x-ms-error-code,Content-Type,Content-Length,Date,Transfer-Encoding"
	const json = "x-ms-request-id,x-ms-client-request-id,Server,x-ms-version,X-Content-Type-Options,Cache-Control,Content-Type,Content-Length,Date," +
		"Transfer-Encoding"
	for _, q := range []struct {
		name, method, path, body string
		headers                  []string
		cors                     map[string]string
	}{
		{"no origin", "GET", propertiesPath, "", nil, map[string]string{"Allow-Origin": "*", "Expose-Headers": "etag"}},
		{"a rule", "GET", propertiesPath, "", []string{"Origin", "http://a.example"}, map[string]string{
			"Allow-Origin": "http://a.example", "Allow-Credentials": "true", "Expose-Headers": xml, "Vary": "Origin",
		}},
		{"a rule, by OData", "GET", "/acct/Tables", "", []string{"Origin", "http://a.example", "X-Ms-Client-Request-Id", "7"}, map[string]string{
			"Allow-Origin": "http://a.example", "Allow-Credentials": "true", "Expose-Headers": json, "Vary": "Origin",
		}},
		{"a rule, and a failure", "PUT", propertiesPath, "{}", []string{"Origin", "http://a.example"}, map[string]string{
			"Allow-Origin": "http://a.example", "Allow-Credentials": "true", "Expose-Headers": failed,
		}},
		{"any origin", "GET", propertiesPath, "", []string{"Origin", "http://b.example"}, map[string]string{
			"Allow-Origin": "*", "Expose-Headers": "etag",
		}},
		{"a method of no rule", "POST", "/acct/Tables", `{"TableName":"Animals"}`, []string{"Origin", "http://a.example", "Content-Type", "application/json"}, nil},
		{"an empty response", "DELETE", "/acct/Tables('Animals')", "", []string{"Origin", "null"}, map[string]string{
			"Allow-Origin": "*", "Expose-Headers": "etag",
		}},
	} {
		t.Run(q.name, func(t *testing.T) {
			c.t = t
			wantCors(t, c.signed(q.method, q.path, q.body, q.headers...), q.cors)
		})
	}
	// A page can read why its request was refused.
	wantCors(t, c.send("GET", "/acct/Tables", "", "Origin", "null"), map[string]string{
		"Allow-Origin": "*", "Expose-Headers": "etag",
	})
}
