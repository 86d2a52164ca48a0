package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// hung returns a connection to a server that reads and does not answer. It calls received when the server
// has a flight.
func hung(t *testing.T, trips *atomic.Uint64, received func()) *Conn {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	go func() {
		b := make([]byte, 1024)
		if _, err := server.Read(b); err == nil {
			received()
		}
		_, _ = io.Copy(io.Discard, server)
	}()
	return &Conn{net: client, front: pgproto3.NewFrontend(client, client), tx: 'I', trips: trips}
}

// TestAcquireFromHungServer ends the ctx of a call while it tries the first of several idle connections.
// It does not wait for an answer over the others.
func TestAcquireFromHungServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	now, trips := time.Now(), new(atomic.Uint64)
	p := NewPool(4, func() time.Time { return now }, func(context.Context) (*Conn, error) { return hung(t, trips, cancel), nil })
	var idle []*Conn
	for range 4 {
		c, err := p.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
	}
	for _, c := range idle {
		p.Release(c)
	}
	now = now.Add(2 * probeAge)
	if _, err := p.Acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire after its ctx ended: %v", err)
	}
	if n := trips.Load(); n != 1 {
		t.Errorf("Acquire waited for %d answers, want 1", n)
	}
	if n := len(p.slots); n != 0 {
		t.Errorf("%d connections are in use", n)
	}
}

// TestRollbackOnHungServer ends a transaction whose ctx has ended. The server does not answer.
func TestRollbackOnHungServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := hung(t, new(atomic.Uint64), func() {})
	c.tx = 'T'
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Rollback(ctx)
	}()
	select {
	case <-done:
		if !c.Broken {
			t.Error("a connection in a transaction is used again")
		}
	case <-time.After(time.Minute):
		t.Error("Rollback waits for an answer after its ctx ended")
		c.Abandon()
		<-done
	}
}
