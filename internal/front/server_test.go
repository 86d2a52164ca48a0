package front

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipeListener is an in-process listener, as synctest needs it.
type pipeListener struct {
	calls  chan net.Conn
	closed chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{calls: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.calls:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error {
	close(p.closed)
	return nil
}

func (*pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipeListener) dial() net.Conn {
	near, far := net.Pipe()
	p.calls <- far
	return near
}

// withServer runs work with a Server of h in a synctest bubble.
func withServer(t *testing.T, h http.HandlerFunc, work func(t *testing.T, p *pipeListener, s *Server)) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeListener()
		s := New(p, h, Options{})
		served := make(chan error)
		go func() { served <- s.Serve() }()
		work(t, p, s)
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// drip writes n bytes, size at a time with a pause between, until a write fails.
func drip(c net.Conn, n, size int, pause time.Duration) {
	chunk := make([]byte, size)
	for n > 0 {
		if _, err := c.Write(chunk[:min(size, n)]); err != nil {
			return
		}
		n -= size
		<-time.After(pause)
	}
}

func TestBodies(t *testing.T) {
	for _, c := range []struct {
		name        string
		n, size     int
		pause       time.Duration
		late        bool
		least, most time.Duration
	}{
		{"at once", 4 << 20, 4 << 20, 0, false, 0, 0},
		{"nothing", 1, 0, time.Second, true, 5 * time.Second, 5 * time.Second},
		{"a byte a second", 1000, 1, time.Second, true, 5 * time.Second, 6 * time.Second},
		{"4 KiB a second", 1 << 20, 4 << 10, time.Second, true, 6 * time.Second, 12 * time.Second},
		{"16 KiB a second", 320 << 10, 16 << 10, time.Second, false, 19 * time.Second, 20 * time.Second},
		{"16 KiB a second for too long", 1 << 20, 16 << 10, time.Second, true, 30 * time.Second, 30 * time.Second},
		{"a pause after a fast start", 1 << 20, 512 << 10, 4 * time.Second, false, 4 * time.Second, 4 * time.Second},
		{"an end after a fast start", 1 << 20, 512 << 10, time.Minute, true, 5 * time.Second, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			var result chan error
			h := func(_ http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				result <- err
			}
			withServer(t, h, func(t *testing.T, p *pipeListener, _ *Server) {
				result = make(chan error, 1)
				conn := p.dial()
				var clients sync.WaitGroup
				defer clients.Wait()
				defer conn.Close()
				start := time.Now()
				fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", c.n)
				if c.size > 0 {
					clients.Go(func() { drip(conn, c.n, c.size, c.pause) })
				}
				clients.Go(func() { _, _ = io.Copy(io.Discard, conn) })
				err := <-result
				if late := errors.Is(err, os.ErrDeadlineExceeded); late != c.late || !late && err != nil {
					t.Errorf("the handler reads the body with error %v, want a timeout: %v", err, c.late)
				}
				if took := time.Since(start); took < c.least || took > c.most {
					t.Errorf("reading the body takes %v, want %v to %v", took, c.least, c.most)
				}
			})
		})
	}
}

// TestSlowClients checks how long the server keeps the connection of a slow client.
func TestSlowClients(t *testing.T) {
	for _, c := range []struct {
		name    string
		request string
		drip    bool
		read    bool
		want    time.Duration
	}{
		{"sends nothing", "", false, true, 5 * time.Second},
		{"begins a header", "GET / HTT", false, true, 5 * time.Second},
		{"sends headers slowly", "GET / HTTP/1.1\r\nX-Long: ", true, true, 5 * time.Second},
		{"is idle after a response", "GET /small HTTP/1.1\r\nHost: h\r\n\r\n", false, true, time.Minute},
		{"does not read the response", "GET /large HTTP/1.1\r\nHost: h\r\n\r\n", false, false, time.Minute},
		{"sends a body that the handler does not read", "POST /small HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n", true, true, 5 * time.Second},
		{
			"sends a chunked body that the handler does not read", "POST /small HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n30000\r\n",
			true, true, 5 * time.Second,
		},
		{"has an expectation and sends no body", "POST /small HTTP/1.1\r\nHost: h\r\nExpect: x\r\nContent-Length: 9\r\n\r\n", false, true, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := func(w http.ResponseWriter, r *http.Request) {
				n := 10
				if r.URL.Path == "/large" {
					n = 1 << 20
				}
				_, _ = w.Write(make([]byte, n))
			}
			withServer(t, h, func(t *testing.T, p *pipeListener, s *Server) {
				conn := p.dial()
				var clients sync.WaitGroup
				defer clients.Wait()
				defer conn.Close()
				start := time.Now()
				if _, err := io.WriteString(conn, c.request); err != nil {
					t.Fatal(err)
				}
				if c.drip {
					clients.Go(func() { drip(conn, 1<<20, 1, 100*time.Millisecond) })
				}
				if c.read {
					_, _ = io.Copy(io.Discard, conn) // until the server closes the connection
				} else {
					<-time.After(2 * time.Minute)
				}
				synctest.Wait()
				if got := s.Connections(); got != 0 {
					t.Errorf("%d connections are open", got)
				}
				// http.Server waits half a second before it closes, so that the client can read the error.
				if took := time.Since(start); c.read && (took < c.want || took > c.want+time.Second) {
					t.Errorf("the connection is closed after %v, want %v", took, c.want)
				}
			})
		})
	}
}

// TestSlowHandler checks that the deadlines of a request and of its body do not apply to the
// handler after the body was read. That of the response is set by a handler that takes longer.
func TestSlowHandler(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err != nil {
			t.Error(err)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		select {
		case <-time.After(time.Hour):
		case <-r.Context().Done():
			t.Errorf("the request is canceled: %v", r.Context().Err())
		}
	}
	withServer(t, h, func(t *testing.T, p *pipeListener, _ *Server) {
		conn := p.dial()
		defer conn.Close()
		responses := bufio.NewReader(conn)
		for i := range 2 {
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody")
			response, err := http.ReadResponse(responses, nil)
			if err != nil || response.StatusCode != http.StatusOK {
				t.Fatalf("request %d: %v, %v", i, response, err)
			}
			response.Body.Close()
		}
	})
}

func TestHeaderLimit(t *testing.T) {
	withServer(t, func(http.ResponseWriter, *http.Request) {}, func(t *testing.T, p *pipeListener, _ *Server) {
		for _, c := range []struct{ n, want int }{{30 << 10, http.StatusOK}, {40 << 10, http.StatusRequestHeaderFieldsTooLarge}} {
			conn := p.dial()
			go func() {
				// The server may stop reading before the end.
				_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: h\r\nX-Long: %s\r\n\r\n", strings.Repeat("x", c.n))
			}()
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || response.StatusCode != c.want {
				t.Errorf("%d bytes of headers: %v, %v; want status %d", c.n, response, err, c.want)
			}
			conn.Close()
		}
	})
}

// TestClaimedHTTP2 sends requests of HTTP/1 that claim to be of HTTP/2, and not their bodies.
func TestClaimedHTTP2(t *testing.T) {
	withServer(t, func(http.ResponseWriter, *http.Request) {}, func(t *testing.T, p *pipeListener, _ *Server) {
		for _, fields := range []string{"Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", strings.Repeat("X: y\r\n", maxFields) + "Content-Length: 5\r\n"} {
			start := time.Now()
			conn := p.dial()
			go func() { _, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\nHost: h\r\n"+fields+"\r\n") }()
			_ = conn.SetReadDeadline(start.Add(2 * bodyRate.grace))
			if b, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 ") {
				t.Errorf("%.20q: %q, %v after %v", fields, b, err, time.Since(start))
			}
			conn.Close()
		}
	})
}

// TestManyFields sends headers that are short and have many fields.
func TestManyFields(t *testing.T) {
	repeated, distinct, announced := "", "", "Transfer-Encoding: chunked\r\nTrailer: "
	for i := range maxFields {
		repeated += "X: y\r\n"
		distinct += fmt.Sprintf("X-%d: y\r\n", i)
		announced += fmt.Sprintf("X-%d,", i)
	}
	withServer(t, func(http.ResponseWriter, *http.Request) {}, func(t *testing.T, p *pipeListener, _ *Server) {
		for _, c := range []struct {
			fields string
			want   int
		}{
			{repeated, http.StatusOK},
			{distinct, http.StatusOK},
			{repeated + "Y: y\r\n", 431},
			{distinct + "Y: y\r\n", 431},
			{announced + "Y\r\n", 431},
			{repeated + "Content-Length: 5\r\n", 431},
			{repeated + "Content-Length: 5\r\nExpect: 100-continue\r\n", 431},
		} {
			start := time.Now()
			conn := p.dial()
			go func() { _, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\n"+c.fields+"\r\n") }()
			r := bufio.NewReader(conn)
			response, err := http.ReadResponse(r, nil)
			if err != nil || response.StatusCode != c.want || response.Close != (c.want == 431) || time.Since(start) > 0 {
				t.Errorf("%d bytes of fields: %v, %v after %v; want status %d", len(c.fields), response, err, time.Since(start), c.want)
			}
			if c.want == 431 { // the server does not wait for the body longer than for others
				_ = conn.SetReadDeadline(start.Add(2 * bodyRate.grace))
				if _, err := io.Copy(io.Discard, r); err != nil {
					t.Errorf("%d bytes of fields: the connection is open after the refusal: %v", len(c.fields), err)
				}
			}
			conn.Close()
		}
	})
}

// TestShutdown checks that Shutdown waits for running requests until its context ends,
// but not for connections that were never used.
func TestShutdown(t *testing.T) {
	for _, c := range []struct {
		name       string
		work       time.Duration
		want       time.Duration
		interrupts bool
	}{{"has no request", 0, 0, false}, {"finishes", 10 * time.Second, 10 * time.Second, false}, {"is interrupted", 50 * time.Second, 30 * time.Second, true}} {
		t.Run(c.name, func(t *testing.T) {
			h := func(_ http.ResponseWriter, r *http.Request) {
				select {
				case <-time.After(c.work):
				case <-r.Context().Done():
				}
			}
			withServer(t, h, func(t *testing.T, p *pipeListener, s *Server) {
				unused, used := p.dial(), p.dial()
				defer unused.Close()
				defer used.Close()
				fmt.Fprintf(used, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
				done := make(chan error, 1)
				go func() {
					_, err := http.ReadResponse(bufio.NewReader(used), nil)
					done <- err
				}()
				synctest.Wait()
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				err := s.Shutdown(ctx)
				if cut := errors.Is(err, context.DeadlineExceeded); cut != c.interrupts {
					t.Errorf("Shutdown returns %v", err)
				}
				if took := time.Since(start); took < c.want || took > c.want+time.Second {
					t.Errorf("Shutdown takes %v, want %v", took, c.want)
				}
				if err := <-done; (err != nil) != c.interrupts {
					t.Errorf("the request ends with %v", err)
				}
			})
		})
	}
}

// TestRefuseUnsentBody refuses requests with a declared body that was not sent. The
// response must not wait for the body, and no client gets 100 Continue.
func TestRefuseUnsentBody(t *testing.T) {
	for _, headers := range []string{
		"Content-Length: 4194305\r\n",
		"Content-Length: 4194305\r\nExpect: 100-continue\r\n",
		"Content-Length: 5\r\nExpect: 100-continue\r\n",
		"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n",
	} {
		refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) }
		withServer(t, refuse, func(t *testing.T, p *pipeListener, _ *Server) {
			c := p.dial()
			defer c.Close()
			start := time.Now()
			if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\n"+headers+"\r\n"); err != nil {
				t.Fatal(err)
			}
			status, err := bufio.NewReader(c).ReadString('\n')
			if waited := time.Since(start); !strings.HasPrefix(status, "HTTP/1.1 413 ") || err != nil || waited > 0 {
				t.Errorf("%q: got %q and %v after %v, want status 413 at once", headers, status, err, waited)
			}
		})
	}
}

// TestRefuseWhileSending refuses a body that the client sends completely before it
// reads. The client must get the response and not a reset connection.
func TestRefuseWhileSending(t *testing.T) {
	const size = 8 << 20
	for _, c := range []struct{ name, headers, before, after string }{
		{"with a length", "Content-Length: 8388608\r\n", "", ""},
		{"in chunks", "Transfer-Encoding: chunked\r\n", "800000\r\n", "\r\n0\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) }
			withServer(t, refuse, func(t *testing.T, p *pipeListener, _ *Server) {
				conn := p.dial()
				defer conn.Close()
				sent := make(chan error, 1)
				go func() {
					_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\n"+c.headers+"\r\n"+c.before)
					for n := 0; n < size && err == nil; n += 64 << 10 {
						_, err = conn.Write(make([]byte, 64<<10))
					}
					_, after := io.WriteString(conn, c.after)
					sent <- errors.Join(err, after)
				}()
				response, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil || response.StatusCode != http.StatusRequestEntityTooLarge {
					t.Errorf("got %v and %v, want status 413", response, err)
				}
				if err := <-sent; err != nil {
					t.Errorf("the client cannot send its request: %v", err)
				}
			})
		})
	}
}

// TestLateHandler sends a body to handlers that take longer than the grace of a body before
// they read it or respond without reading it. The time of a handler is not that of the client.
func TestLateHandler(t *testing.T) {
	const size = 200_000
	for _, c := range []struct {
		name  string
		reads bool
		want  int
	}{{"reads", true, http.StatusOK}, {"refuses", false, http.StatusServiceUnavailable}} {
		t.Run(c.name, func(t *testing.T) {
			h := func(w http.ResponseWriter, r *http.Request) {
				<-time.After(bodyRate.grace + time.Second)
				if c.reads {
					if n, err := io.Copy(io.Discard, r.Body); n != size || err != nil {
						t.Errorf("the handler reads %d bytes of the body, error %v; want %d", n, err, size)
					}
				}
				w.WriteHeader(c.want)
			}
			withServer(t, h, func(t *testing.T, p *pipeListener, _ *Server) {
				conn := p.dial()
				defer conn.Close()
				responses := bufio.NewReader(conn)
				for i := range 2 {
					sent := make(chan error, 1)
					go func() {
						_, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", size, make([]byte, size))
						sent <- err
					}()
					response, err := http.ReadResponse(responses, nil)
					if err != nil || response.StatusCode != c.want {
						t.Fatalf("request %d: %v, %v; want status %d", i, response, err, c.want)
					}
					response.Body.Close()
					if err := <-sent; err != nil {
						t.Errorf("request %d: the client cannot send it: %v", i, err)
					}
				}
			})
		})
	}
}
