package memory

import (
	"io"
	"slices"
	"sync"

	"github.com/tablerock-db/tablerock/server/internal/problem"
)

const (
	// chunkBytes is the number of bytes at which a chunk is full.
	chunkBytes = 64 << 10
	// chunkCap is the capacity of a chunk, with space for the element that fills it.
	chunkCap = chunkBytes + 16<<10
	// maxKeptBytes is the largest capacity of a buffer that is kept for later requests.
	maxKeptBytes = 256 << 10
	// freePageBytes of a page are not reserved, so that each client gets the beginning of a
	// page, however many others do not read theirs.
	freePageBytes = 32 << 10
)

const (
	// MaxPageBytes is the length of the longest page, passed by at most one element.
	MaxPageBytes = 4 << 20
	// FreeBytes of a response that is no page are not reserved.
	FreeBytes = chunkCap
)

// Response is the memory of a response: full chunks, which a page has, and a buffer after
// them. Chunks are pooled: a single growing buffer costs a third of a scan in copies and
// garbage.
type Response struct {
	Buf []byte // the response after the full chunks, to append to; nil while the response is closed

	budget    *Budget
	owner     *[]byte // of Buf, from bufferPool, nil while the response is closed
	full      [][]byte
	fullBytes int
	grown     int   // bytes of the page that HasSpace has reserved
	reserved  int64 // for the response, grown included, and not yet sent
	held      int64 // until Free
}

// NewResponse returns a response, which is closed.
func NewResponse(b *Budget) Response { return Response{budget: b} }

var chunkPool = sync.Pool{New: func() any { return new([chunkCap]byte) }}

// newChunk returns an empty chunk.
func newChunk() []byte { return chunkPool.Get().(*[chunkCap]byte)[:0] }

// bufferPool holds *[]byte, which are empty buffers.
var bufferPool = sync.Pool{New: func() any {
	b := newChunk()
	return &b
}}

// reusable returns b, emptied, for a later request, or nil if its capacity exceeds
// maxKeptBytes.
func reusable(b []byte) []byte {
	if cap(b) > maxKeptBytes {
		return nil
	}
	return b[:0]
}

// Open gives a closed response an empty buffer.
func (r *Response) Open() {
	r.owner = bufferPool.Get().(*[]byte)
	r.Buf = (*r.owner)[:0]
}

// Close drops the buffer. A request has none while its body is read, since the client decides
// how long that takes.
func (r *Response) Close() {
	if r.owner != nil {
		*r.owner = reusable(r.Buf)
		bufferPool.Put(r.owner)
	}
	r.Buf, r.owner = nil, nil
}

// Free closes the response and releases all memory.
func (r *Response) Free() {
	r.budget.Release(r.reserved + r.held)
	r.dropChunks()
	r.Close()
	r.grown, r.reserved, r.held = 0, 0, 0
}

// Clear empties the response. What was reserved stays so.
func (r *Response) Clear() {
	r.dropChunks()
	r.Buf = reusable(r.Buf)
}

// Len returns the length of the response.
func (r *Response) Len() int { return r.fullBytes + len(r.Buf) }

// HasSpace reports whether the page can have another element, and reserves memory for it. The
// more memory unread pages occupy, the smaller are new pages.
func (r *Response) HasSpace() bool {
	for r.Len() >= freePageBytes+r.grown {
		if !r.growPage() {
			return false
		}
	}
	return true
}

// growPage reserves another chunk for the page, or reports false.
func (r *Response) growPage() bool {
	if freePageBytes+r.grown >= MaxPageBytes || !r.budget.reservePage(chunkBytes) {
		return false
	}
	r.reserved += chunkBytes
	r.grown += chunkBytes
	return true
}

// EndElement starts a new chunk if the last element of a page has filled Buf.
func (r *Response) EndElement() {
	if len(r.Buf) >= chunkBytes {
		r.full = append(r.full, r.Buf)
		r.fullBytes += len(r.Buf)
		r.Buf = newChunk()
	}
}

// Reserve reserves n bytes for the response, until they are sent, or returns problem.ErrBusy.
func (r *Response) Reserve(n int64) error {
	if !r.budget.reservePage(n) {
		return problem.ErrBusy
	}
	r.reserved += n
	return nil
}

// ReserveRest reserves the bytes by which large elements exceed what the response has reserved,
// since a slow client occupies them. The error is problem.ErrBusy.
func (r *Response) ReserveRest() error {
	more := int64(r.Len()) - r.reserved - FreeBytes
	if more <= 0 {
		return nil
	}
	return r.Reserve(more)
}

// Hold reserves n bytes that the request occupies beside the response, until Free, or returns
// problem.ErrBusy.
func (r *Response) Hold(n int64) error {
	if !r.budget.reservePage(n) {
		return problem.ErrBusy
	}
	r.held += n
	return nil
}

// Send writes the response to w. It releases what was written, so that a slow client only
// occupies memory for the rest.
func (r *Response) Send(w io.Writer) error {
	for i, b := range r.full {
		if _, err := w.Write(b); err != nil {
			return err
		}
		r.freeChunk(i)
		sent := min(r.reserved, chunkBytes)
		r.reserved -= sent
		r.budget.Release(sent)
	}
	_, err := w.Write(r.Buf)
	return err
}

// Take returns a copy of the response, and drops its chunks.
func (r *Response) Take() []byte {
	content := slices.Concat(append(slices.Clip(r.full), r.Buf)...)
	r.dropChunks()
	return content
}

// freeChunk returns chunk i to the pool. The length of r.full does not change.
func (r *Response) freeChunk(i int) {
	if b := r.full[i]; cap(b) == chunkCap {
		chunkPool.Put((*[chunkCap]byte)(b[:chunkCap]))
	}
	r.full[i] = nil
}

// dropChunks frees all chunks.
func (r *Response) dropChunks() {
	for i := range r.full {
		r.freeChunk(i)
	}
	r.full, r.fullBytes = r.full[:0], 0
}
