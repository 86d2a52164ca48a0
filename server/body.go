package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/server/internal/problem"
)

// Limits of the memory of requests.
const (
	maxBodyBytes     = 4 << 20  // of one request
	maxInFlightBytes = 64 << 20 // of all requests: bodies and large responses
	maxPagesBytes    = 32 << 20 // responses are refused beyond, so that slow readers do not block writers
	firstBodyBytes   = 4 << 10  // allocated for a body before any of it was read
)

// budget counts the bytes that all requests have reserved.
type budget struct{ used atomic.Int64 }

// reserveBody reserves n bytes for a body. It reports false, and reserves nothing, if
// the limit would be exceeded.
func (b *budget) reserveBody(n int64) bool { return b.reserve(n, maxInFlightBytes) }

// reservePage reserves n bytes for a response, likewise.
func (b *budget) reservePage(n int64) bool { return b.reserve(n, maxPagesBytes) }

func (b *budget) reserve(n, limit int64) bool {
	if b.used.Add(n) <= limit {
		return true
	}
	b.used.Add(-n)
	return false
}

func (b *budget) release(n int64) { b.used.Add(-n) }

// readBody reads the request's body into x.body. It allocates as the body arrives, not
// by Content-Length: that header costs a client nothing.
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
	x.reuseBody(size)
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
			// net/http does not read on in a closed body.
			_ = x.r.Body.Close()
			return nil
		}
		if err != nil {
			return x.bodyProblem(err)
		}
	}
}

// bodyProblem returns the problem of a body that could not be read, and notes in x.left that
// the client disconnected.
func (x *exchange) bodyProblem(err error) error {
	var limit *http.MaxBytesError
	if errors.As(err, &limit) {
		return problem.ErrBodyTooLarge
	}
	var network net.Error
	reset := errors.As(err, &network) && !network.Timeout()
	if reset || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(x.r.Context().Err(), context.Canceled) {
		x.left = fmt.Errorf("the client disconnected: read the body: %w", err)
	}
	return problem.ErrProcessing
}

// bodyPool holds *[]byte, the memory of earlier bodies. Only a request with a body
// takes one, and reserves its bytes.
var bodyPool = sync.Pool{New: func() any { return new([]byte) }}

// newBody gives x.body the memory of an earlier body.
func (x *exchange) newBody() {
	if x.body == nil {
		x.bodyOwner = bodyPool.Get().(*[]byte)
		x.body, *x.bodyOwner = *x.bodyOwner, nil
	}
}

// freeBody returns the memory of the body to the pool.
func (x *exchange) freeBody() {
	if x.bodyOwner != nil {
		*x.bodyOwner = reusable(x.body)
		bodyPool.Put(x.bodyOwner)
	}
	x.body, x.bodyOwner = nil, nil
}

// reuseBody reserves the memory that x.body has of an earlier body. It drops that memory
// if it is much more than size, so that a small body does not occupy the memory of a
// large one, or if the budget does not allow it.
func (x *exchange) reuseBody(size int64) {
	kept := int64(cap(x.body))
	if kept > max(firstBodyBytes+1, 4*size) || !x.s.inFlight.reserveBody(kept) {
		x.body = nil
		return
	}
	x.body = x.body[:0]
	x.bodyReserved += kept
}

// growBody reserves and allocates size bytes and one more, with which a read finds the
// end of the body.
func (x *exchange) growBody(size int) error {
	more := int64(size + 1 - cap(x.body))
	if !x.s.inFlight.reserveBody(more) {
		return problem.ErrBusy
	}
	x.bodyReserved += more
	x.body = append(make([]byte, 0, size+1), x.body...)
	return nil
}
