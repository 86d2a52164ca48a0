package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// TestClientGoneInBody disconnects in the middle of a body. The event tells that, and not that
// the body was invalid, as after the end of a body of wrong chunks.
func TestClientGoneInBody(t *testing.T) {
	events := make(chan server.Event, 1)
	h, err := server.New(server.Options{
		Accounts: []server.Account{{Name: testAccount, Keys: []string{testKey}, Store: storetest.NewMap(nil)}},
		Observe:  func(e server.Event) { events <- e },
	})
	if err != nil {
		t.Fatal(err)
	}
	credential, err := sharedkey.NewCredential(testAccount, testKey)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	defer web.Close()
	for _, c := range []struct {
		name, framing, body string
		end                 func(*net.TCPConn) error
		status              int
		code                string
	}{
		{"close", "Content-Length: 100", `{"PartitionKey":`, (*net.TCPConn).Close, 499, ""},
		{"reset", "Content-Length: 100", `{"PartitionKey":`, func(c *net.TCPConn) error {
			if err := c.SetLinger(0); err != nil {
				return err
			}
			return c.Close()
		}, 499, ""},
		{"close between chunks", "Transfer-Encoding: chunked", "2\r\n{}\r\n", (*net.TCPConn).Close, 499, ""},
		{"wrong chunks", "Transfer-Encoding: chunked", "2\r\n{}\r\nx\r\n", (*net.TCPConn).CloseWrite, http.StatusBadRequest, "InvalidInput"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/acct/People", http.NoBody)
			r.Header.Set("Content-Type", "application/json")
			if err := credential.SignRequest(r, time.Now()); err != nil {
				t.Fatal(err)
			}
			var head strings.Builder
			if err := r.Header.Write(&head); err != nil {
				t.Fatal(err)
			}
			conn, err := net.Dial("tcp", web.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			const line = "POST /acct/People HTTP/1.1\r\nExpect: 100-continue\r\n"
			if _, err := fmt.Fprintf(conn, "%sHost: %s\r\n%s%s\r\n\r\n", line, r.Host, head.String(), c.framing); err != nil {
				t.Fatal(err)
			}
			// The server asks for the body when the handler reads it.
			const goOn = "HTTP/1.1 100 Continue\r\n\r\n"
			if _, err := io.ReadFull(conn, make([]byte, len(goOn))); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, c.body); err != nil {
				t.Fatal(err)
			}
			if err := c.end(conn.(*net.TCPConn)); err != nil {
				t.Fatal(err)
			}
			if e := <-events; e.Status != c.status || e.Code != c.code || (e.Err != nil) != (c.status == 499) {
				t.Errorf("status %d, code %q, error %v; want status %d, code %q", e.Status, e.Code, e.Err, c.status, c.code)
			}
		})
	}
}
