package front

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

const (
	maxStreams = 100 // of one HTTP/2 connection
	// spareStreams is the number of requests of HTTP/2 that run beside one of each connection.
	spareStreams = 1024
	// maxReceived limits the bytes of bodies that an HTTP/2 connection receives before a handler
	// reads them.
	maxReceived = 256 << 10
)

// streams limits the requests of HTTP/2 that run at a time, since each can have a response that
// its client does not read. One request of each connection always runs, so that no client keeps
// another one from going on.
type streams struct{ spare chan struct{} }

// ownKey is the key of a connection's context for the channel whose element its own request has.
type ownKey struct{}

// context is the ConnContext of http.Server.
func (*streams) context(ctx context.Context, c net.Conn) context.Context {
	if _, ok := c.(*tls.Conn); !ok { // HTTP/2 is only under TLS
		return ctx
	}
	return context.WithValue(ctx, ownKey{}, make(chan struct{}, 1))
}

// begin waits until r may run, and returns the function to call at its end. It returns nil if
// the client gave up before.
func (s *streams) begin(r *http.Request) (end func()) {
	if r.ProtoMajor != 2 {
		return func() {}
	}
	own, _ := r.Context().Value(ownKey{}).(chan struct{})
	select {
	case own <- struct{}{}:
		return func() { <-own }
	default:
	}
	select {
	case own <- struct{}{}:
		return func() { <-own }
	case s.spare <- struct{}{}:
		return func() { <-s.spare }
	case <-r.Context().Done():
		return nil
	}
}
