package main

import (
	"bufio"
	"crypto/tls"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAuthorization(t *testing.T) {
	// Made with: printf 'DATE\n/acct/acct/Tables' | openssl dgst -sha256 -hmac key -binary | base64
	const want = "SharedKeyLite acct:bWtV30hTytQ1GywOcWPyhfk2dDbaOoQ3ImzxXHLlVSU="
	s := newSigner(&target{account: "acct", key: []byte("key")})
	at := time.Date(2017, 8, 22, 22, 12, 11, 0, time.UTC)
	s.tick(at)
	if got := string(s.authorization("/acct/Tables")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := string(s.authorization("/acct/Tables")); got != want {
		t.Errorf("the second time: got %s, want %s", got, want)
	}
	if got := string(s.authorization("/acct/Other")); got == want {
		t.Error("another path has the same signature")
	}
	s.tick(at.Add(time.Second))
	if got := string(s.authorization("/acct/Tables")); got == want {
		t.Error("another date has the same signature")
	}
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, text string
		status     int
		body       string
		next       string
		err        string
	}{
		{"a length", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabcHTTP", 200, "abc", "", ""},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n", 200, "abc", "", ""},
		{"no body", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", "", ""},
		{
			"another page", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nx-ms-continuation-NextPartitionKey: 1!4!YQ--\r\nx-ms-continuation-NextRowKey: b\r\n\r\n",
			200, "", "NextPartitionKey=1%214%21YQ--&NextRowKey=b", "",
		},
		{"no length", "HTTP/1.1 200 OK\r\n\r\nabc", 200, "", "", "a response without its length"},
		{"too long", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", 200, "", "", "not a length"},
		{"not HTTP", "SSH-2.0-x\r\n\r\n", 0, "", "", "not a response"},
		{"cut short", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", 200, "", "", "EOF"},
		{"a chunk longer than its size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", 200, "", "", "longer than its size"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := &conn{r: bufio.NewReader(strings.NewReader(c.text))}
			err := conn.read()
			a := &conn.response
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("%q: got error %v, want %q", c.text, err, c.err)
				}
				return
			}
			if err != nil || a.status != c.status || string(a.body) != c.body || a.continuation() != c.next {
				t.Errorf("%q: got %d, %q, %q, %v", c.text, a.status, a.body, a.continuation(), err)
			}
		})
	}
}

func TestParseTarget(t *testing.T) {
	for _, c := range []struct{ text, host, base, account string }{
		{"UseDevelopmentStorage=true", "127.0.0.1:10002", "/devstoreaccount1", "devstoreaccount1"},
		{"AccountName=a;AccountKey=YQ==;TableEndpoint=http://h/a/", "h:80", "/a", "a"},
		{"AccountName=a;AccountKey=YQ==;EndpointSuffix=example.org", "a.table.example.org:443", "", "a"},
		{"AccountName=a;AccountKey=YQ==;TableEndpoint=h", "", "", ""},
		{"AccountName=a;AccountKey=?;TableEndpoint=http://h/a", "", "", ""},
		{"AccountKey=YQ==;TableEndpoint=http://h/a", "", "", ""},
	} {
		got, err := parseTarget(c.text)
		if c.host == "" {
			if err == nil {
				t.Errorf("%q was accepted: %+v", c.text, got)
			}
			continue
		}
		if err != nil || got.host != c.host || got.base != c.base || got.account != c.account {
			t.Errorf("%q: got %+v, %v", c.text, got, err)
		}
	}
}

// TestDialTLS shakes hands before the first request, whose latency and cost are measured.
func TestDialTLS(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	c, err := dial(&target{tls: true, insecure: true, host: server.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if !c.nc.(*tls.Conn).ConnectionState().HandshakeComplete {
		t.Error("the connection has no keys yet")
	}
}
