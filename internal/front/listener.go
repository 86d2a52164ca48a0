package front

import (
	"cmp"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// listener limits the open connections. For a connection above the limit, it closes
// those that have waited longest for a request or the rest of one. If all connections
// are active, or the address is at its limit, it closes the new connection. All
// methods are safe for concurrent use.
type listener struct {
	net.Listener
	maxPerAddr int
	now        func() time.Time

	mu      sync.Mutex
	maxOpen int // +checklocks:mu
	// +checklocks:mu
	open map[*conn]struct{}
	// connections per addrKey, without loopback
	// +checklocks:mu
	perAddr map[netip.Addr]int
}

// newListener returns a listener on l. Set its state method as ConnState of the
// http.Server.
func newListener(l net.Listener, maxOpen, maxPerAddr int, now func() time.Time) *listener {
	return &listener{
		Listener: l, maxOpen: maxOpen, maxPerAddr: maxPerAddr, now: now,
		open: make(map[*conn]struct{}), perAddr: make(map[netip.Addr]int),
	}
}

// conn is a connection of a listener.
type conn struct {
	net.Conn
	l    *listener
	addr netip.Addr // invalid if the connection is not counted
	// time since which it waits for a request, in Unix nanoseconds; 0 during a request
	idleSince atomic.Int64
	used      atomic.Bool // had a request
	once      sync.Once
	err       error
}

// Accept waits for a connection within the limits.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: inner, l: l, addr: addrKey(inner.RemoteAddr())}
		c.idleSince.Store(l.now().UnixNano())
		evicted, ok := l.admit(c)
		for _, idle := range evicted {
			_ = idle.Close() // only the client is affected
		}
		if ok {
			return c, nil
		}
		_ = inner.Close() // unused
	}
}

// addrKey returns the key under which connections of an address are counted: the
// address, or the /64 network of an IPv6 address, because one machine has a whole
// network. It is invalid for loopback, which is not counted.
func addrKey(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() {
		return netip.Addr{}
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	if addr.Is6() {
		network, err := addr.Prefix(64)
		if err != nil {
			return netip.Addr{}
		}
		return network.Addr()
	}
	return addr
}

// admit registers c, unless a limit forbids it, and returns the connections to close.
func (l *listener) admit(c *conn) (evicted []*conn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.addr.IsValid() && l.perAddr[c.addr] >= l.maxPerAddr {
		return nil, false
	}
	if excess := len(l.open) + 1 - l.maxOpen; excess > 0 {
		if evicted = l.longestIdleLocked(excess); len(evicted) < excess {
			return evicted, false
		}
	}
	if c.addr.IsValid() {
		l.perAddr[c.addr]++
	}
	l.open[c] = struct{}{}
	return evicted, true
}

// limit changes the limit of open connections, and closes those above it that are idle.
func (l *listener) limit(maxOpen int) {
	l.mu.Lock()
	l.maxOpen = maxOpen
	var evicted []*conn
	if excess := len(l.open) - maxOpen; excess > 0 {
		evicted = l.longestIdleLocked(excess)
	}
	l.mu.Unlock()
	for _, idle := range evicted {
		_ = idle.Close() // only the client is affected
	}
}

// longestIdleLocked returns the n connections that have been idle for longest, fewer if not as many
// are idle. If many are open it returns more, because each call examines all of them.
// +checklocks:l.mu
func (l *listener) longestIdleLocked(n int) []*conn {
	type wait struct {
		c     *conn
		since int64
	}
	var waits []wait
	for c := range l.open {
		if since := c.idleSince.Load(); since != 0 {
			waits = append(waits, wait{c, since})
		}
	}
	slices.SortFunc(waits, func(a, b wait) int { return cmp.Compare(a.since, b.since) })
	n = min(len(waits), max(n, l.maxOpen/128))
	evicted := make([]*conn, n)
	for i, w := range waits[:n] {
		evicted[i] = w.c
	}
	return evicted
}

// state records a change of a connection's state. http.Server calls it.
func (l *listener) state(nc net.Conn, state http.ConnState) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	switch state {
	case http.StateNew, http.StateIdle:
		c.idleSince.Store(l.now().UnixNano())
	case http.StateActive, http.StateHijacked, http.StateClosed:
		c.idleSince.Store(0)
		c.used.Store(true)
	}
}

// closeUnused closes the connections that never had a request. Shutdown of http.Server
// would wait seconds for them.
func (l *listener) closeUnused() {
	l.mu.Lock()
	var unused []*conn
	for c := range l.open {
		if !c.used.Load() {
			unused = append(unused, c)
		}
	}
	l.mu.Unlock()
	for _, c := range unused {
		_ = c.Close() // nothing was ever sent on it
	}
}

// connections returns the number of open connections.
func (l *listener) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// Close closes the connection and removes it from the listener.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.err = c.Conn.Close()
		c.l.mu.Lock()
		defer c.l.mu.Unlock()
		delete(c.l.open, c)
		if c.addr.IsValid() {
			if c.l.perAddr[c.addr]--; c.l.perAddr[c.addr] == 0 {
				delete(c.l.perAddr, c.addr)
			}
		}
	})
	return c.err
}
