package webguard

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Failures limits failed logins of an address: maxFailures at once, then one in
// failureTime.
type Failures struct {
	now func() time.Time

	mu sync.Mutex
	of map[netip.Prefix]*bucket // +checklocks:mu
}

// NewFailures returns a Failures without failures.
func NewFailures(now func() time.Time) *Failures {
	return &Failures{now: now, of: map[netip.Prefix]*bucket{}}
}

type bucket struct {
	n  float64 // failures that are left
	at time.Time
}

const (
	maxFailures  = 5
	failureTime  = 12 * time.Second
	maxAddresses = 4096
)

// Begin counts a login of an address as failed until Succeed is called, so that logins at the
// same time count too. If it may not begin yet, Begin counts nothing and returns how long it
// must wait.
func (f *Failures) Begin(addr netip.Prefix) (wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.fill(addr)
	if b != nil && b.n < 1 {
		return time.Duration((1 - b.n) * float64(failureTime))
	}
	if b == nil {
		for other := range f.of {
			if len(f.of) < maxAddresses {
				break
			}
			delete(f.of, other)
		}
		b = &bucket{n: maxFailures, at: f.now()}
		f.of[addr] = b
	}
	b.n--
	return 0
}

// Succeed says that a login that began has not failed.
func (f *Failures) Succeed(addr netip.Prefix) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.fill(addr); b != nil {
		b.n++
		f.fill(addr)
	}
}

// fill returns the bucket of an address with what it gained since its last use, nil if it is
// full.
//
// +checklocks:f.mu
func (f *Failures) fill(addr netip.Prefix) *bucket {
	b := f.of[addr]
	if b == nil {
		return nil
	}
	now := f.now()
	b.n += float64(now.Sub(b.at)) / float64(failureTime)
	b.at = now
	if b.n >= maxFailures {
		delete(f.of, addr)
		return nil
	}
	return b
}

// SourceOf returns the network of a client: its address, or for IPv6 the 64 bits that one
// machine usually has.
func SourceOf(r *http.Request) (addr netip.Addr, network netip.Prefix) {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return addr, netip.Prefix{}
	}
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	network, _ = addr.Prefix(bits) // the length is valid
	return addr, network
}
