package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// crowd are clients that hold connections and do little with them.
type crowd struct {
	*sender
	size      int64
	present   atomic.Int64 // connections that are open
	connected atomic.Int64 // that were opened
	complete  chan struct{}
	once      sync.Once
	cancel    context.CancelFunc
	clients   sync.WaitGroup
}

// pause is how long a slow client waits between two bytes, and whoever was
// thrown out before coming again.
const pause = time.Second

// gather lets all come; complete is closed when all are there at once.
func (s *sender) gather(ctx context.Context) *crowd {
	ctx, cancel := context.WithCancel(ctx)
	c := &crowd{sender: s, size: int64(s.slow + s.idle), complete: make(chan struct{}), cancel: cancel}
	kinds := []func(context.Context, net.Conn){c.headers, c.body, c.page}
	for i := range s.slow {
		c.clients.Go(func() { c.stay(ctx, kinds[i%len(kinds)]) })
	}
	for range s.idle {
		c.clients.Go(func() { c.stay(ctx, c.nothing) })
	}
	if c.size == 0 {
		close(c.complete)
	}
	return c
}

// leave lets all go.
func (c *crowd) leave() {
	c.cancel()
	c.clients.Wait()
}

// stay connects again and again.
func (c *crowd) stay(ctx context.Context, behave func(context.Context, net.Conn)) {
	var d net.Dialer
	for ctx.Err() == nil {
		conn, err := d.DialContext(ctx, "tcp", c.url.Host)
		if err == nil {
			c.connected.Add(1)
			if c.present.Add(1) == c.size {
				c.once.Do(func() { close(c.complete) })
			}
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			behave(ctx, conn)
			stop()
			_ = conn.Close()
			c.present.Add(-1)
		}
		wait(ctx, pause)
	}
}

// wait waits for d or the end of ctx, and reports whether it was d.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// drip writes a byte at a time until the server has had enough.
func drip(ctx context.Context, conn net.Conn) {
	for {
		if _, err := conn.Write([]byte("x")); err != nil || !wait(ctx, pause) {
			return
		}
	}
}

func (c *crowd) headers(ctx context.Context, conn net.Conn) {
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nX-Slow: "); err == nil {
		drip(ctx, conn)
	}
}

// body announces a body of 4 MiB.
func (c *crowd) body(ctx context.Context, conn net.Conn) {
	if c.head(ctx, conn, http.MethodPost, "/"+c.table, "Content-Length: 4194304\r\n") == nil {
		drip(ctx, conn)
	}
}

// page asks for a page and leaves it where it is until the connection breaks.
func (c *crowd) page(ctx context.Context, conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10) // as little as the system allows
	}
	if c.head(ctx, conn, http.MethodGet, "/"+c.table+"()", "") == nil {
		drip(ctx, conn)
	}
}

// nothing asks for one entity and then keeps the connection.
func (c *crowd) nothing(ctx context.Context, conn net.Conn) {
	if c.head(ctx, conn, http.MethodGet, "/"+c.table+"(PartitionKey='page',RowKey='000001')", "") != nil {
		return
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return
	}
	_, err = io.Copy(io.Discard, answer.Body)
	if err == nil && answer.Body.Close() == nil {
		_, _ = conn.Read(make([]byte, 1)) // until the server closes it
	}
}

// head writes the head of a signed request.
func (c *crowd) head(ctx context.Context, conn net.Conn, method, path, more string) error {
	r, err := c.request(ctx, method, path, "")
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n%s", method, r.URL.RequestURI(), c.url.Host, more)
	for name := range r.Header {
		fmt.Fprintf(&b, "%s: %s\r\n", name, r.Header.Get(name))
	}
	_, err = io.WriteString(conn, b.String()+"\r\n")
	return err
}
