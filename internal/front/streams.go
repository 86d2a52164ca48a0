package front

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
)

const (
	maxStreams = 100 // of one HTTP/2 connection
	// spareStreams is the number of requests of HTTP/2 that run beside one of each connection.
	spareStreams = 1024
	// maxReceived limits the bytes of bodies that an HTTP/2 connection receives before a handler
	// reads them.
	maxReceived = 256 << 10
	// maxWaiting limits the bytes of the bodies of the requests of a connection that wait. What
	// they have received leaves the request that runs less of maxReceived for its own body.
	maxWaiting = maxReceived / 2
)

// streams limits the requests of HTTP/2 that run at a time, since each can have a response that
// its client does not read. One request of each connection always runs, so that no client keeps
// another one from going on.
type streams struct{ spare chan struct{} }

// connKey is the key of a connection's context for its *tlsConn.
type connKey struct{}

// tlsConn is a connection that can have several requests at a time.
type tlsConn struct {
	own     chan struct{} // has an element while its own request runs
	waiting atomic.Int64  // bytes of the bodies of the requests that wait
}

// context is the ConnContext of http.Server.
func (*streams) context(ctx context.Context, c net.Conn) context.Context {
	if _, ok := c.(*tls.Conn); !ok { // HTTP/2 is only under TLS
		return ctx
	}
	return context.WithValue(ctx, connKey{}, &tlsConn{own: make(chan struct{}, 1)})
}

// begin waits until r may run, and returns the function to call at its end. It returns nil if
// the client gave up before, or if r is refused, since no more bodies can wait.
func (s *streams) begin(r *http.Request) (end func(), refused bool) {
	if r.ProtoMajor != 2 {
		return func() {}, false
	}
	c, _ := r.Context().Value(connKey{}).(*tlsConn)
	ofOwn, ofSpare := func() { <-c.own }, func() { <-s.spare }
	select {
	case c.own <- struct{}{}:
		return ofOwn, false
	default:
	}
	select {
	case s.spare <- struct{}{}:
		return ofSpare, false
	default:
	}
	if size := r.ContentLength; size != 0 {
		if size < 0 {
			size = maxReceived
		}
		defer c.waiting.Add(-size)
		if c.waiting.Add(size) > maxWaiting {
			return nil, true
		}
	}
	select {
	case c.own <- struct{}{}:
		return ofOwn, false
	case s.spare <- struct{}{}:
		return ofSpare, false
	case <-r.Context().Done():
		return nil, false
	}
}
