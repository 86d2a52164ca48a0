//go:build linux

package cluster

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Fault is what a link does to the connections through it.
type Fault int32

const (
	Forward Fault = iota
	// Hold forwards nothing, as a network does that loses all packets. After holdLimit it
	// resets the connections, as keepalives of a system would do.
	Hold
	// CutSome closes some connections after a request was forwarded, and before its response,
	// or before a request is forwarded.
	CutSome
)

const (
	holdLimit = 15 * time.Second
	// cutOneOf is the number of requests of which CutSome hits one.
	cutOneOf = 60
)

// Link is a listener on a port of this machine that forwards connections to an address.
// Its methods may be called concurrently.
type Link struct {
	Name     string
	listener net.Listener
	target   string
	fault    atomic.Int32
	cancels  *atomic.Int64 // CancelRequests of PostgreSQL's protocol seen, nil: not looked for
	mu       sync.Mutex
	rng      *rand.Rand // guarded by mu
	conns    map[*conn]bool
	spans    []*span // of all connections, ended ones too
	ended    sync.WaitGroup
}

// span is the time of a connection. closed is 0 while it is open.
type span struct{ opened, closed int64 }

// conn is one connection, from its client to the target.
type conn struct {
	client, target net.Conn
	opened         *span
	answered       chan struct{} // closed when the responses are no longer forwarded
}

// startLink starts a link to a port of this machine.
func startLink(name string, port int, seed uint64, cancels *atomic.Int64) (*Link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Link{
		Name: name, listener: listener, target: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), cancels: cancels,
		rng: rand.New(rand.NewPCG(seed, uint64(port))), conns: map[*conn]bool{},
	}
	l.ended.Go(l.accept)
	return l, nil
}

// Port returns the port of the listener.
func (l *Link) Port() int { return l.listener.Addr().(*net.TCPAddr).Port }

// Set sets the fault. Hold and Forward reset the connections that were held.
func (l *Link) Set(f Fault) {
	before := Fault(l.fault.Swap(int32(f)))
	if before == Hold {
		l.Cut()
	}
	if f == Hold {
		time.AfterFunc(holdLimit, func() {
			if Fault(l.fault.Load()) == Hold {
				l.Cut()
			}
		})
	}
}

// Cut closes all connections.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.close()
	}
}

// OpenIn reports whether a connection was open at any time from begin to end, in
// nanoseconds of Now.
func (l *Link) OpenIn(begin, end int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.spans {
		if s.opened <= end && (s.closed == 0 || s.closed >= begin) {
			return true
		}
	}
	return false
}

var started = time.Now()

// Now returns the time of all histories: nanoseconds since the start of this process, by
// the monotonic clock.
func Now() int64 { return int64(time.Since(started)) }

// close closes both sides with a reset, so that no more data reaches either.
func (c *conn) close() {
	reset(c.client)
	reset(c.target)
}

// reset closes a connection without sending what is left in its buffers.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close() // nothing is left to lose
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return // stop has closed the listener
		}
		l.ended.Go(func() { l.serve(client) })
	}
}

func (l *Link) serve(client net.Conn) {
	target, err := net.DialTimeout("tcp", l.target, 5*time.Second)
	if err != nil {
		reset(client) // as after a refused connection
		return
	}
	c := &conn{client, target, &span{opened: Now()}, make(chan struct{})}
	l.mu.Lock()
	l.conns[c] = true
	l.spans = append(l.spans, c.opened)
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.requests(c) })
	both.Go(func() { l.responses(c) })
	both.Wait()
	l.mu.Lock()
	delete(l.conns, c)
	c.opened.closed = Now()
	l.mu.Unlock()
}

// responses copies the responses of a connection until either side is closed.
func (l *Link) responses(c *conn) {
	defer close(c.answered)
	defer c.close()
	buf := make([]byte, 32<<10)
	for {
		n, err := c.target.Read(buf)
		if n > 0 {
			if !l.pass() {
				return
			}
			if _, err := c.client.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits while the link holds everything. It returns false for what arrived then,
// since the connection is reset.
func (l *Link) pass() bool {
	held := false
	for Fault(l.fault.Load()) == Hold {
		held = true
		time.Sleep(20 * time.Millisecond)
	}
	return !held
}

// requests copies the requests of a connection, and cuts the connection where CutSome
// says so.
func (l *Link) requests(c *conn) {
	defer c.close()
	buf := make([]byte, 32<<10)
	for first := true; ; first = false {
		n, err := c.client.Read(buf)
		if n > 0 {
			if first && l.cancels != nil && isCancelRequest(buf[:n]) {
				l.cancels.Add(1)
			}
			if !l.pass() {
				return
			}
			cut := l.chooseCut()
			if cut == cutBefore {
				return
			}
			if cut == cutAfter {
				l.cutAfter(c, buf[:n])
				return
			}
			if _, err := c.target.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

const (
	cutNever = iota
	cutBefore
	cutAfter
)

func (l *Link) chooseCut() int {
	if Fault(l.fault.Load()) != CutSome {
		return cutNever
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.rng.IntN(2 * cutOneOf) {
	case 0:
		return cutBefore
	case 1:
		return cutAfter
	}
	return cutNever
}

// cutAfter closes the client's side and then delivers the request, whose response has no
// reader. It waits for the response, because a reset could overtake the request.
func (l *Link) cutAfter(c *conn, request []byte) {
	reset(c.client)
	if _, err := c.target.Write(request); err != nil {
		return
	}
	select {
	case <-c.answered:
	case <-time.After(time.Second):
	}
}

// isCancelRequest reports whether a connection begins with a CancelRequest: its length,
// 16, and its code, 80877102.
func isCancelRequest(b []byte) bool {
	return len(b) >= 8 && binary.BigEndian.Uint32(b) == 16 && binary.BigEndian.Uint32(b[4:]) == 80877102
}

// stop closes the listener and all connections, and waits for their end.
func (l *Link) stop() error {
	l.fault.Store(int32(Forward))
	err := l.listener.Close()
	l.Cut()
	l.ended.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
