package server_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// entityBody is the body of an insert of a second entity.
const entityBody = `{"PartitionKey":"a","RowKey":"2"}`

// post returns the head of a signed insert with the headers of framing.
func post(w *wire, framing string) string {
	return w.sign("POST /devstoreaccount1/People HTTP/1.1\r\n"+signedHeaders+"Content-Type: application/json\r\n") + framing + "\r\n"
}

// TestFraming sends bodies of ambiguous or invalid length.
func TestFraming(t *testing.T) {
	w := newWire(t, nil, nil)
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(entityBody), entityBody)
	var requests []testRequest
	for _, c := range []struct{ framing, body, want string }{
		{"", entityBody, refusedValue}, // without a length there is no body
		{"Content-Length: -1\r\n", entityBody, "400"},
		{"Content-Length: +33\r\n", entityBody, "400"},
		{"Content-Length: 0x21\r\n", entityBody, "400"},
		{"Content-Length: 33, 34\r\n", entityBody, "400"},
		{"Content-Length: 33\r\nContent-Length: 34\r\n", entityBody, "400"},
		{"Content-Length: 99999999999999999999\r\n", entityBody, "400"},
		{"Content-Length: \r\n", entityBody, "400"},
		{"Transfer-Encoding: chunked, identity\r\n", chunk, "501"},
		{"Transfer-Encoding: gzip, chunked\r\n", chunk, "501"},
		{"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunk, "501"},
		{"Transfer-Encoding: xchunked\r\n", chunk, "501"},
		{"Transfer-Encoding: chunked\r\n", "zz\r\n" + entityBody + "\r\n0\r\n\r\n", refusedValue},
		{"Transfer-Encoding: chunked\r\n", "-1\r\n" + entityBody + "\r\n0\r\n\r\n", refusedValue},
		{"Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\n" + entityBody + "\r\n0\r\n\r\n", refusedValue},
		{"Transfer-Encoding: chunked\r\n", "21\r\n" + entityBody + "xx0\r\n\r\n", refusedValue},
		{"Transfer-Encoding: chunked\r\n", strings.Repeat("1;"+strings.Repeat("e", 2000)+"\r\n{\r\n", 100) + "0\r\n\r\n", refusedValue},
		{"X: a\r\n folded\r\nContent-Length: 1\r\n", "x", refusedValue},
		{"Content-Length : 33\r\n", entityBody, "400"},
		{" Content-Length: 33\r\n", entityBody, "403 AuthenticationFailed"}, // continues a header that is signed
		{"\x00: a\r\nContent-Length: 1\r\n", "x", "400"},
		{"X: a\x00b\r\nContent-Length: 1\r\n", "x", "400"},
		{"no colon\r\nContent-Length: 1\r\n", "x", "400"},
	} {
		requests = append(requests, testRequest{name: fmt.Sprintf("%.60q", c.framing+c.body), raw: post(w, c.framing) + c.body, want: c.want})
	}
	sendAll(t, requests)
}

// TestChunkedBodies inserts entities with valid chunked bodies.
func TestChunkedBodies(t *testing.T) {
	for name, body := range map[string]string{
		"one chunk":    "21\r\n" + entityBody + "\r\n0\r\n\r\n",
		"of one byte":  "1\r\n" + strings.Join(strings.Split(entityBody, ""), "\r\n1\r\n") + "\r\n0\r\n\r\n",
		"an extension": "21;a=b\r\n" + entityBody + "\r\n0\r\n\r\n",
		"a trailer":    "21\r\n" + entityBody + "\r\n0\r\nAuthorization: none\r\n\r\n",
	} {
		w := newPeopleServer(t)
		if got := outcome(w.exchange(post(w, "Transfer-Encoding: chunked\r\n") + body)); got != "201" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestSmuggling sends a request with Content-Length and Transfer-Encoding, followed by a
// second one, which must not be executed.
func TestSmuggling(t *testing.T) {
	w := newPeopleServer(t)
	second := w.sign("DELETE /devstoreaccount1/Tables('People') HTTP/1.1\r\n"+signedHeaders) + "\r\n"
	before := fingerprint(t, w.store)
	conn := w.dial()
	if _, err := io.WriteString(conn, post(w, "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")+"0\r\n\r\n"+second); err != nil {
		t.Fatal(err)
	}
	response, err := io.ReadAll(conn)
	if n := bytes.Count(response, []byte("HTTP/1.1 ")); n != 1 || err != nil {
		t.Errorf("%d responses, %v: %s", n, err, response)
	}
	if fingerprint(t, w.store) != before {
		t.Error("the second request was executed")
	}
}

// TestHeaders sends too many, too long and repeated headers.
func TestHeaders(t *testing.T) {
	w := newWire(t, nil, nil)
	good := w.sign(goodRequest)
	with := func(lines string) string { return good + lines + "\r\n" }
	const twice = "403 AuthenticationFailed"
	sendAll(t, []testRequest{
		{name: "long", raw: with("X: " + strings.Repeat("x", 40<<10) + "\r\n"), want: "431"},
		{name: "many", raw: with(strings.Repeat("X: y\r\n", 10_000)), want: "431"},
		{name: "two hundred", raw: with(strings.Repeat("X: y\r\n", 200)), want: "200"},
		{name: "a thousand", raw: with(strings.Repeat("X: y\r\n", 1000)), want: "431"},
		{name: "two Authorization headers", raw: with("Authorization: SharedKey devstoreaccount1:AAAA\r\n"), want: twice},
		{name: "two dates", raw: with("x-ms-date: Thu, 17 Jun 2021 16:54:24 GMT\r\n"), want: twice},
		{name: "two versions", raw: with("x-ms-version: 2020-12-06\r\n"), want: "400 InvalidHeaderValue"},
		{name: "two hosts", raw: with("Host: other.table.localhost\r\n"), want: "400"},
		{name: "an empty host", raw: strings.Replace(with(""), "Host: 127.0.0.1:10002", "Host: ", 1), want: "200"},
		{name: "an invalid host", raw: strings.Replace(with(""), "Host: 127.0.0.1:10002", "Host: a<b>", 1), want: "400"},
		{name: "no host", raw: strings.Replace(with(""), "Host: 127.0.0.1:10002\r\n", "", 1), want: "400"},
		{name: "two invalid Accept headers", raw: with("Accept: ;;;\r\nAccept: \x7f\r\n"), want: "400"},
		{
			name: "a version with a line feed", raw: strings.Replace(with(""), "x-ms-version: 2019-02-02", "x-ms-version: 2019-02-02%0d%0aX: y", 1),
			want: "400 InvalidHeaderValue",
		},
		{
			name: "a very long version", raw: strings.Replace(with(""), "x-ms-version: 2019-02-02", "x-ms-version: "+strings.Repeat("2", 20<<10), 1),
			want: "400 InvalidHeaderValue",
		},
	})
}

// TestClientRequestIDs sends ids, some of which are not valid in a response.
func TestClientRequestIDs(t *testing.T) {
	w := newPeopleServer(t)
	for _, c := range []struct{ id, want string }{
		{"5 of 17", "5 of 17"},
		{strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		{strings.Repeat("x", 1025), ""},
		{"a%0d%0aX-Evil: 1", "a%0d%0aX-Evil: 1"},
		{"t\u00e9", ""},
		{"a\tb", ""},
		{"", ""},
	} {
		raw, res := w.exchange(w.sign(goodRequest) + "x-ms-client-request-id: " + c.id + "\r\n\r\n")
		if res == nil || res.StatusCode != http.StatusOK || res.Header.Get("X-Ms-Client-Request-Id") != c.want || res.Header.Get("X-Evil") != "" {
			t.Errorf("%.30q: %.400s", c.id, raw)
		}
	}
}

// TestRejectedBodies sends bodies that are compressed, too long or incomplete.
func TestRejectedBodies(t *testing.T) {
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	if _, err := z.Write(make([]byte, 8<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	w := newWire(t, nil, nil)
	var requests []testRequest
	for _, coding := range []string{"gzip", "deflate", "br", "identity, gzip", "GZIP", "x"} {
		framing := fmt.Sprintf("Content-Encoding: %s\r\nContent-Length: %d\r\n", coding, compressed.Len())
		requests = append(requests, testRequest{name: coding, raw: post(w, framing) + compressed.String(), want: "415 MediaTypeNotSupported"})
	}
	const limit = 4 << 20
	blanks := entityBody + strings.Repeat(" ", limit-len(entityBody)+1)
	requests = append(requests,
		testRequest{name: "a byte too long", raw: post(w, fmt.Sprintf("Content-Length: %d\r\n", len(blanks))) + blanks, want: "413 RequestBodyTooLarge"},
		testRequest{
			name: "too long in chunks", raw: post(w, "Transfer-Encoding: chunked\r\n") + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(blanks), blanks),
			want: "413 RequestBodyTooLarge",
		},
		testRequest{name: "announced and not sent", raw: post(w, "Content-Length: 4194305\r\n"), want: "413 RequestBodyTooLarge"},
		testRequest{
			name: "too long, and waiting for 100 Continue", raw: post(w, "Content-Length: 4194305\r\nExpect: 100-continue\r\n"),
			want: "413 RequestBodyTooLarge",
		},
		testRequest{name: "compressed, and waiting for 100 Continue", raw: post(w,
			"Content-Encoding: gzip\r\nContent-Length: 5\r\nExpect: 100-continue\r\n"), want: "415 MediaTypeNotSupported"},
		testRequest{name: "another expectation", raw: post(w, "Content-Length: 5\r\nExpect: tea\r\n"), want: "417"},
		testRequest{
			name: "too long for a batch", method: "POST", path: "/$batch",
			headers: "Content-Type: multipart/mixed; boundary=a\r\nContent-Length: 5000000\r\n", want: "413 RequestBodyTooLarge",
		},
	)
	sendAll(t, requests)
}

// TestCutOff closes connections within requests, which must not write anything.
func TestCutOff(t *testing.T) {
	w := newPeopleServer(t)
	before := fingerprint(t, w.store)
	request := post(w, fmt.Sprintf("Content-Length: %d\r\n", len(entityBody))) + entityBody
	for n := range len(request) {
		conn := w.dial()
		if _, err := io.WriteString(conn, request[:n]); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		response, _ := io.ReadAll(conn) // the server may close the connection first
		_ = conn.Close()
		if bytes.Contains(response, []byte("HTTP/1.1 2")) || bytes.Contains(response, []byte("HTTP/1.1 5")) {
			t.Errorf("cut off after %d bytes: %s", n, response)
		}
	}
	if fingerprint(t, w.store) != before {
		t.Error("a request that was cut off changed the store")
	}
	w.checkServes()
}

// TestMethods sends methods that a resource does not have, and other protocols.
func TestMethods(t *testing.T) {
	const not = "405 MethodNotAllowed"
	const entity = "/People(PartitionKey='a',RowKey='1')"
	var requests []testRequest
	for _, method := range []string{"TRACE", "HEAD", "POKE", "get", strings.Repeat("X", 8<<10)} {
		for _, path := range []string{"/Tables", "/People()", entity, "/$batch", "/People?comp=acl"} {
			want := not
			if method == "HEAD" {
				want = "405" // without a body
			}
			requests = append(requests, testRequest{name: fmt.Sprintf("%.10s %s", method, path), method: method, path: path, want: want})
		}
	}
	for _, c := range []struct{ method, path, want string }{
		{"PUT", "/Tables", not},
		{"DELETE", "/Tables", not},
		{"PATCH", "/Tables('People')", not},
		{"POST", "/Tables('People')", not},
		{"PUT", "/People()", not},
		{"DELETE", "/People()", not},
		{"POST", entity, not},
		{"GET", "/$batch", not},
		{"PUT", "/$batch", not},
		{"DELETE", "/People?comp=acl", not},
		{"POST", "/People?comp=acl", not},
		{"POST", "/?restype=service&comp=properties", not},
		{"PUT", "/?restype=service&comp=stats", not},
		{"GET", "/$metadata", "501 NotImplemented"},
		{"GET", "/?comp=properties", "400 InvalidUri"},
		{"GET", "/?restype=account&comp=properties", "400 InvalidUri"},
		{"GET", "/?restype=service&comp=list", "400 InvalidQueryParameterValue"},
		{"GET", "/$batch/x", "400 InvalidUri"},
		{"GET", "/Tables/People", "400 InvalidUri"},
		{"GET", "/tables", "400 InvalidInput"},
		{"GET", "/$logs", "400 InvalidResourceName"},
	} {
		requests = append(requests, testRequest{name: c.method + " " + c.path, method: c.method, path: c.path, want: c.want})
	}
	for _, c := range []struct{ method, path, headers, want string }{
		{"GET", entity, "X-HTTP-Method: DELETE\r\n", "400 XMethodNotUsingPost"},
		{"PUT", entity, "X-HTTP-Method: DELETE\r\n", "400 XMethodNotUsingPost"},
		{"POST", entity, "X-HTTP-Method: GET\r\n", "400 XMethodIncorrectValue"},
		{"POST", entity, "X-HTTP-Method: merge\r\n", "400 XMethodIncorrectValue"},
		{"POST", entity, "X-HTTP-Method: POST\r\n", "400 XMethodIncorrectValue"},
		{"POST", entity, "X-HTTP-Method: \r\n", "400 XMethodIncorrectValue"},
		{"POST", entity, "X-HTTP-Method: PUT\r\nX-HTTP-Method: PUT\r\n", "400 XMethodIncorrectCount"},
		{"POST", "/Tables('People')", "X-HTTP-Method: PUT\r\n", not},
		{"POST", "/People()", "X-HTTP-Method: DELETE\r\n", not},
		{"POST", "/$batch", "X-HTTP-Method: DELETE\r\n", not},
	} {
		requests = append(requests, testRequest{
			name: fmt.Sprintf("%s %s %q", c.method, c.path, c.headers), method: c.method, path: c.path,
			headers: c.headers, want: c.want,
		})
	}
	for _, c := range []struct{ name, raw, want string }{
		{"HTTP/0.9", "GET /devstoreaccount1/Tables\r\n\r\n", "400"},
		{"HTTP/1.0 without a host", "GET /devstoreaccount1/Tables HTTP/1.0\r\n\r\n", "403 AuthenticationFailed"},
		{"HTTP/3.7", "GET / HTTP/3.7\r\nHost: a\r\n\r\n", "505"},
		{"HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "403 AuthenticationFailed"},
		{"a TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00", 500) + "\r\n\r\n", "400"},
		{"CONNECT", "CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n", "400 InvalidUri"},
		{"blanks", "\r\n\r\n\r\n", "400"},
		{"a blank in the target", "GET /devstoreaccount1/People() x HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
		{"no slash", "GET devstoreaccount1 HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
		{"another scheme", "GET ftp://a/b HTTP/1.1\r\nHost: a\r\n\r\n", "403 AuthenticationFailed"},
		{"a preflight of a hostile origin", "OPTIONS /devstoreaccount1/Tables HTTP/1.1\r\nHost: a\r\nOrigin: http://evil%0d%0aX: " +
			"y\r\nAccess-Control-Request-Method: DELETE\r\n\r\n", "403 CorsPreflightFailure"},
		{"a preflight without an origin", "OPTIONS /devstoreaccount1/Tables HTTP/1.1\r\nHost: a\r\n\r\n", "400 InvalidHeaderValue"},
		{"a preflight of *", "OPTIONS * HTTP/1.1\r\nHost: a\r\nOrigin: a\r\nAccess-Control-Request-Method: PUT\r\n\r\n", "403 CorsPreflightFailure"},
	} {
		requests = append(requests, testRequest{name: c.name, raw: c.raw, want: c.want})
	}
	sendAll(t, requests)
}
