package server

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/server/internal/problem"
)

// Limits of what requests hold.
const (
	maxBodyBytes     = 4 << 20  // of one request
	maxInFlightBytes = 64 << 20 // of all requests, bodies and great pages
	maxPagesBytes    = 32 << 20 // of that, pages: who does not read leaves room for who writes
	firstBodyBytes   = 4 << 10  // that a body is given before any of it has come
)

// gauge counts bytes that requests hold.
type gauge struct{ held atomic.Int64 }

// acquire takes n bytes of a body, or none and reports false if they would be too
// many.
func (g *gauge) acquire(n int64) bool { return g.within(n, maxInFlightBytes) }

// acquirePage takes n bytes of a page, likewise.
func (g *gauge) acquirePage(n int64) bool { return g.within(n, maxPagesBytes) }

func (g *gauge) within(n, most int64) bool {
	if g.held.Add(n) <= most {
		return true
	}
	g.held.Add(-n)
	return false
}

func (g *gauge) release(n int64) { g.held.Add(-n) }

// readBody reads the request's body into x.body. Memory is taken as the body
// comes: an announcement costs a client nothing, and many could stop there.
func (x *exchange) readBody() error {
	encoding := x.r.Header["Content-Encoding"]
	if len(encoding) > 1 || len(encoding) == 1 && !strings.EqualFold(encoding[0], "identity") {
		return problem.ErrMediaType
	}
	size := x.r.ContentLength
	switch {
	case size > maxBodyBytes:
		return problem.ErrBodyTooLarge
	case size < 0:
		size = maxBodyBytes
	}
	x.freeBuffer()
	defer x.newBuffer()
	x.newBody()
	x.takeKept(size)
	source := http.MaxBytesReader(x.w, x.r.Body, maxBodyBytes)
	for {
		if len(x.body) == cap(x.body) {
			if err := x.growBody(min(int(size), max(firstBodyBytes, 4*len(x.body)))); err != nil {
				return err
			}
		}
		n, err := source.Read(x.body[len(x.body):cap(x.body)])
		x.body = x.body[:len(x.body)+n]
		if err == io.EOF {
			// net/http looks no further into a body that is closed.
			_ = x.r.Body.Close()
			return nil
		}
		if err != nil {
			return bodyProblem(err)
		}
	}
}

// bodyProblem returns what is wrong with a body that cannot be read.
func bodyProblem(err error) error {
	var limit *http.MaxBytesError
	if errors.As(err, &limit) {
		return problem.ErrBodyTooLarge
	}
	return problem.ErrProcessing
}

// bodies are *[]byte, the memory of earlier bodies. Only a request that has one takes
// it, and counts it: an answer that nobody reads is not to hold it as well.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

func (x *exchange) newBody() {
	if x.body == nil {
		x.bodyOwner = bodies.Get().(*[]byte)
		x.body, *x.bodyOwner = *x.bodyOwner, nil
	}
}

// freeBody ends what newBody began.
func (x *exchange) freeBody() {
	if x.bodyOwner != nil {
		*x.bodyOwner = reusable(x.body)
		bodies.Put(x.bodyOwner)
	}
	x.body, x.bodyOwner = nil, nil
}

// takeKept begins a body in the memory of an earlier one, which counts like any
// other, unless that is much more than size or than there is: small bodies are not
// to hold what a great one left.
func (x *exchange) takeKept(size int64) {
	kept := int64(cap(x.body))
	if kept > max(firstBodyBytes+1, 4*size) || !x.s.inFlight.acquire(kept) {
		x.body = nil
		return
	}
	x.body = x.body[:0]
	x.held += kept
}

// growBody makes room for size bytes and one more, with which a read meets the
// end, and counts them as held.
func (x *exchange) growBody(size int) error {
	more := int64(size + 1 - cap(x.body))
	if !x.s.inFlight.acquire(more) {
		return problem.ErrBusy
	}
	x.held += more
	x.body = append(make([]byte, 0, size+1), x.body...)
	return nil
}
