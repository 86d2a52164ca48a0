package server

import (
	"slices"
	"sync"
)

const (
	// chunkBytes is the number of bytes at which a chunk is full.
	chunkBytes = 64 << 10
	// chunkCap is the capacity of a chunk, with space for the entity that fills it.
	chunkCap = chunkBytes + 16<<10
	// maxKeptBytes is the largest capacity of a buffer that is kept for later requests.
	maxKeptBytes = 256 << 10
)

var chunkPool = sync.Pool{New: func() any { return new([chunkCap]byte) }}

// newChunk returns an empty chunk.
func newChunk() []byte { return chunkPool.Get().(*[chunkCap]byte)[:0] }

// chunkList is the full chunks of a large response, in order. Chunks are pooled: a
// single growing buffer costs a third of a scan in copies and garbage.
type chunkList struct {
	full  [][]byte
	bytes int
}

// add appends a full chunk to the list and returns an empty one.
func (l *chunkList) add(b []byte) []byte {
	l.full = append(l.full, b)
	l.bytes += len(b)
	return newChunk()
}

// join returns a copy of all chunks followed by last.
func (l *chunkList) join(last []byte) []byte {
	return slices.Concat(append(slices.Clip(l.full), last)...)
}

// free returns chunk i to the pool. The length of the list does not change.
func (l *chunkList) free(i int) {
	if b := l.full[i]; cap(b) == chunkCap {
		chunkPool.Put((*[chunkCap]byte)(b[:chunkCap]))
	}
	l.full[i] = nil
}

// reset frees all chunks and empties the list.
func (l *chunkList) reset() {
	for i := range l.full {
		l.free(i)
	}
	l.full, l.bytes = l.full[:0], 0
}

// reusable returns b, emptied, for a later request, or nil if its capacity exceeds
// maxKeptBytes.
func reusable(b []byte) []byte {
	if cap(b) > maxKeptBytes {
		return nil
	}
	return b[:0]
}

var bufferPool = sync.Pool{New: func() any {
	b := newChunk()
	return &b
}}

// getBuffer returns an empty buffer for a response. Give owner back to putBuffer.
func getBuffer() (owner *[]byte, b []byte) {
	owner = bufferPool.Get().(*[]byte)
	return owner, (*owner)[:0]
}

// putBuffer returns a buffer to the pool: owner, which may be nil, as getBuffer
// returned it, and b, to which the buffer may have grown since.
func putBuffer(owner *[]byte, b []byte) {
	if owner != nil {
		*owner = reusable(b)
		bufferPool.Put(owner)
	}
}
