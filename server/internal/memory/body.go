package memory

import (
	"io"
	"net/http"
	"sync"

	"github.com/tablerock-db/tablerock/server/internal/problem"
)

// MaxBodyBytes is the length of the longest body.
const MaxBodyBytes = 4 << 20

// firstBodyBytes are allocated for a body before any of it was read.
const firstBodyBytes = 4 << 10

// Body is the body of a request.
type Body struct {
	Bytes []byte // what was read; valid until Free

	budget   *Budget
	owner    *[]byte // from bodyPool, nil before Read
	reserved int64
}

// NewBody returns a body, which is empty.
func NewBody(b *Budget) Body { return Body{budget: b} }

// bodyPool holds *[]byte, the memory of earlier bodies. Only a request with a body
// takes one, and reserves its bytes.
var bodyPool = sync.Pool{New: func() any { return new([]byte) }}

// Read reads the body from src, of the request that w answers. size is the length that the client
// announced, at most MaxBodyBytes; the body can be longer if a handler before this one has
// replaced it. Memory is allocated as the body arrives, not by size, which costs a client nothing.
// The error is problem.ErrBusy without memory, an *http.MaxBytesError for more than MaxBodyBytes,
// or that of src. Call it once until Free.
func (b *Body) Read(w http.ResponseWriter, src io.ReadCloser, size int64) error {
	b.owner = bodyPool.Get().(*[]byte)
	b.Bytes, *b.owner = *b.owner, nil
	return b.fill(w, src, size)
}

// fill is Read into the memory of an earlier body.
func (b *Body) fill(w http.ResponseWriter, src io.ReadCloser, size int64) error {
	b.reuse(size)
	// Made here, and not by the caller, it is not allocated.
	limited := http.MaxBytesReader(w, src, MaxBodyBytes)
	for {
		if int64(len(b.Bytes)) > size {
			size = MaxBodyBytes
		}
		if len(b.Bytes) == cap(b.Bytes) {
			if err := b.grow(min(int(size), max(firstBodyBytes, 4*len(b.Bytes)))); err != nil {
				return err
			}
		}
		n, err := limited.Read(b.Bytes[len(b.Bytes):cap(b.Bytes)])
		b.Bytes = b.Bytes[:len(b.Bytes)+n]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Free releases the memory of the body.
func (b *Body) Free() {
	b.budget.Release(b.reserved)
	if b.owner != nil {
		*b.owner = reusable(b.Bytes)
		bodyPool.Put(b.owner)
	}
	*b = NewBody(b.budget)
}

// reuse reserves the memory that Bytes has of an earlier body. It drops that memory
// if it is much more than size, so that a small body does not occupy the memory of a
// large one, or if the budget does not allow it.
func (b *Body) reuse(size int64) {
	kept := int64(cap(b.Bytes))
	if kept > max(firstBodyBytes+1, 4*size) || !b.budget.ReserveBody(kept) {
		b.Bytes = nil
		return
	}
	b.Bytes = b.Bytes[:0]
	b.reserved += kept
}

// grow reserves and allocates size bytes and one more, with which a read finds the
// end of the body.
func (b *Body) grow(size int) error {
	more := int64(size + 1 - cap(b.Bytes))
	if !b.budget.ReserveBody(more) {
		return problem.ErrBusy
	}
	b.reserved += more
	b.Bytes = append(make([]byte, 0, size+1), b.Bytes...)
	return nil
}
