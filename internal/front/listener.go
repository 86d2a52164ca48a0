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

// listener bounds the connections that are open. For one too many it closes those
// that have waited longest for a request to come, or to come whole; if all are at
// work, or the address has its share, it closes what comes. All methods may be
// called concurrently.
type listener struct {
	net.Listener
	most, mostPerAddr int
	now               func() time.Time

	mu sync.Mutex
	// +checklocks:mu
	open map[*conn]struct{}
	// of addresses that are not loopback; +checklocks:mu
	perAddr map[netip.Addr]int
}

// limit returns l, bounded. Its state has to be the ConnState of the
// http.Server.
func limit(l net.Listener, most, mostPerAddr int, now func() time.Time) *listener {
	return &listener{
		Listener: l, most: most, mostPerAddr: mostPerAddr, now: now,
		open: make(map[*conn]struct{}), perAddr: make(map[netip.Addr]int),
	}
}

// conn is a connection of a listener.
type conn struct {
	patient
	l    *listener
	addr netip.Addr // invalid if it is not counted
	// since when it waits for a request, in nanoseconds; 0 while it has one
	waiting atomic.Int64
	used    atomic.Bool // it had a request
	once    sync.Once
	err     error
}

// Accept waits for a connection that is within the bounds.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{patient: patientConn(inner), l: l, addr: counted(inner.RemoteAddr())}
		c.waiting.Store(l.now().UnixNano())
		late, ok := l.admit(c)
		for _, idle := range late {
			_ = idle.Close() // the client sees it; nobody else cares
		}
		if ok {
			return c, nil
		}
		_ = inner.Close() // never used
	}
}

// counted returns what connections of an address are counted under: IPv6
// networks as a whole, since one machine has all of them, and loopback never.
func counted(a net.Addr) netip.Addr {
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

// admit counts c in, unless its address has its share, and returns the
// connections that have to make room.
func (l *listener) admit(c *conn) (late []*conn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.addr.IsValid() && l.perAddr[c.addr] >= l.mostPerAddr {
		return nil, false
	}
	if len(l.open) >= l.most {
		if late = l.idleLocked(); len(late) == 0 {
			return nil, false
		}
	}
	if c.addr.IsValid() {
		l.perAddr[c.addr]++
	}
	l.open[c] = struct{}{}
	return late, true
}

// idleLocked returns the connections that wait for longest. It is more than one
// where there are many, since looking through all of them has its price.
func (l *listener) idleLocked() []*conn {
	type wait struct {
		c     *conn
		since int64
	}
	var waits []wait
	for c := range l.open {
		if since := c.waiting.Load(); since != 0 {
			waits = append(waits, wait{c, since})
		}
	}
	slices.SortFunc(waits, func(a, b wait) int { return cmp.Compare(a.since, b.since) })
	n := min(len(waits), max(1, l.most/128))
	late := make([]*conn, n)
	for i, w := range waits[:n] {
		late[i] = w.c
	}
	return late
}

// state takes note of what an http.Server says of its connections.
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
		c.waiting.Store(l.now().UnixNano())
	case http.StateActive, http.StateHijacked, http.StateClosed:
		c.waiting.Store(0)
		c.used.Store(true)
	}
}

// closeUnused closes the connections that never had a request. An http.Server
// that shuts down would wait for them for seconds.
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

// connections returns how many are open.
func (l *listener) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// Close closes the connection and counts it out.
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
