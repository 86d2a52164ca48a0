package wire

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// smallServer returns a pool of 8 connections to a server that has one for each element of free. It counts the attempts.
func smallServer(free chan struct{}, attempts *int) *Pool {
	return NewPool(8, time.Now, func(context.Context) (*Conn, error) {
		*attempts++
		select {
		case <-free:
			client, _ := net.Pipe()
			return &Conn{net: client, tx: 'I'}, nil
		default:
			return nil, &pgconn.PgError{Code: noneLeft}
		}
	})
}

func free(n int) chan struct{} {
	c := make(chan struct{}, 8)
	for range n {
		c <- struct{}{}
	}
	return c
}

// acquire acquires a connection in the background. The channel gets how long that took.
func (p *Pool) acquire(t *testing.T, hold time.Duration) chan time.Duration {
	took, begin := make(chan time.Duration, 1), time.Now()
	go func() {
		c, err := p.Acquire(t.Context())
		if err != nil {
			t.Error(err)
		} else {
			time.AfterFunc(hold, func() { p.Release(c) })
		}
		took <- time.Since(begin)
	}()
	return took
}

// TestAcquireWaits lets two calls have the two connections of a server, and two others wait for them. No call but
// the first that waits asks the server for another one.
func TestAcquireWaits(t *testing.T) {
	for name, held := range map[string][2]time.Duration{
		"one after the other": {300 * time.Millisecond, 500 * time.Millisecond},
		"both at once":        {300 * time.Millisecond, 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				p := smallServer(free(2), &attempts)
				var conns []*Conn
				for range held {
					c, err := p.Acquire(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					conns = append(conns, c)
				}
				var took []chan time.Duration
				for range 2 {
					took = append(took, p.acquire(t, time.Hour))
					synctest.Wait()
				}
				time.Sleep(held[0])
				p.Release(conns[0])
				if held[1] > held[0] {
					time.Sleep(held[1] - held[0])
				}
				p.Release(conns[1])
				got := [2]time.Duration{<-took[0], <-took[1]}
				if got[0] > got[1] {
					got[0], got[1] = got[1], got[0]
				}
				if got != held {
					t.Errorf("the calls waited for %v, want %v", got, held)
				}
				if attempts != 3 {
					t.Errorf("%d attempts to connect, want 3", attempts)
				}
				time.Sleep(2 * time.Hour)
				if n := len(p.slots); n != 0 {
					t.Errorf("%d connections are in use", n)
				}
			})
		})
	}
}

// TestAcquireAsksAgain waits beside a call that keeps its connection. The server has another one later, or never.
func TestAcquireAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		server := free(1)
		p := smallServer(server, &attempts)
		<-p.acquire(t, time.Hour)
		took := p.acquire(t, time.Hour)
		time.AfterFunc(2500*time.Millisecond, func() { server <- struct{}{} })
		if got, want := <-took, 3*time.Second; got != want {
			t.Errorf("the connection that the server has after 2.5 s came after %v, want %v", got, want)
		}
		begin := time.Now()
		if _, err := p.Acquire(t.Context()); CodeOf(err) != noneLeft || time.Since(begin) < acquireWait || time.Since(begin) > acquireWait+2*refusedPause {
			t.Errorf("got %v after %v, want SQLSTATE %s after %v", err, time.Since(begin), noneLeft, acquireWait)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := p.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the ctx", err)
		}
		time.Sleep(time.Hour)
	})
}

// TestAcquireWithoutOthers gets the refusal at once: no call of this pool can release a connection.
func TestAcquireWithoutOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		p := smallServer(free(0), &attempts)
		for want := 1; want < 3; want++ {
			begin := time.Now()
			if _, err := p.Acquire(t.Context()); CodeOf(err) != noneLeft || time.Since(begin) != 0 || attempts != want {
				t.Errorf("got %v after %v and %d attempts, want SQLSTATE %s at once", err, time.Since(begin), attempts, noneLeft)
			}
		}
	})
}

// TestOneWakeForTwo releases two connections while two calls are about to wait: one element is for both. The first
// call leaves one for the second.
func TestOneWakeForTwo(t *testing.T) {
	attempts := 0
	p := smallServer(free(2), &attempts)
	var conns []*Conn
	for range 2 {
		c, err := p.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	for _, c := range conns {
		p.Release(c)
	}
	for range conns {
		if err := p.waitFreed(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(p.freed) != 0 {
			t.Fatal("an element is left")
		}
		if _, err := p.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := len(p.idle); len(p.freed) != want { // +checklocksignore: one goroutine
			t.Errorf("%d calls are woken, want %d", len(p.freed), want)
		}
	}
}
