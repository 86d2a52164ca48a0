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

// slowClients are the slow and the idle clients.
type slowClients struct {
	*sender
	size      int64
	open      atomic.Int64  // connections that are open
	connected atomic.Int64  // connections that were opened
	complete  chan struct{} // closed when all clients are connected at the same time
	once      sync.Once
	cancel    context.CancelFunc
	clients   sync.WaitGroup
}

// pause is the time that a slow client waits between two bytes, and before it connects
// again after the server has disconnected it.
const pause = time.Second

// startClients starts all slow and idle clients. Call stop.
func (s *sender) startClients(ctx context.Context) *slowClients {
	ctx, cancel := context.WithCancel(ctx)
	c := &slowClients{sender: s, size: int64(s.slow + s.idle), complete: make(chan struct{}), cancel: cancel}
	kinds := []func(context.Context, net.Conn){c.slowHeader, c.slowBody, c.unreadPage}
	for i := range s.slow {
		c.clients.Go(func() { c.reconnect(ctx, kinds[i%len(kinds)]) })
	}
	for range s.idle {
		c.clients.Go(func() { c.reconnect(ctx, c.idleConn) })
	}
	if c.size == 0 {
		close(c.complete)
	}
	return c
}

// stop disconnects all clients and waits for their goroutines.
func (c *slowClients) stop() {
	c.cancel()
	c.clients.Wait()
}

// reconnect connects and calls behave, again and again.
func (c *slowClients) reconnect(ctx context.Context, behave func(context.Context, net.Conn)) {
	var d net.Dialer
	for ctx.Err() == nil {
		conn, err := d.DialContext(ctx, "tcp", c.url.Host)
		if err == nil {
			c.connected.Add(1)
			if c.open.Add(1) == c.size {
				c.once.Do(func() { close(c.complete) })
			}
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			behave(ctx, conn)
			stop()
			_ = conn.Close()
			c.open.Add(-1)
		}
		wait(ctx, pause)
	}
}

// wait waits for d and reports true, or false if ctx ends first.
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

// drip writes one byte at a time until the server closes the connection.
func drip(ctx context.Context, conn net.Conn) {
	for {
		if _, err := conn.Write([]byte("x")); err != nil || !wait(ctx, pause) {
			return
		}
	}
}

// slowHeader sends a request line and then a header byte by byte.
func (c *slowClients) slowHeader(ctx context.Context, conn net.Conn) {
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nX-Slow: "); err == nil {
		drip(ctx, conn)
	}
}

// slowBody announces a body of 4 MiB and sends it byte by byte.
func (c *slowClients) slowBody(ctx context.Context, conn net.Conn) {
	if c.head(ctx, conn, http.MethodPost, "/"+c.table, "Content-Length: 4194304\r\n") == nil {
		drip(ctx, conn)
	}
}

// unreadPage requests a page of entities and does not read it.
func (c *slowClients) unreadPage(ctx context.Context, conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10) // as little as the system allows
	}
	if c.head(ctx, conn, http.MethodGet, "/"+c.table+"()", "") == nil {
		drip(ctx, conn)
	}
}

// idleConn requests one entity and keeps the connection idle.
func (c *slowClients) idleConn(ctx context.Context, conn net.Conn) {
	if c.head(ctx, conn, http.MethodGet, "/"+c.table+"(PartitionKey='page',RowKey='000001')", "") != nil {
		return
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err == nil && response.Body.Close() == nil {
		_, _ = conn.Read(make([]byte, 1)) // until the server closes it
	}
}

// head writes the head of a signed request.
func (c *slowClients) head(ctx context.Context, conn net.Conn, method, path, more string) error {
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
