package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// send sends a request on a connection, and returns the outcome.
func send(t *testing.T, conn io.Writer, responses *bufio.Reader, request string) string {
	t.Helper()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return nextOutcome(t, responses)
}

func nextOutcome(t *testing.T, responses *bufio.Reader) string {
	t.Helper()
	res, err := http.ReadResponse(responses, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return outcome(body, res)
}

// TestRefusedBodies sends requests that are refused before their bodies are read. The bodies
// look like requests, which must not be executed.
func TestRefusedBodies(t *testing.T) {
	w := newPeopleServer(t)
	before := fingerprint(t, w.store)
	bait := w.sign("DELETE /devstoreaccount1/Tables('People') HTTP/1.1\r\n"+signedHeaders) + "\r\n"
	length := fmt.Sprintf("Content-Length: %d\r\n", len(bait))
	good := w.sign(goodRequest) + "\r\n"
	for _, c := range []struct{ request, want string }{
		{"POST /devstoreaccount1/People HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n" + length + "\r\n" + bait, notAuthentic},
		{post(w, length+"Content-Encoding: gzip\r\n") + bait, "415 MediaTypeNotSupported"},
		{w.sign("PUT /devstoreaccount1/Tables HTTP/1.1\r\n"+signedHeaders) + length + "\r\n" + bait, "405 MethodNotAllowed"},
		{w.sign("GET /devstoreaccount1/Tables HTTP/1.1\r\n"+signedHeaders) + length + "\r\n" + bait, "200"},
		{
			w.sign("DELETE /devstoreaccount1/People(PartitionKey='a',RowKey='9') HTTP/1.1\r\n"+signedHeaders) + "If-Match: *\r\n" + length + "\r\n" + bait,
			"404 ResourceNotFound",
		},
		{post(w, length) + bait, refusedValue},
		{"OPTIONS /devstoreaccount1/People HTTP/1.1\r\nHost: a\r\n" + length + "\r\n" + bait, "400 InvalidHeaderValue"},
	} {
		conn := w.dial()
		responses := bufio.NewReader(conn)
		if got := send(t, conn, responses, c.request); got != c.want {
			t.Errorf("%s\ngot %s, want %s", shown(c.request), got, c.want)
		}
		if got := send(t, conn, responses, good); got != "200" {
			t.Errorf("after %s\nthe next request got %s", shown(c.request), got)
		}
		_ = conn.Close()
	}
	if fingerprint(t, w.store) != before {
		t.Error("the body of a refused request was executed")
	}
}

// TestPipelines sends several requests before it reads the first response. The responses
// must be in order.
func TestPipelines(t *testing.T) {
	w := newPeopleServer(t)
	conn := w.dial()
	responses := bufio.NewReader(conn)
	const n = 20
	var requests strings.Builder
	for i := range n {
		if i%2 == 0 {
			body := fmt.Sprintf(`{"PartitionKey":"p","RowKey":"%d"}`, i/4) // every second one exists already
			requests.WriteString(post(w, fmt.Sprintf("Content-Length: %d\r\n", len(body))) + body)
		} else {
			requests.WriteString(w.sign(goodRequest) + "\r\n")
		}
	}
	if _, err := io.WriteString(conn, requests.String()); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		want := []string{"201", "200", "409 EntityAlreadyExists", "200"}[i%4]
		if got := nextOutcome(t, responses); got != want {
			t.Fatalf("response %d: %s, want %s", i, got, want)
		}
	}
}

// TestExpectContinue waits for 100 Continue before the body, as old .NET clients do.
func TestExpectContinue(t *testing.T) {
	w := newPeopleServer(t)
	conn := w.dial()
	responses := bufio.NewReader(conn)
	head := post(w, fmt.Sprintf("Content-Length: %d\r\nExpect: 100-continue\r\n", len(entityBody)))
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	line, err := responses.ReadString('\n')
	if err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := responses.ReadString('\n'); err != nil { // the empty line after it
		t.Fatal(err)
	}
	if got := send(t, conn, responses, entityBody); got != "201" {
		t.Errorf("after 100 Continue, the body got %s", got)
	}
	if got := send(t, conn, responses, w.sign(goodRequest)+"\r\n"); got != "200" {
		t.Errorf("the next request got %s", got)
	}
}

// TestNoHost sends requests without a host, as HTTP/1.0 allows: links begin with the local
// address of the connection.
func TestNoHost(t *testing.T) {
	w := newPeopleServer(t)
	for _, c := range []struct{ proto, host string }{{"HTTP/1.0", ""}, {"HTTP/1.1", "Host: \r\n"}} {
		head := strings.Replace(strings.Replace(goodRequest, "HTTP/1.1", c.proto, 1), "Host: 127.0.0.1:10002\r\n", c.host, 1)
		raw, res := w.exchange(w.sign(head) + "\r\n")
		want := `"odata.metadata":"http://` + w.addr + "/" + wireAccount + "/$metadata#People"
		if res == nil || res.StatusCode != http.StatusOK || !strings.Contains(string(raw), want) {
			t.Errorf("%s: got %s\nwant %s", c.proto, raw, want)
		}
	}
}
