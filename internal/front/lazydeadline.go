package front

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// lazyDeadline is the deadline of one direction of a connection. http.Server sets it
// seven times per request, usually to a later time and while no read or write waits,
// and each call costs as much as a short system call. A lazyDeadline therefore passes
// a deadline to the connection only when a read or write begins or is waiting. When one
// begins, the connection keeps a deadline that is earlier than the requested one; if it
// expires, the read or write is retried with the requested deadline.
type lazyDeadline struct {
	apply func(time.Time) error

	mu      sync.Mutex
	wanted  time.Time // as requested; zero means none; +checklocks:mu
	applied time.Time // as set on the connection; zero means none; +checklocks:mu
	exact   bool      // wanted was applied; +checklocks:mu
	expired bool      // applied has expired; +checklocks:mu
	waiting int       // reads or writes in progress; +checklocks:mu
}

// abortSeconds separates deadlines that mean "now" from others, in Unix seconds.
// net/http aborts a pending read with a deadline in 1970.
const abortSeconds = 1 << 24

// set changes the deadline. It also applies to reads or writes in progress.
func (d *lazyDeadline) set(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted, d.exact = t, false
	if d.waiting > 0 {
		return d.applyLocked()
	}
	return nil
}

// +checklocks:d.mu
func (d *lazyDeadline) applyLocked() error {
	d.applied, d.exact, d.expired = d.wanted, true, false
	return d.apply(d.wanted)
}

// Call beginWait before each read or write. If it returns an error, do not read or
// write.
func (d *lazyDeadline) beginWait() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	switch none := d.wanted.IsZero(); {
	case !none && d.wanted.Unix() < abortSeconds:
		err = os.ErrDeadlineExceeded
	case d.expired, !none && (d.applied.IsZero() || d.applied.After(d.wanted)):
		err = d.applyLocked()
	}
	if err == nil {
		d.waiting++
	}
	return err
}

// Call endWait with the error of each read or write. It reports whether to retry,
// because the connection's deadline expired before the wanted one.
func (d *lazyDeadline) endWait(err error) (retry bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting--
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.expired = true
	return !d.exact
}

// lazyConn is a connection with lazy deadlines.
type lazyConn struct {
	net.Conn
	reads, writes lazyDeadline
}

func newLazyConn(c net.Conn) lazyConn {
	return lazyConn{Conn: c, reads: lazyDeadline{apply: c.SetReadDeadline}, writes: lazyDeadline{apply: c.SetWriteDeadline}}
}

// Read reads from the connection until the read deadline.
func (p *lazyConn) Read(b []byte) (int, error) {
	for {
		if err := p.reads.beginWait(); err != nil {
			return 0, err
		}
		n, err := p.Conn.Read(b)
		if retry := p.reads.endWait(err); !retry || n > 0 {
			return n, err
		}
	}
}

// Write writes to the connection until the write deadline.
func (p *lazyConn) Write(b []byte) (written int, err error) {
	for {
		if err := p.writes.beginWait(); err != nil {
			return written, err
		}
		n, err := p.Conn.Write(b[written:])
		written += n
		if retry := p.writes.endWait(err); !retry {
			return written, err
		}
	}
}

// SetDeadline sets the read and write deadlines.
func (p *lazyConn) SetDeadline(t time.Time) error {
	return errors.Join(p.SetReadDeadline(t), p.SetWriteDeadline(t))
}

// SetReadDeadline sets the read deadline.
func (p *lazyConn) SetReadDeadline(t time.Time) error { return p.reads.set(t) }

// SetWriteDeadline sets the write deadline.
func (p *lazyConn) SetWriteDeadline(t time.Time) error { return p.writes.set(t) }
