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

// pipes is a listener within a process, for a bubble of synctest, in which time
// passes when all wait.
type pipes struct {
	calls  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{calls: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.calls:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (*pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipes) dial() net.Conn {
	near, far := net.Pipe()
	p.calls <- far
	return near
}

// within runs work with a Front in front of h, in a bubble.
func within(t *testing.T, h http.HandlerFunc, work func(t *testing.T, p *pipes, f *Front)) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		f := New(p, h, Options{})
		served := make(chan error)
		go func() { served <- f.Serve() }()
		work(t, p, f)
		if err := f.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// drip writes n bytes, some at a time with a pause between, until nobody reads.
func drip(c net.Conn, n, size int, pause time.Duration) {
	part := make([]byte, size)
	for n > 0 {
		if _, err := c.Write(part[:min(size, n)]); err != nil {
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
		{"nothing at all", 1, 0, time.Second, true, 5 * time.Second, 5 * time.Second},
		{"a byte a second", 1000, 1, time.Second, true, 5 * time.Second, 6 * time.Second},
		{"4 KiB a second", 1 << 20, 4 << 10, time.Second, true, 6 * time.Second, 12 * time.Second},
		{"16 KiB a second", 320 << 10, 16 << 10, time.Second, false, 19 * time.Second, 20 * time.Second},
		{"16 KiB a second for too long", 1 << 20, 16 << 10, time.Second, true, 30 * time.Second, 30 * time.Second},
		{"a pause after a fast start", 1 << 20, 512 << 10, 29 * time.Second, false, 29 * time.Second, 29 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said chan error
			h := func(_ http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				said <- err
			}
			within(t, h, func(t *testing.T, p *pipes, _ *Front) {
				said = make(chan error, 1)
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
				err := <-said
				if late := errors.Is(err, os.ErrDeadlineExceeded); late != c.late || !late && err != nil {
					t.Errorf("the handler reads the body with error %v, want late: %v", err, c.late)
				}
				if took := time.Since(start); took < c.least || took > c.most {
					t.Errorf("the handler has the body, or none, after %v, want %v to %v", took, c.least, c.most)
				}
			})
		})
	}
}

// TestSlowClients leaves a client's connection, and says how long the server
// keeps it.
func TestSlowClients(t *testing.T) {
	for _, c := range []struct {
		name    string
		request string
		drip    bool
		read    bool
		want    time.Duration
	}{
		{"says nothing", "", false, true, 5 * time.Second},
		{"begins a header", "GET / HTT", false, true, 5 * time.Second},
		{"sends headers slowly", "GET / HTTP/1.1\r\nX-Long: ", true, true, 5 * time.Second},
		{"is idle after an answer", "GET /small HTTP/1.1\r\nHost: h\r\n\r\n", false, true, time.Minute},
		{"does not read its answer", "GET /large HTTP/1.1\r\nHost: h\r\n\r\n", false, false, time.Minute},
		{"sends a body that nobody wants", "POST /small HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n", true, true, 5 * time.Second},
		{"sends a chunked body that nobody wants", "POST /small HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n30000\r\n", true, true, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := func(w http.ResponseWriter, r *http.Request) {
				n := 10
				if r.URL.Path == "/large" {
					n = 1 << 20
				}
				_, _ = w.Write(make([]byte, n))
			}
			within(t, h, func(t *testing.T, p *pipes, f *Front) {
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
					_, _ = io.Copy(io.Discard, conn) // until the server closes it
				} else {
					<-time.After(2 * time.Minute)
				}
				synctest.Wait()
				if got := f.Connections(); got != 0 {
					t.Errorf("%d connections are open", got)
				}
				// Before it closes, an http.Server lets a refused client read for half a second.
				if took := time.Since(start); c.read && (took < c.want || took > c.want+time.Second) {
					t.Errorf("the connection is closed after %v, want %v", took, c.want)
				}
			})
		})
	}
}

// TestBodyThenWork gives a request that came whole the time that its answer takes.
func TestBodyThenWork(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		select {
		case <-time.After(40 * time.Second):
		case <-r.Context().Done():
			t.Errorf("the request is cancelled: %v", r.Context().Err())
		}
	}
	within(t, h, func(t *testing.T, p *pipes, _ *Front) {
		conn := p.dial()
		defer conn.Close()
		answers := bufio.NewReader(conn)
		for i := range 2 {
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody")
			answer, err := http.ReadResponse(answers, nil)
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Fatalf("request %d: %v, %v", i, answer, err)
			}
			answer.Body.Close()
		}
	})
}

func TestHeaderLimit(t *testing.T) {
	within(t, func(http.ResponseWriter, *http.Request) {}, func(t *testing.T, p *pipes, _ *Front) {
		for _, c := range []struct{ n, want int }{{30 << 10, http.StatusOK}, {40 << 10, http.StatusRequestHeaderFieldsTooLarge}} {
			conn := p.dial()
			go func() {
				// The server may stop reading halfway.
				_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: h\r\nX-Long: %s\r\n\r\n", strings.Repeat("x", c.n))
			}()
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || answer.StatusCode != c.want {
				t.Errorf("%d bytes of headers: %v, %v; want status %d", c.n, answer, err, c.want)
			}
			conn.Close()
		}
	})
}

// TestShutdown waits for what runs, not for connections that were never used, and
// not longer than it is told to.
func TestShutdown(t *testing.T) {
	for _, c := range []struct {
		name       string
		work       time.Duration
		want       time.Duration
		interrupts bool
	}{{"has nothing to do", 0, 0, false}, {"finishes", 10 * time.Second, 10 * time.Second, false}, {"is cut short", 50 * time.Second, 30 * time.Second, true}} {
		t.Run(c.name, func(t *testing.T) {
			h := func(_ http.ResponseWriter, r *http.Request) {
				select {
				case <-time.After(c.work):
				case <-r.Context().Done():
				}
			}
			within(t, h, func(t *testing.T, p *pipes, f *Front) {
				unused, used := p.dial(), p.dial()
				defer unused.Close()
				defer used.Close()
				fmt.Fprintf(used, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
				answered := make(chan error, 1)
				go func() {
					_, err := http.ReadResponse(bufio.NewReader(used), nil)
					answered <- err
				}()
				synctest.Wait()
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				err := f.Shutdown(ctx)
				if cut := errors.Is(err, context.DeadlineExceeded); cut != c.interrupts {
					t.Errorf("Shutdown returns %v", err)
				}
				if took := time.Since(start); took < c.want || took > c.want+time.Second {
					t.Errorf("it takes %v, want %v", took, c.want)
				}
				if err := <-answered; (err != nil) != c.interrupts {
					t.Errorf("the request ends with %v", err)
				}
			})
		})
	}
}

// TestRefusedUnread refuses requests whose bodies were announced and not sent: the
// answer does not wait for them, and nobody is asked to send one.
func TestRefusedUnread(t *testing.T) {
	for _, headers := range []string{
		"Content-Length: 4194305\r\n",
		"Content-Length: 4194305\r\nExpect: 100-continue\r\n",
		"Content-Length: 5\r\nExpect: 100-continue\r\n",
		"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n",
	} {
		refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) }
		within(t, refuse, func(t *testing.T, p *pipes, _ *Front) {
			c := p.dial()
			defer c.Close()
			start := time.Now()
			if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\n"+headers+"\r\n"); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(c).ReadString('\n')
			if waited := time.Since(start); !strings.HasPrefix(line, "HTTP/1.1 413 ") || err != nil || waited > 0 {
				t.Errorf("%q: got %q and %v after %v, want status 413 at once", headers, line, err, waited)
			}
		})
	}
}

// TestRefusedWhileSending refuses a body that a client sends as a whole before it
// reads: it gets the answer, and not a connection that is cut off.
func TestRefusedWhileSending(t *testing.T) {
	const size = 8 << 20
	for _, c := range []struct{ name, headers, before, after string }{
		{"announced", "Content-Length: 8388608\r\n", "", ""},
		{"in chunks", "Transfer-Encoding: chunked\r\n", "800000\r\n", "\r\n0\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) }
			within(t, refuse, func(t *testing.T, p *pipes, _ *Front) {
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
				answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil || answer.StatusCode != http.StatusRequestEntityTooLarge {
					t.Errorf("got %v and %v, want status 413", answer, err)
				}
				if err := <-sent; err != nil {
					t.Errorf("the client cannot send its request: %v", err)
				}
			})
		})
	}
}
