package server

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// Limits of what requests hold.
const (
	maxBodyBytes     = 4 << 20  // of one request
	maxInFlightBytes = 64 << 20 // of the bodies of all requests
	firstBodyBytes   = 4 << 10  // of a body whose length is not announced
)

// gauge counts bytes that requests hold.
type gauge struct{ held atomic.Int64 }

// acquire takes n bytes, or none and reports false if they would be too many.
func (g *gauge) acquire(n int64) bool {
	if g.held.Add(n) <= maxInFlightBytes {
		return true
	}
	g.held.Add(-n)
	return false
}

func (g *gauge) release(n int64) { g.held.Add(-n) }

// readBody reads the request's body into x.body.
func (x *exchange) readBody() error {
	encoding := x.r.Header["Content-Encoding"]
	if len(encoding) > 1 || len(encoding) == 1 && !strings.EqualFold(encoding[0], "identity") {
		return errMediaType
	}
	size := x.r.ContentLength
	switch {
	case size > maxBodyBytes:
		return errBodyTooLarge
	case size < 0:
		size = firstBodyBytes
	}
	x.body = x.body[:0]
	if err := x.growBody(int(size)); err != nil {
		return err
	}
	source := http.MaxBytesReader(x.w, x.r.Body, maxBodyBytes)
	for {
		if len(x.body) == cap(x.body) {
			if err := x.growBody(2 * cap(x.body)); err != nil {
				return err
			}
		}
		n, err := source.Read(x.body[len(x.body):cap(x.body)])
		x.body = x.body[:len(x.body)+n]
		var limit *http.MaxBytesError
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &limit):
			return errBodyTooLarge
		case err != nil:
			return errProcessing
		}
	}
}

// growBody makes room for size bytes and one more, with which a read meets the
// end, and counts them as held.
func (x *exchange) growBody(size int) error {
	if size < cap(x.body) {
		return nil
	}
	more := int64(size + 1 - cap(x.body))
	if !x.s.inFlight.acquire(more) {
		return errBusy
	}
	x.held += more
	x.body = append(make([]byte, 0, size+1), x.body...)
	return nil
}
