package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// refusedPause is how long no further connection is made after the server had none left.
	refusedPause = time.Second
)

// noneLeft is the SQLSTATE of a connection above a limit of the server, the database or the user.
const noneLeft = "53300"

// NoneLeft reports whether err refuses a connection above a limit of the server, the database or the user.
func NoneLeft(err error) bool { return CodeOf(err) == noneLeft }

var errPoolFull = errors.New("all connections of the pool are in use")

// Pool holds connections to one server.
type Pool struct {
	connect func(ctx context.Context) (*Conn, error)
	now     func() time.Time
	slots   chan struct{} // one element for each call of Acquire that waits for a connection or has it
	freed   chan struct{} // has an element if a connection was released, or others are idle

	mu sync.Mutex
	// +checklocks:mu
	idle []*Conn // the one used last is the last
	// +checklocks:mu
	busy map[*Conn]struct{}
	// +checklocks:mu
	resets uint64
	// +checklocks:mu
	closed bool
	// +checklocks:mu
	refusal error // of the last connection that the server had not left
	// +checklocks:mu
	refused time.Time // when it was refused
}

// NewPool returns a pool of up to size connections, which connect makes; 0 means 32. The clock
// now says how old they are.
func NewPool(size int, now func() time.Time, connect func(ctx context.Context) (*Conn, error)) *Pool {
	if size <= 0 {
		size = defaultConns
	}
	return &Pool{connect: connect, now: now, slots: make(chan struct{}, size), freed: make(chan struct{}, 1), busy: map[*Conn]struct{}{}}
}

// Acquire returns a connection. Give it back with release. If it fails, nothing was sent.
func (p *Pool) Acquire(ctx context.Context) (*Conn, error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	c, err := p.take(ctx)
	if err != nil {
		<-p.slots
	}
	return c, err
}

// take returns an idle connection or a new one. If the server has none left for the pool, take
// waits for another one of the pool.
func (p *Pool) take(ctx context.Context) (*Conn, error) {
	var limit time.Time
	for {
		c, err := p.unused(ctx)
		if c != nil || err != nil {
			return c, err
		}
		if err = p.refusedNow(); err == nil {
			c, err = p.open(ctx)
		}
		if CodeOf(err) != noneLeft {
			return c, err
		}
		if limit.IsZero() {
			limit = p.now().Add(acquireWait)
		}
		if others, _, _ := p.Counts(); others == 0 || p.now().After(limit) {
			return nil, err
		}
		if err := p.waitFreed(ctx); err != nil {
			return nil, err
		}
	}
}

// unused returns an idle connection that works, nil if there is none.
func (p *Pool) unused(ctx context.Context) (*Conn, error) {
	for {
		c, err := p.next()
		if c == nil || err != nil || p.now().Sub(c.lastUse) < probeAge {
			return c, err
		}
		if _, err := c.RoundTrip(ctx, nil); err == nil {
			return c, nil
		}
		p.forget(c)
		// With an ended ctx each of the other connections would wait for answerDelay.
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// open makes a connection.
func (p *Pool) open(ctx context.Context) (*Conn, error) {
	p.mu.Lock()
	resets := p.resets
	p.mu.Unlock()
	c, err := p.connect(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if CodeOf(err) == noneLeft {
			p.refusal, p.refused = err, p.now()
		}
		return nil, err
	}
	if p.closed || p.resets != resets {
		c.Close()
		if p.closed {
			return nil, store.ErrClosed
		}
		return nil, fmt.Errorf("%w: the primary changed", store.ErrUnavailable)
	}
	p.busy[c] = struct{}{}
	return c, nil
}

// refusedNow returns the last refusal of a connection if it is not older than refusedPause and the
// pool has others: each attempt costs PostgreSQL a process.
func (p *Pool) refusedNow() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.busy)+len(p.idle) == 0 || p.now().Sub(p.refused) >= refusedPause {
		return nil
	}
	return p.refusal
}

// waitFreed waits for the release of a connection, at most until another can be made.
func (p *Pool) waitFreed(ctx context.Context) error {
	t := time.NewTimer(refusedPause)
	defer t.Stop()
	select {
	case <-p.freed:
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// wakeLocked lets a call of waitFreed look for an idle connection.
//
// +checklocks:p.mu
func (p *Pool) wakeLocked() {
	select {
	case p.freed <- struct{}{}:
	default:
	}
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
	if n > 1 {
		p.wakeLocked() // one element can stand for several releases
	}
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
	p.wakeLocked()
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

// CloseIdle closes the connection that is idle for longest, if there is one, so that another can be made.
func (p *Pool) CloseIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) > 0 {
		p.idle[0].Close()
		p.idle = slices.Delete(p.idle, 0, 1)
	}
}
