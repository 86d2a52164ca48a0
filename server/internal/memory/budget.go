// Package memory limits and reuses the memory of requests: their bodies and responses, which
// they occupy for as long as their clients want.
//
// A Budget counts the bytes of all requests of a server, and may be used concurrently. A Body
// and a Response belong to one request, and one goroutine uses them at a time. A Body reserves
// its memory before it is allocated; a Response what it has beyond its first bytes, before it is
// sent. Free releases what they have reserved.
package memory

import (
	"cmp"
	"sync/atomic"
)

// MaxBytes is the default of Budget.Limit.
const MaxBytes = 64 << 20

// Budget counts the bytes that all requests have reserved. Its zero value has none.
type Budget struct {
	// Limit is the most bytes of all requests, bodies and large responses, 0 for MaxBytes. Set it
	// before the first use. Responses may have half of it, so that slow readers do not block writers.
	Limit int64

	used atomic.Int64
}

// ReserveBody reserves n bytes for a body. It reports false, and reserves nothing, if
// Limit would be exceeded.
func (b *Budget) ReserveBody(n int64) bool { return b.reserve(n, cmp.Or(b.Limit, MaxBytes)) }

// reservePage reserves n bytes for a response, likewise with half of Limit.
func (b *Budget) reservePage(n int64) bool { return b.reserve(n, cmp.Or(b.Limit, MaxBytes)/2) }

func (b *Budget) reserve(n, limit int64) bool {
	if b.used.Add(n) <= limit {
		return true
	}
	b.used.Add(-n)
	return false
}

// Release releases n bytes that were reserved.
func (b *Budget) Release(n int64) { b.used.Add(-n) }
