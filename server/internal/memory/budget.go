// Package memory limits and reuses the memory of requests: their bodies and responses, which
// they occupy for as long as their clients want.
//
// A Budget counts the bytes of all requests of a server, and may be used concurrently. A Body
// and a Response belong to one request, and one goroutine uses them at a time. A Body reserves
// its memory before it is allocated; a Response what it has beyond its first bytes, before it is
// sent. Free releases what they have reserved.
package memory

import "sync/atomic"

// Limits of a Budget.
const (
	MaxBytes      = 64 << 20 // of all requests: bodies and large responses
	MaxPagesBytes = 32 << 20 // responses are refused beyond, so that slow readers do not block writers
)

// Budget counts the bytes that all requests have reserved. Its zero value has none.
type Budget struct{ used atomic.Int64 }

// ReserveBody reserves n bytes for a body. It reports false, and reserves nothing, if
// MaxBytes would be exceeded.
func (b *Budget) ReserveBody(n int64) bool { return b.reserve(n, MaxBytes) }

// ReservePage reserves n bytes for a response, likewise with MaxPagesBytes.
func (b *Budget) ReservePage(n int64) bool { return b.reserve(n, MaxPagesBytes) }

func (b *Budget) reserve(n, limit int64) bool {
	if b.used.Add(n) <= limit {
		return true
	}
	b.used.Add(-n)
	return false
}

// Release releases n bytes that were reserved.
func (b *Budget) Release(n int64) { b.used.Add(-n) }
