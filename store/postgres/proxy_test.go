package postgres

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// action is what a proxy does with bytes of the client.
type action int

const (
	pass action = iota
	drop        // end the connection; the server does not get the bytes
	mute        // give the bytes to the server, and end the connection when it answers
)

// proxy forwards connections to a server. It can end them before or after the server gets
// a flight.
type proxy struct {
	url     string
	cancels atomic.Int64 // connections that asked to cancel a statement
	pooler  atomic.Bool  // the server's process has another number in its greeting, as that of a pooler

	mu     sync.Mutex
	target string
	rule   func(flight []byte) action
	conns  []net.Conn
	frozen *atomic.Bool // of the connections since the last change of target
}

// newProxy returns a proxy for the server of a URL.
func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: u.Host, frozen: new(atomic.Bool)}
	u.Host = l.Addr().String()
	p.url = u.String()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.forward(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		running.Wait()
	})
	return p
}

// once sets the action of the next flight that uses the statement.
func (p *proxy) once(statement string, f action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = func(flight []byte) action {
		if !bytes.Contains(flight, append([]byte("tr_"+statement), 0)) {
			return pass
		}
		p.rule = nil
		return f
	}
}

// actionFor returns the action of a flight.
func (p *proxy) actionFor(flight []byte) action {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rule == nil {
		return pass
	}
	return p.rule(flight)
}

// partition silences all connections without an end of them, and forwards new ones to the
// server of another URL.
func (p *proxy) partition(t *testing.T, server string) {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen.Store(true)
	p.target, p.frozen = u.Host, new(atomic.Bool)
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
}

const cancelRequest = 80877102

func (p *proxy) forward(client net.Conn) {
	p.mu.Lock()
	target, frozen := p.target, p.frozen
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	defer client.Close()
	defer server.Close()
	var muted atomic.Bool
	var answers sync.WaitGroup
	answers.Go(func() {
		buf := make([]byte, 1<<16)
		for {
			n, err := server.Read(buf)
			if err != nil || muted.Load() {
				break
			}
			if frozen.Load() {
				continue
			}
			if i := bytes.Index(buf[:n], []byte("K\x00\x00\x00\x0c")); i >= 0 && p.pooler.Load() {
				buf[i+8] ^= 1
			}
			if _, err := client.Write(buf[:n]); err != nil {
				break
			}
		}
		_ = client.Close()
	})
	buf := make([]byte, 1<<20)
	for {
		n, err := client.Read(buf)
		if err != nil {
			break
		}
		if n == 16 && binary.BigEndian.Uint32(buf[4:]) == cancelRequest {
			p.cancels.Add(1)
		}
		if frozen.Load() {
			continue
		}
		f := p.actionFor(buf[:n])
		if f == drop {
			break
		}
		muted.Store(f == mute)
		if _, err := server.Write(buf[:n]); err != nil {
			break
		}
		if f == mute {
			answers.Wait()
		}
	}
	_ = server.Close()
	answers.Wait()
}
