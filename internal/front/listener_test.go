package front

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"
)

// line is a listener whose connections come from wherever a test says.
type line struct{ next []*end }

func (l *line) Accept() (net.Conn, error) {
	if len(l.next) == 0 {
		return nil, net.ErrClosed
	}
	c := l.next[0]
	l.next = l.next[1:]
	return c, nil
}

func (*line) Close() error   { return nil }
func (*line) Addr() net.Addr { return &net.TCPAddr{} }

// end is a connection that only knows its peer and how often it was closed.
type end struct {
	net.Conn
	peer   string
	closed int
}

func (e *end) RemoteAddr() net.Addr {
	a, err := net.ResolveTCPAddr("tcp", e.peer)
	if err != nil {
		panic(err)
	}
	return a
}

func (e *end) Close() error {
	e.closed++
	return nil
}

// room is a listener with a line to it and a clock that moves with each step.
type room struct {
	*listener
	line
	time time.Time
}

func newRoom(most, mostPerAddr int) *room {
	r := &room{time: time.Unix(1, 0)}
	r.listener = limit(&r.line, most, mostPerAddr, func() time.Time {
		r.time = r.time.Add(time.Second)
		return r.time
	})
	return r
}

// enter lets a connection in, and returns nil if it was turned away.
func (r *room) enter(t *testing.T, peer string) (net.Conn, *end) {
	t.Helper()
	e := &end{peer: peer}
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

func TestLongestIdleIsClosedFirst(t *testing.T) {
	r := newRoom(3, 100)
	a, aEnd := r.enter(t, "127.0.0.1:1")
	b, bEnd := r.enter(t, "127.0.0.1:2")
	c, cEnd := r.enter(t, "127.0.0.1:3")
	r.state(b, http.StateActive)
	r.state(a, http.StateActive)
	r.state(a, http.StateIdle) // after c, which never sent anything
	d, dEnd := r.enter(t, "127.0.0.1:4")
	if d == nil || cEnd.closed != 1 || aEnd.closed+bEnd.closed != 0 {
		t.Errorf("the fourth of 3: in %v; closed first %d, active %d, silent %d; want only the silent one", d != nil, aEnd.closed, bEnd.closed, cEnd.closed)
	}
	if got := r.connections(); got != 3 {
		t.Errorf("%d are open, want 3", got)
	}
	r.state(a, http.StateActive)
	r.state(d, http.StateActive)
	if e, eEnd := r.enter(t, "127.0.0.1:5"); e != nil || eEnd.closed != 1 {
		t.Errorf("with 3 at work, a fourth is in: %v", e != nil)
	}
	for _, one := range []net.Conn{a, b, c, d} {
		if err := errors.Join(one.Close(), one.Close()); err != nil {
			t.Error(err)
		}
	}
	for i, e := range []*end{aEnd, bEnd, cEnd, dEnd} {
		if e.closed != 1 {
			t.Errorf("connection %d was closed %d times, want once", i, e.closed)
		}
	}
	if got := r.connections(); got != 0 {
		t.Errorf("%d are open at the end", got)
	}
}

func TestShareOfAnAddress(t *testing.T) {
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
			r := newRoom(100, 2)
			var open []net.Conn
			for i, peer := range c.peers {
				conn, _ := r.enter(t, peer)
				if (conn != nil) != c.in[i] {
					t.Errorf("connection %d, from %s: in %v, want %v", i, peer, conn != nil, c.in[i])
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
			if len(r.perAddr) != 0 {
				t.Errorf("after all are closed, %v are counted", r.perAddr)
			}
			for i := range 2 {
				if conn, _ := r.enter(t, c.peers[0]); conn == nil {
					t.Errorf("connection %d after all are closed is refused", i)
				}
			}
		})
	}
}

// TestManyIdle closes a share of the many at once.
func TestManyIdle(t *testing.T) {
	r := newRoom(1280, 1)
	var ends []*end
	for i := range 1281 {
		_, e := r.enter(t, fmt.Sprintf("127.0.0.1:%d", i+1))
		ends = append(ends, e)
	}
	for i, e := range ends {
		if want := i < 10; (e.closed == 1) != want {
			t.Errorf("connection %d was closed %d times, want closed: %v", i, e.closed, want)
		}
	}
}

func TestCloseUnused(t *testing.T) {
	r := newRoom(10, 10)
	used, usedEnd := r.enter(t, "127.0.0.1:1")
	_, unusedEnd := r.enter(t, "127.0.0.1:2")
	r.state(used, http.StateActive)
	r.state(used, http.StateIdle)
	r.closeUnused()
	if usedEnd.closed != 0 || unusedEnd.closed != 1 {
		t.Errorf("the used one was closed %d times, the unused one %d times; want 0 and 1", usedEnd.closed, unusedEnd.closed)
	}
}
