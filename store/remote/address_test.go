package remote_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/remote"
)

// TestWrongScheme calls servers that are not reached by the URL. Nothing is sent, no request is
// repeated, and the error says what to change.
func TestWrongScheme(t *testing.T) {
	quiet := log.New(io.Discard, "", 0)
	serve := func(http.ResponseWriter, *http.Request) { t.Error("the server gets a request") }
	plain := httptest.NewServer(http.HandlerFunc(serve))
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(serve))
	secure.Config.ErrorLog = quiet
	secure.StartTLS()
	t.Cleanup(secure.Close)
	picky := httptest.NewUnstartedServer(http.HandlerFunc(serve))
	picky.Config.ErrorLog = quiet
	picky.TLS = &tls.Config{MaxVersion: tls.VersionTLS11}
	picky.StartTLS()
	t.Cleanup(picky.Close)
	nginx := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "<html><center>The plain HTTP request was sent to HTTPS port</center></html>")
	}))
	t.Cleanup(nginx.Close)
	alerting := raw(t, func(c net.Conn) {
		if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.ReadAll(r.Body)
		}
		_, _ = c.Write([]byte("\x15\x03\x01\x00\x02\x02\x0a"))
	})
	downgraded := strings.Replace(secure.URL, "https:", "http:", 1)
	for _, c := range []struct{ name, url, want string }{
		{"https to a server without TLS", strings.Replace(plain.URL, "http:", "https:", 1), "the server does not speak TLS: use http://"},
		{"an unknown authority", secure.URL, "the certificate is not trusted: x509: certificate signed by unknown authority"},
		{"another version of TLS", picky.URL, "the TLS handshake failed: tls: protocol version not supported"},
		{"http to a server with TLS", downgraded, "the server speaks TLS: use https://"},
		{"http to nginx with TLS", nginx.URL, "the server speaks TLS: use https://"},
		{"http to a server that sends an alert", "http://" + alerting, "the server speaks TLS: use https://"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := remote.Endpoint{URL: c.url + "/shop", Account: "shop", Key: testKey}
			s, err := remote.Open(e, remote.Options{Retrying: func(cause string, _, _ int) { t.Errorf("a request is repeated: %s", cause) }})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx := t.Context()
			_, applied := s.Apply(ctx, "People", store.Insert(entity("1", 1)))
			_, batch := s.Apply(ctx, "People", store.Insert(entity("1", 1)), store.Insert(entity("2", 1)))
			_, read := s.Get(ctx, "People", edm.Key{Partition: "p", Row: "1"})
			errs := []error{applied, batch, read, s.CreateTable(ctx, "People")}
			if c.url != downgraded { // a server in Go closes the connection of a DELETE without a response
				errs = append(errs, s.DeleteTable(ctx, "People"))
			}
			for _, err := range errs {
				var wrong *remote.AddressError
				if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrOutcomeUnknown) || !errors.As(err, &wrong) ||
					!strings.HasSuffix(err.Error(), e.URL+": "+c.want) {
					t.Errorf("got %v, want ErrUnavailable: %s: %s", err, e.URL, c.want)
				}
			}
		})
	}
}

// raw starts a server that calls answer with each connection, and closes it.
func raw(t *testing.T, answer func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			answer(c)
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

// TestHandshakeCut cuts connections within the TLS handshake: nothing was sent, and reads are
// repeated.
func TestHandshakeCut(t *testing.T) {
	var connections atomic.Int64
	address := raw(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1<<16))
		connections.Add(1)
	})
	s := open(t, "https://"+address+"/shop", testKey)
	if _, err := s.Apply(t.Context(), "People", store.Insert(entity("1", 1))); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("a write: %v, want ErrUnavailable", err)
	}
	connections.Store(0)
	_, err := s.Get(t.Context(), "People", edm.Key{Partition: "p", Row: "1"})
	if n := connections.Load(); !errors.Is(err, store.ErrUnavailable) || n != 4 {
		t.Errorf("a read: %v after %d connections, want ErrUnavailable after 4", err, n)
	}
}

// TestOtherSuccess checks that a write with another ETag, or with another status of success in a
// batch, is not stored.
func TestOtherSuccess(t *testing.T) {
	const etag = `W/"datetime'2026-01-02T03%3A04%3A05.0000001Z'"`
	single := []store.Op{store.InsertOrReplace(entity("1", 1))}
	batch := []store.Op{store.Insert(entity("1", 1)), store.Delete(edm.Key{Partition: "p", Row: "2"}, store.Any)}
	part := "HTTP/1.1 204 No Content\r\nETag: " + etag + "\r\n\r\n--changeset\r\n"
	for _, c := range []struct {
		ops        []store.Op
		status     int
		etag, body string
		ok         bool
	}{
		{single, http.StatusNoContent, etag, "", true},
		{single, http.StatusNoContent, `"5f-abc"`, "", false},
		{single, http.StatusNoContent, `W/"datetime'yesterday'"`, "", false},
		{batch, http.StatusAccepted, "", part + part, true},
		{batch, http.StatusAccepted, "", part + strings.Replace(part, "204", "200", 1), false},
		{batch, http.StatusAccepted, "", strings.Replace(part, etag, `"5f-abc"`, 1) + part, false},
		{batch, http.StatusAccepted, "", part + part[:strings.Index(part, "%3A")], false},
		{batch, http.StatusAccepted, "", part + strings.Replace(part, "204", "301", 1), false},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", c.etag)
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		_, err := open(t, srv.URL+"/shop", testKey).Apply(t.Context(), "People", c.ops...)
		srv.Close()
		if (err == nil) != c.ok || err != nil && !errors.Is(err, store.ErrOutcomeUnknown) {
			t.Errorf("%d with ETag %s and body %q: %v, want success: %t", c.status, c.etag, c.body, err, c.ok)
		}
	}
}
