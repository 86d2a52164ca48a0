package front

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// deadline is the deadline of one direction of a connection. An http.Server sets
// it seven times for each request, nearly always to a later time and with nobody
// waiting, and each costs as much as a short system call. So the connection learns of
// one only when somebody waits or is going to, and not even then if the one it has
// is earlier: when that passes, the wait goes on under the one that holds.
type deadline struct {
	apply func(time.Time) error

	mu      sync.Mutex
	wanted  time.Time // zero for none, as is the next; +checklocks:mu
	applied time.Time // what the connection has; +checklocks:mu
	exact   bool      // both are the same; +checklocks:mu
	passed  bool      // applied is over; +checklocks:mu
	waiting int       // reads or writes; +checklocks:mu
}

// aborting is the latest deadline, in seconds of Unix, that no clock was asked for:
// it stands for now.
const aborting = 1 << 24

// set changes the deadline, for those who wait too.
func (d *deadline) set(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted, d.exact = t, false
	if d.waiting > 0 {
		return d.applyLocked()
	}
	return nil
}

// +checklocks:d.mu
func (d *deadline) applyLocked() error {
	d.applied, d.exact, d.passed = d.wanted, true, false
	return d.apply(d.wanted)
}

// begin has to be called before a read or write, which is not to be if it fails.
func (d *deadline) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	switch none := d.wanted.IsZero(); {
	case !none && d.wanted.Unix() < aborting:
		err = os.ErrDeadlineExceeded
	case d.passed, !none && (d.applied.IsZero() || d.applied.After(d.wanted)):
		err = d.applyLocked()
	}
	if err == nil {
		d.waiting++
	}
	return err
}

// end has to be called with the result of a read or write. It reports whether that
// has to begin again, because not the deadline was over, but an earlier one.
func (d *deadline) end(err error) (again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting--
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.passed = true
	return !d.exact
}

// patient is a connection with deadlines of that kind.
type patient struct {
	net.Conn
	reads, writes deadline
}

func patientConn(c net.Conn) patient {
	return patient{Conn: c, reads: deadline{apply: c.SetReadDeadline}, writes: deadline{apply: c.SetWriteDeadline}}
}

// Read reads.
func (p *patient) Read(b []byte) (int, error) {
	for {
		if err := p.reads.begin(); err != nil {
			return 0, err
		}
		n, err := p.Conn.Read(b)
		if again := p.reads.end(err); !again || n > 0 {
			return n, err
		}
	}
}

// Write writes.
func (p *patient) Write(b []byte) (written int, err error) {
	for {
		if err := p.writes.begin(); err != nil {
			return written, err
		}
		n, err := p.Conn.Write(b[written:])
		written += n
		if again := p.writes.end(err); !again {
			return written, err
		}
	}
}

// SetDeadline sets both deadlines.
func (p *patient) SetDeadline(t time.Time) error {
	return errors.Join(p.SetReadDeadline(t), p.SetWriteDeadline(t))
}

// SetReadDeadline sets the deadline of reads.
func (p *patient) SetReadDeadline(t time.Time) error { return p.reads.set(t) }

// SetWriteDeadline sets the deadline of writes.
func (p *patient) SetWriteDeadline(t time.Time) error { return p.writes.set(t) }
