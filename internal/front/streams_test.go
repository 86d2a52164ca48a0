package front

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestStreamsWait begins more requests of HTTP/2 than may run. One of each connection runs, a
// few more do, and the others wait until one ends or their client gives up.
func TestStreamsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &streams{make(chan struct{}, 2)}
		running := make(chan func(), 100)
		begin := func(ctx context.Context, major int) {
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody).WithContext(ctx)
			r.ProtoMajor = major
			go func() {
				if end, _ := s.begin(r); end != nil {
					running <- end
				}
			}()
			synctest.Wait()
		}
		want := func(n int) {
			t.Helper()
			if synctest.Wait(); len(running) != n {
				t.Errorf("%d requests run, want %d", len(running), n)
			}
		}
		first, second := s.context(t.Context(), &tls.Conn{}), s.context(t.Context(), &tls.Conn{})
		canceled, cancel := context.WithCancel(first)
		begin(canceled, 2) // has the place of the connection
		for range 5 {
			begin(canceled, 2)
		}
		want(3)
		begin(second, 2)
		want(4)
		begin(second, 2)
		want(4)
		begin(s.context(t.Context(), &net.TCPConn{}), 1)
		want(5)
		cancel()
		want(5)
		for range 3 { // of the first connection
			(<-running)()
		}
		want(3)
		for range 3 {
			(<-running)()
		}
		want(0)
	})
}

// listenHTTP2 returns a listener, certificates for a server of HTTP/2, and a client that trusts them.
func listenHTTP2(t *testing.T) (l net.Listener, certificates *tls.Config, client *http.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l, &tls.Config{Certificates: s.TLS.Certificates}, s.Client()
}

// TestStreamOfEachConnection lets a request run while that of another connection does not end,
// and no others may run. One of the same connection runs after that end.
func TestStreamOfEachConnection(t *testing.T) {
	l, certificates, client := listenHTTP2(t)
	var released atomic.Bool
	reached, release := make(chan struct{}), make(chan struct{})
	s := New(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/wait":
			close(reached)
			<-release
		case "/after":
			if !released.Load() {
				t.Error("two requests of one connection run")
			}
		}
		_, _ = io.WriteString(w, r.Proto)
	}), Options{TLS: certificates})
	s.streams.spare = nil
	served := make(chan error)
	go func() { served <- s.Serve() }()
	get := func(c *http.Client, path string) error {
		defer c.CloseIdleConnections()
		response, err := c.Get("https://" + l.Addr().String() + path)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		if string(text) != "HTTP/2.0" {
			t.Errorf("%s: the response is %q", path, text)
		}
		return errors.Join(err, response.Body.Close())
	}
	transport := client.Transport.(*http.Transport)
	first, other := &http.Client{Transport: transport.Clone()}, &http.Client{Transport: transport.Clone()}
	results := make(chan error, 2)
	go func() { results <- get(first, "/wait") }()
	<-reached
	go func() { results <- get(first, "/after") }()
	if err := get(other, "/"); err != nil {
		t.Error(err)
	}
	released.Store(true)
	close(release)
	if err := errors.Join(<-results, <-results, s.Shutdown(t.Context()), <-served); err != nil {
		t.Error(err)
	}
}

// TestWaitingBodies sends more bodies on one connection than it may receive for requests that
// wait. The request that runs gets its own body, and those that cannot wait are refused at once.
func TestWaitingBodies(t *testing.T) {
	l, certificates, client := listenHTTP2(t)
	const requests, size = 8, 4 * maxReceived
	s := New(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n != size {
			t.Errorf("the handler reads %d bytes, error %v; want %d", n, err, size)
		}
	}), Options{TLS: certificates, Refuse: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) }})
	s.streams.spare = nil
	served := make(chan error)
	go func() { served <- s.Serve() }()
	statuses := make(chan int, requests)
	for range requests {
		go func() {
			response, err := client.Post("https://"+l.Addr().String(), "text/plain", bytes.NewReader(make([]byte, size)))
			if err != nil {
				t.Error(err)
				statuses <- 0
				return
			}
			text, err := io.ReadAll(response.Body)
			if want := response.StatusCode == http.StatusServiceUnavailable; err != nil || (string(text) == "busy\n") != want {
				t.Errorf("status %d with body %q, error %v", response.StatusCode, text, err)
			}
			statuses <- response.StatusCode
			response.Body.Close()
		}()
	}
	count := map[int]int{}
	for range requests {
		count[<-statuses]++
	}
	client.CloseIdleConnections()
	if count[http.StatusOK] == 0 || count[http.StatusOK]+count[http.StatusServiceUnavailable] != requests {
		t.Errorf("requests by status: %v", count)
	}
	if err := errors.Join(s.Shutdown(t.Context()), <-served); err != nil {
		t.Error(err)
	}
}

// TestSmallBodiesWait begins requests with bodies of which only some can wait.
func TestSmallBodiesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &streams{}
		ctx, cancel := context.WithCancel(s.context(t.Context(), &tls.Conn{}))
		var waiting, refused atomic.Int64
		request := func(length int64) *http.Request {
			r := httptest.NewRequest(http.MethodPost, "/", http.NoBody).WithContext(ctx)
			r.ProtoMajor, r.ContentLength = 2, length
			return r
		}
		if end, _ := s.begin(request(maxReceived)); end == nil {
			t.Error("the first request of a connection does not run")
		}
		for _, length := range []int64{maxWaiting / 2, maxWaiting / 2, 1, -1, 0} {
			go func() {
				if _, no := s.begin(request(length)); no {
					refused.Add(1)
				}
				waiting.Add(-1)
			}()
			waiting.Add(1)
			synctest.Wait()
		}
		if waiting.Load() != 3 || refused.Load() != 2 {
			t.Errorf("%d requests wait, %d are refused; want 3 and 2", waiting.Load(), refused.Load())
		}
		cancel()
		synctest.Wait()
		if waiting.Load() != 0 || refused.Load() != 2 {
			t.Errorf("%d requests wait, %d are refused after their clients gave up", waiting.Load(), refused.Load())
		}
	})
}

// TestUnreadHTTP2 sends a request of HTTP/2 and reads only the beginning of the response, or nothing.
func TestUnreadHTTP2(t *testing.T) {
	l, certificates, _ := listenHTTP2(t)
	l.Close()
	certificates.SessionTicketsDisabled = true // the server would wait until the client reads its ticket
	for _, read := range []int64{0, 100 << 10} {
		synctest.Test(t, func(t *testing.T) {
			p := newPipeListener()
			took := make(chan time.Duration, 1)
			s := New(p, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				start := time.Now()
				_, _ = w.Write(make([]byte, 1<<20))
				took <- time.Since(start)
			}), Options{TLS: certificates})
			served := make(chan error)
			go func() { served <- s.Serve() }()
			conn := tls.Client(p.dial(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
			_, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+
				"\x00\x00\x06\x04\x00\x00\x00\x00\x00"+"\x00\x04\x7f\xff\xff\xff"+ // SETTINGS: the window of each stream
				"\x00\x00\x04\x08\x00\x00\x00\x00\x00"+"\x7f\x00\x00\x00"+ // WINDOW_UPDATE of the connection
				"\x00\x00\x06\x01\x05\x00\x00\x00\x01"+"\x82\x87\x84\x01\x01h") // HEADERS: GET https://h/
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.CopyN(io.Discard, conn, read); err != nil {
				t.Fatal(err)
			}
			<-time.After(3 * responseTime)
			if n := s.Connections(); n != 0 {
				t.Errorf("after %d bytes of a response: %d connections are open", read, n)
			}
			conn.NetConn().Close()
			if d := <-took; d > 2*responseTime {
				t.Errorf("after %d bytes of a response: the handler has written for %v", read, d)
			}
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}
