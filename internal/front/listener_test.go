package front

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"
)

// connQueue is a listener that returns the connections of a slice.
type connQueue struct{ next []*fakeConn }

func (l *connQueue) Accept() (net.Conn, error) {
	if len(l.next) == 0 {
		return nil, net.ErrClosed
	}
	c := l.next[0]
	l.next = l.next[1:]
	return c, nil
}

func (*connQueue) Close() error   { return nil }
func (*connQueue) Addr() net.Addr { return &net.TCPAddr{} }

// fakeConn is a connection that has a peer and counts calls of Close.
type fakeConn struct {
	net.Conn
	peer   string
	closed int
}

func (e *fakeConn) RemoteAddr() net.Addr {
	a, err := net.ResolveTCPAddr("tcp", e.peer)
	if err != nil {
		panic(err)
	}
	return a
}

func (e *fakeConn) Close() error {
	e.closed++
	return nil
}

// testListener is a listener on a connQueue, with a clock that advances at each call.
type testListener struct {
	*listener
	connQueue
	time time.Time
}

func newTestListener(maxOpen, maxPerAddr int) *testListener {
	r := &testListener{time: time.Unix(1, 0)}
	r.listener = newListener(&r.connQueue, maxOpen, maxPerAddr, func() time.Time {
		r.time = r.time.Add(time.Second)
		return r.time
	})
	return r
}

// connect accepts a connection from peer. It returns nil if the listener closed it.
func (r *testListener) connect(t *testing.T, peer string) (net.Conn, *fakeConn) {
	t.Helper()
	e := &fakeConn{peer: peer}
	r.next = append(r.next, e)
	c, err := r.listener.Accept()
	if errors.Is(err, net.ErrClosed) && e.closed == 1 {
		return nil, e
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, e
}

func TestCloseLongestIdle(t *testing.T) {
	r := newTestListener(3, 100)
	a, aEnd := r.connect(t, "127.0.0.1:1")
	b, bEnd := r.connect(t, "127.0.0.1:2")
	c, cEnd := r.connect(t, "127.0.0.1:3")
	r.state(b, http.StateActive)
	r.state(a, http.StateActive)
	r.state(a, http.StateIdle) // after c, which never sent anything
	d, dEnd := r.connect(t, "127.0.0.1:4")
	if d == nil || cEnd.closed != 1 || aEnd.closed+bEnd.closed != 0 {
		t.Errorf("the fourth of 3: accepted %v; closed first %d, active %d, unused %d; want only the unused one closed", d != nil, aEnd.closed,
			bEnd.closed, cEnd.closed)
	}
	if got := r.connections(); got != 3 {
		t.Errorf("%d open, want 3", got)
	}
	r.state(a, http.StateActive)
	r.state(d, http.StateActive)
	if e, eEnd := r.connect(t, "127.0.0.1:5"); e != nil || eEnd.closed != 1 {
		t.Errorf("with 3 active, a fourth is accepted: %v", e != nil)
	}
	for _, one := range []net.Conn{a, b, c, d} {
		if err := errors.Join(one.Close(), one.Close()); err != nil {
			t.Error(err)
		}
	}
	for i, e := range []*fakeConn{aEnd, bEnd, cEnd, dEnd} {
		if e.closed != 1 {
			t.Errorf("connection %d was closed %d times, want once", i, e.closed)
		}
	}
	if got := r.connections(); got != 0 {
		t.Errorf("%d open at the end", got)
	}
}

// TestLimitConnections lowers the limit while connections are open: idle ones are closed, those with a
// request end first, and until then no connection is accepted.
func TestLimitConnections(t *testing.T) {
	r := newTestListener(5, 100)
	var open []net.Conn
	var ends []*fakeConn
	for range 5 {
		c, e := r.connect(t, "127.0.0.1:1")
		open, ends = append(open, c), append(ends, e)
	}
	for _, c := range open[:3] {
		r.state(c, http.StateActive)
	}
	r.limit(2)
	if got := r.connections(); got != 3 || ends[3].closed+ends[4].closed != 2 {
		t.Errorf("%d open with a limit of 2, idle ones closed %d times; want the 3 with a request", got, ends[3].closed+ends[4].closed)
	}
	r.state(open[0], http.StateIdle)
	if c, _ := r.connect(t, "127.0.0.1:2"); c != nil || ends[0].closed != 1 {
		t.Errorf("with 3 of 2 open, a fourth is accepted: %v; the idle one is closed %d times", c != nil, ends[0].closed)
	}
	r.state(open[1], http.StateIdle)
	if c, _ := r.connect(t, "127.0.0.1:3"); c == nil || ends[1].closed != 1 || r.connections() != 2 {
		t.Errorf("with 2 of 2 open, a third in place of the idle one: accepted %v, %d open", c != nil, r.connections())
	}
	r.limit(3)
	if c, _ := r.connect(t, "127.0.0.1:4"); c == nil || r.connections() != 3 {
		t.Errorf("with 2 of 3 open, a third: accepted %v, %d open", c != nil, r.connections())
	}
}

// TestDefaultLimits connects from one address to a server whose options have no limits.
func TestDefaultLimits(t *testing.T) {
	l := new(connQueue)
	for range 65 {
		l.next = append(l.next, &fakeConn{peer: "10.0.0.1:1"})
	}
	s := New(l, http.NotFoundHandler(), Options{})
	for len(l.next) > 0 {
		if _, err := s.listener.Accept(); err != nil && len(l.next) > 0 {
			t.Fatal(err)
		}
	}
	if got := s.Connections(); got != 64 {
		t.Errorf("%d of 65 connections are open, want 64", got)
	}
}

func TestConnectionsPerAddr(t *testing.T) {
	for _, c := range []struct {
		name  string
		peers []string
		in    []bool
	}{
		{"loopback has no limit", []string{"127.0.0.1:1", "127.0.0.9:2", "127.0.0.1:3", "[::1]:4"}, []bool{true, true, true, true}},
		{"an IPv4 address", []string{"10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3", "10.0.0.2:1"}, []bool{true, true, false, true}},
		{"IPv4 mapped", []string{"10.0.0.1:1", "[::ffff:10.0.0.1]:2", "10.0.0.1:3"}, []bool{true, true, false}},
		{"an IPv6 network", []string{"[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::ffff:3]:1", "[2001:db8:0:1::1]:1"}, []bool{true, true, false, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newTestListener(100, 2)
			var open []net.Conn
			for i, peer := range c.peers {
				conn, _ := r.connect(t, peer)
				if (conn != nil) != c.in[i] {
					t.Errorf("connection %d from %s: accepted %v, want %v", i, peer, conn != nil, c.in[i])
				}
				if conn != nil {
					open = append(open, conn)
				}
			}
			for _, conn := range open {
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			}
			if len(r.perAddr) != 0 { // +checklocksignore: nothing runs concurrently
				t.Errorf("%v counted after all are closed", r.perAddr) // +checklocksignore: nothing runs concurrently
			}
			for i := range 2 {
				if conn, _ := r.connect(t, c.peers[0]); conn == nil {
					t.Errorf("connection %d after all are closed is refused", i)
				}
			}
		})
	}
}

// TestManyIdle checks that one of many idle connections is not closed alone.
func TestManyIdle(t *testing.T) {
	r := newTestListener(1280, 1)
	var ends []*fakeConn
	for i := range 1281 {
		_, e := r.connect(t, fmt.Sprintf("127.0.0.1:%d", i+1))
		ends = append(ends, e)
	}
	for i, e := range ends {
		if want := i < 10; (e.closed == 1) != want {
			t.Errorf("connection %d was closed %d times, want closed: %v", i, e.closed, want)
		}
	}
	open := r.connections()
	if r.limit(2 * open); r.connections() != open {
		t.Errorf("%d of %d connections are open after the limit was raised", r.connections(), open)
	}
}

func TestCloseUnused(t *testing.T) {
	r := newTestListener(10, 10)
	used, usedEnd := r.connect(t, "127.0.0.1:1")
	_, unusedEnd := r.connect(t, "127.0.0.1:2")
	r.state(used, http.StateActive)
	r.state(used, http.StateIdle)
	r.closeUnused()
	if usedEnd.closed != 0 || unusedEnd.closed != 1 {
		t.Errorf("the used connection was closed %d times, the unused one %d times; want 0 and 1", usedEnd.closed, unusedEnd.closed)
	}
}
