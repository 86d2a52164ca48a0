package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/store"
)

const (
	defaultConns = 32
	// acquireWait limits how long a call waits for a connection while all are in use.
	acquireWait = 10 * time.Second
	// idleTime is how long an unused connection is kept.
	idleTime = time.Minute
	// probeAge is the age at which an idle connection is tried before it is used.
	probeAge = time.Second
)

var errPoolFull = errors.New("all connections of the pool are in use")

// Pool holds connections to one server.
type Pool struct {
	connect func(ctx context.Context) (*Conn, error)
	now     func() time.Time
	slots   chan struct{} // one element for each connection in use

	mu sync.Mutex
	// +checklocks:mu
	idle []*Conn // the one used last is the last
	// +checklocks:mu
	busy map[*Conn]struct{}
	// +checklocks:mu
	resets uint64
	// +checklocks:mu
	closed bool
}

// NewPool returns a pool of up to size connections, which connect makes; 0 means 32. The clock
// now says how old they are.
func NewPool(size int, now func() time.Time, connect func(ctx context.Context) (*Conn, error)) *Pool {
	if size <= 0 {
		size = defaultConns
	}
	return &Pool{connect: connect, now: now, slots: make(chan struct{}, size), busy: map[*Conn]struct{}{}}
}

// Acquire returns a connection. Give it back with release. If it fails, nothing was sent.
func (p *Pool) Acquire(ctx context.Context) (*Conn, error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	for {
		c, err := p.next()
		if err != nil {
			<-p.slots
			return nil, err
		}
		if c == nil {
			break
		}
		if p.now().Sub(c.lastUse) < probeAge {
			return c, nil
		}
		if _, err := c.RoundTrip(ctx, nil); err == nil {
			return c, nil
		}
		p.forget(c)
		// With an ended ctx each of the other connections would wait for answerDelay.
		if err := ctx.Err(); err != nil {
			<-p.slots
			return nil, err
		}
	}
	p.mu.Lock()
	resets := p.resets
	p.mu.Unlock()
	c, err := p.connect(ctx)
	if err != nil {
		<-p.slots
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.resets != resets {
		c.Close()
		<-p.slots
		if p.closed {
			return nil, store.ErrClosed
		}
		return nil, fmt.Errorf("%w: the primary changed", store.ErrUnavailable)
	}
	p.busy[c] = struct{}{}
	return c, nil
}

// wait takes a slot.
func (p *Pool) wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case p.slots <- struct{}{}:
		return nil
	default:
	}
	t := time.NewTimer(acquireWait)
	defer t.Stop()
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, errPoolFull)
	}
}

// next returns the idle connection that was used last, nil if there is none.
func (p *Pool) next() (*Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, store.ErrClosed
	}
	n := len(p.idle)
	if n == 0 {
		return nil, nil
	}
	c := p.idle[n-1]
	p.idle = p.idle[:n-1]
	p.busy[c] = struct{}{}
	return c, nil
}

// forget closes a connection in use, whose slot the caller keeps.
func (p *Pool) forget(c *Conn) {
	c.Close()
	p.mu.Lock()
	delete(p.busy, c)
	p.mu.Unlock()
}

// Release gives a connection back. It closes one that failed or that is in a transaction.
func (p *Pool) Release(c *Conn) {
	p.mu.Lock()
	_, ours := p.busy[c]
	delete(p.busy, c)
	if ours && !c.Broken && c.tx == 'I' && !p.closed {
		c.lastUse = p.now()
		p.idle = append(p.idle, c)
		c = nil
	}
	p.mu.Unlock()
	if c != nil {
		c.Close()
	}
	<-p.slots
}

// Reset closes all connections but those to the server keep. A call that uses one of them
// fails as after a lost connection.
func (p *Pool) Reset(keep string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resets++
	kept := p.idle[:0]
	for _, c := range p.idle {
		if keep != "" && c.Server == keep {
			kept = append(kept, c)
			continue
		}
		c.Close()
	}
	clear(p.idle[len(kept):])
	p.idle = kept
	for c := range p.busy {
		if keep == "" || c.Server != keep {
			c.Abandon()
			delete(p.busy, c)
		}
	}
}

// Trim closes connections that were not used for idleTime.
func (p *Pool) Trim() {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.idle) && now.Sub(p.idle[n].lastUse) > idleTime {
		p.idle[n].Close()
		n++
	}
	p.idle = append(p.idle[:0], p.idle[n:]...)
}

// Close closes all connections and refuses new ones.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Reset("")
}

// Closed reports whether Close was called.
func (p *Pool) Closed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// Counts returns the numbers of connections.
func (p *Pool) Counts() (open, idle, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle) + len(p.busy), len(p.idle), cap(p.slots)
}
