package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// notAuthentic is the outcome of a request without a valid signature.
const notAuthentic = "403 AuthenticationFailed"

// TestSignatures sends invalid signatures and credentials.
func TestSignatures(t *testing.T) {
	w := newWire(t, nil, nil)
	right := w.sign(goodRequest)
	_, signature, _ := strings.Cut(right, "devstoreaccount1:")
	signature, _, _ = strings.Cut(signature, "\r\n")
	lite := w.sign(strings.Replace(goodRequest, "SharedKey ", "SharedKeyLite ", 1))
	var requests []testRequest
	for _, c := range []struct{ name, authorization, want string }{
		{"another signature", "SharedKey devstoreaccount1:" + strings.Repeat("A", 43) + "=", notAuthentic},
		{"another account", "SharedKey other:" + signature, notAuthentic},
		{"an unknown account", "SharedKey nobody:" + signature, notAuthentic},
		{"no signature", "SharedKey devstoreaccount1:", notAuthentic},
		{"one letter", "SharedKey devstoreaccount1:A", notAuthentic},
		{"a very long one", "SharedKey devstoreaccount1:" + strings.Repeat("A", 20<<10), notAuthentic},
		{"invalid base64", "SharedKey devstoreaccount1:" + strings.Repeat("?", 44), notAuthentic},
		{"no padding", "SharedKey devstoreaccount1:" + strings.TrimSuffix(signature, "="), notAuthentic},
		{"more padding", "SharedKey devstoreaccount1:" + signature + "=", notAuthentic},
		{"a blank within", "SharedKey devstoreaccount1:" + signature[:10] + " " + signature[10:], notAuthentic},
		{"without the account", "SharedKey " + signature, notAuthentic},
		{"the other scheme", "SharedKeyLite devstoreaccount1:" + signature, notAuthentic},
		{"two colons", "SharedKey devstoreaccount1::" + signature, notAuthentic},
		{"the scheme alone", "SharedKey", notAuthentic},
		{"another scheme", "Digest devstoreaccount1:" + signature, "400 InvalidAuthenticationInfo"},
		{"no scheme", signature, "400 InvalidAuthenticationInfo"},
		{"a token", "Bearer a.b.c", notAuthentic},
	} {
		raw := strings.Replace(right, "SharedKey devstoreaccount1:"+signature, c.authorization, 1) + "\r\n"
		requests = append(requests, testRequest{name: c.name, raw: raw, want: c.want})
	}
	requests = append(requests,
		testRequest{name: "another method", raw: strings.Replace(right, "GET ", "DELETE ", 1) + "If-Match: *\r\n\r\n", want: notAuthentic},
		testRequest{name: "another path", raw: strings.Replace(right, "RowKey='1'", "RowKey='2'", 1) + "\r\n", want: notAuthentic},
		testRequest{name: "the same path, percent-encoded", raw: strings.Replace(right, "People", "%50eople", 1) + "\r\n", want: "200"},
		testRequest{name: "a content type that was not signed", raw: right + "Content-Type: text/plain\r\n\r\n", want: notAuthentic},
		testRequest{name: "a checksum that was not signed", raw: right + "Content-MD5: AAAA\r\n\r\n", want: notAuthentic},
		testRequest{
			name: "a wrong checksum that was signed", method: "POST", path: "/People", headers: "Content-MD5: XUFAKrxLKna5cZ2REBfFkg==\r\n",
			body: `{"PartitionKey":"a","RowKey":"1"}`, want: "409 EntityAlreadyExists", // the body is used
		},
		testRequest{name: "the other signature with this scheme", raw: strings.Replace(lite, "SharedKeyLite", "SharedKey", 1) + "\r\n", want: notAuthentic},
		testRequest{name: "a parameter that must be signed", raw: strings.Replace(right, " HTTP/1.1", "?comp=acl HTTP/1.1", 1) + "\r\n", want: notAuthentic},
		testRequest{name: "a shared access signature beside it", raw: strings.Replace(right, " HTTP/1.1",
			"?sv=2019-02-02&tn=People&sp=r&se=2021-06-18&sig=AAAA HTTP/1.1", 1) + "\r\n", want: notAuthentic},
	)
	sendAll(t, requests)
}

// TestSameRefusal checks that the refusals of an unknown account, of a wrong key and of a
// wrong signature are equal: they must not tell which accounts exist.
func TestSameRefusal(t *testing.T) {
	w := newPeopleServer(t)
	right := w.sign(goodRequest)
	_, signature, _ := strings.Cut(right, "devstoreaccount1:")
	signature, _, _ = strings.Cut(signature, "\r\n")
	wrong := strings.Repeat("B", 43) + "="
	first := ""
	for _, request := range []string{
		strings.Replace(right, signature, wrong, 1),
		strings.Replace(right, "/devstoreaccount1/", "/nobody/", 1),
		strings.ReplaceAll(right, "devstoreaccount1", "nobody"),
		strings.ReplaceAll(right, "devstoreaccount1", "other"),
	} {
		raw, _ := w.exchange(request + "\r\n")
		text := readable(string(raw))
		if first == "" {
			first = text
		}
		if text != first || !strings.Contains(text, "AuthenticationFailed") {
			t.Errorf("%s\ngot  %s\nwant %s", shown(request), text, first)
		}
	}
}

// TestClockOfClient signs a request by a clock that is wrong. The event says so, for the log, and the
// response is that of a wrong signature.
func TestClockOfClient(t *testing.T) {
	c := newClient(t)
	bodies := make([]string, 0, 2)
	for _, signature := range []struct {
		skew time.Duration
		key  string
		want string
	}{
		{time.Hour, testKey, "the request has no date within 15 minutes of the clock of this server"},
		{0, strings.Repeat("A", 64), ""},
	} {
		credential, err := sharedkey.NewCredential(testAccount, signature.key)
		r := c.request("GET", "/"+testAccount+"/Tables", "")
		if err := errors.Join(err, credential.SignRequest(r, testTime.Add(signature.skew))); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := c.do(r).Write(&b); err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, readable(b.String()))
		e := c.events[len(c.events)-1]
		got := ""
		if e.Err != nil {
			got = e.Err.Error()
		}
		if got != signature.want || e.Code != "AuthenticationFailed" {
			t.Errorf("skew %v: code %s, reason %q, want %q", signature.skew, e.Code, got, signature.want)
		}
	}
	if bodies[0] != bodies[1] {
		t.Errorf("the response tells the reason:\n%s\n%s", bodies[0], bodies[1])
	}
}

// TestDates sends valid signatures with dates at and beyond the limit, and invalid dates.
func TestDates(t *testing.T) {
	w := newWire(t, nil, nil)
	const limit = 15 * time.Minute
	format := func(d time.Duration) string { return testTime.Add(d).Format("Mon, 02 Jan 2006 15:04:05 GMT") }
	var requests []testRequest
	for _, c := range []struct{ lines, want string }{
		{"x-ms-date: " + format(-limit) + "\r\n", "200"},
		{"x-ms-date: " + format(limit) + "\r\n", "200"},
		{"x-ms-date: " + format(-limit-time.Second) + "\r\n", notAuthentic},
		{"x-ms-date: " + format(limit+time.Second) + "\r\n", notAuthentic},
		{"x-ms-date: Sat, 01 Jan 1601 00:00:00 GMT\r\n", notAuthentic},
		{"x-ms-date: Fri, 31 Dec 9999 23:59:59 GMT\r\n", notAuthentic},
		{"Date: " + format(0) + "\r\n", "200"},
		{"x-ms-date: " + format(0) + "\r\nDate: " + format(0) + "\r\n", "200"},
		{"x-ms-date: " + format(0) + "\r\nDate: " + format(2*limit) + "\r\n", "200"},
		{"x-ms-date: " + format(2*limit) + "\r\nDate: " + format(0) + "\r\n", notAuthentic},
		{"x-ms-date: 2021-06-17T16:54:23Z\r\n", "400 InvalidHeaderValue"},
		{"x-ms-date: 1623948863\r\n", "400 InvalidHeaderValue"},
		{"x-ms-date: now\r\n", "400 InvalidHeaderValue"},
		{"x-ms-date: Thu, 17 Jun 2021 16:54:23 CET\r\n", "400 InvalidHeaderValue"},
	} {
		head := strings.Replace(goodRequest, "x-ms-date: Thu, 17 Jun 2021 16:54:23 GMT\r\n", c.lines, 1)
		requests = append(requests, testRequest{name: fmt.Sprintf("%q", c.lines), raw: w.sign(head) + "\r\n", want: c.want})
	}
	undated := strings.Replace(w.sign(goodRequest), "x-ms-date: Thu, 17 Jun 2021 16:54:23 GMT\r\n", "", 1)
	requests = append(requests,
		testRequest{name: "no date", raw: undated + "\r\n", want: notAuthentic},
		testRequest{name: "an empty date", raw: undated + "x-ms-date: \r\n\r\n", want: notAuthentic},
	)
	sendAll(t, requests)
}

// TestReplays repeats a request. The protocol accepts it for 15 minutes.
func TestReplays(t *testing.T) {
	w := newPeopleServer(t)
	request := w.sign(goodRequest) + "\r\n"
	for _, c := range []struct {
		wait time.Duration
		want string
	}{{0, "200"}, {14 * time.Minute, "200"}, {time.Minute, "200"}, {time.Second, notAuthentic}} {
		w.clock.advance(c.wait)
		if got := outcome(w.exchange(request)); got != c.want {
			t.Errorf("%v later: %s, want %s", c.wait, got, c.want)
		}
	}
}

// TestSharedAccess sends shared access signatures with changed fields, and signed ones that
// do not allow the request.
func TestSharedAccess(t *testing.T) {
	w := newWire(t, nil, nil)
	good := sharedkey.TableSAS{Table: "People", Permissions: "r", Expiry: "2021-06-18"}
	sas := func(change func(*sharedkey.TableSAS)) string {
		s := good
		change(&s)
		text, err := w.credential.TableSAS(s)
		if err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
		return text
	}
	right := sas(func(*sharedkey.TableSAS) {})
	get := func(name, query, want string) testRequest {
		return testRequest{name: name, raw: "GET /devstoreaccount1/People()?" + query +
			" HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.0.0.1\r\nAccept: application/json\r\n\r\n", want: want}
	}
	signature := right[strings.Index(right, "sig="):]
	sendAll(t, []testRequest{
		get("right", right, "200"),
		get("another table name's case", sas(func(s *sharedkey.TableSAS) { s.Table = "pEOPLE" }), "200"),
		get("expired", sas(func(s *sharedkey.TableSAS) { s.Expiry = "2021-06-17T16:54:23Z" }), notAuthentic),
		get("not valid yet", sas(func(s *sharedkey.TableSAS) { s.Start = "2021-06-17T17:54:23Z" }), notAuthentic),
		get("expiry before start", sas(func(s *sharedkey.TableSAS) { s.Start, s.Expiry = "2021-06-18", "2021-06-17" }), notAuthentic),
		get("another table", sas(func(s *sharedkey.TableSAS) { s.Table = "Others" }), "403 AuthorizationFailure"),
		get("no permission", sas(func(s *sharedkey.TableSAS) { s.Permissions = "aud" }), "403 AuthorizationPermissionMismatch"),
		get("an unknown policy", sas(func(s *sharedkey.TableSAS) { s.Identifier, s.Permissions, s.Expiry = "nobody", "", "" }), notAuthentic),
		get("another address, forged in a header", sas(func(s *sharedkey.TableSAS) { s.IP = "10.0.0.1" }), "403 AuthorizationSourceIPMismatch"),
		get("this address", sas(func(s *sharedkey.TableSAS) { s.IP = "127.0.0.0-127.0.0.9" }), "200"),
		get("TLS only", sas(func(s *sharedkey.TableSAS) { s.Protocol = "https" }), "403 AuthorizationProtocolMismatch"),
		get("permissions changed", strings.Replace(right, "sp=r", "sp=raud", 1), notAuthentic),
		get("the table changed", strings.Replace(right, "tn=People", "tn=Others", 1), notAuthentic),
		get("the expiry changed", strings.Replace(right, "2021-06-18", "2031-06-18", 1), notAuthentic),
		get("the same expiry, other text", strings.Replace(right, "2021-06-18", "2021-06-18T00:00Z", 1), notAuthentic),
		get("no table", strings.Replace(right, "tn=People", "", 1), notAuthentic),
		get("no expiry", strings.Replace(right, "se=2021-06-18", "", 1), notAuthentic),
		get("no version", strings.Replace(right, "sv=2019-02-02", "", 1), notAuthentic),
		get("another version", strings.Replace(right, "2019-02-02", "2018-03-28", 1), notAuthentic),
		get("the oldest version", strings.Replace(right, "2019-02-02", "2009-09-19", 1), notAuthentic),
		get("no signature", strings.Replace(right, "&"+signature, "", 1), notAuthentic),
		get("two signatures", right+"&"+signature, notAuthentic),
		get("two permissions", right+"&sp=raud", notAuthentic),
		get("permissions before", "sp=raud&"+right, notAuthentic),
		get("a range added", right+"&spk=b", notAuthentic),
		get("an address added", right+"&sip=127.0.0.1", notAuthentic),
		get("an account's fields added", right+"&ss=t&srt=sco", notAuthentic),
		get("names in another case", strings.Replace(right, "sig=", "SIG=", 1), notAuthentic),
		get("escapes of escapes", strings.ReplaceAll(right, "%", "%25"), notAuthentic),
		get("an empty signature", strings.Replace(right, signature, "sig=", 1), notAuthentic),
		get("a very long signature", strings.Replace(right, signature, "sig="+strings.Repeat("A", 20<<10), 1), notAuthentic),
		{
			name: "list of tables", raw: "GET /devstoreaccount1/Tables?" + right + " HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n\r\n",
			want: "403 AuthorizationFailure",
		},
		{
			name: "policies of the table", raw: "GET /devstoreaccount1/People?comp=acl&" + right + " HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n\r\n",
			want: "403 AuthorizationFailure",
		},
		{name: "properties of the service", raw: "GET /devstoreaccount1/?restype=service&comp=properties&" + right +
			" HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n\r\n", want: "403 AuthorizationFailure"},
		{name: "another account", raw: "GET /other/People()?" + right + " HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n\r\n", want: notAuthentic},
	})
}

// TestLoggedNames sends names, keys and ids with line feeds and terminal escapes, and logs
// the events.
func TestLoggedNames(t *testing.T) {
	w := newPeopleServer(t)
	for _, path := range []string{"/%0aGET%20evil()", "/%1b[31mred()", "/a%22b()", "/People(PartitionKey='%E2%80%AE',RowKey='%C2%9B')"} {
		c := testRequest{method: "GET", path: path, headers: "x-ms-client-request-id: a\" level=ERROR\r\n"}
		w.exchange(c.bytes(w))
	}
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, nil))
	events := w.takeEvents()
	for _, e := range events {
		log.Info("request", "method", e.Method, "operation", e.Operation, "account", e.Account, "table", e.Table, "code", e.Code, "client",
			e.ClientRequestID, "err", e.Err)
	}
	if lines := strings.Count(b.String(), "\n"); lines != len(events) || lines == 0 || strings.ContainsAny(b.String(), "\x1b\u009b") {
		t.Errorf("%d lines of %d events: %q", lines, len(events), b.String())
	}
}
