package codec

import (
	"sync"
	"sync/atomic"
)

// ShapeList is a growing list of encoded shapes, which are decoded when they are asked
// for. Clients decide how many shapes there are, and a decoded shape takes many times
// the bytes of its encoding; so the list keeps only as many decoded as a budget
// allows. Only one goroutine at a time may call Add. All other methods are safe for
// concurrent use, also during Add.
type ShapeList struct {
	src    []byte
	budget int64
	chunks atomic.Pointer[[]*shapeChunk]
	n      atomic.Int64
	over   atomic.Bool // the decoded shapes exceeded the budget once

	mu sync.Mutex
	// kept lists the decoded shapes, some of them twice.
	// +checklocks:mu
	kept []uint32
	// used is about how many bytes the decoded shapes take.
	// +checklocks:mu
	used int64
}

// shapeChunk is some shapes of a list. Chunks never move.
type shapeChunk struct {
	off     [chunkShapes]uint32 // in src
	decoded [chunkShapes]atomic.Pointer[Shape]
}

const (
	chunkShapes     = 16
	chunkShapeBytes = 12
	keptBytes       = 4
)

// NewShapeList returns an empty list of shapes within src, whose encodings must not
// change once they are added. The list keeps decoded shapes of about budget bytes.
func NewShapeList(src []byte, budget int) *ShapeList {
	l := &ShapeList{src: src, budget: int64(budget)}
	l.chunks.Store(new([]*shapeChunk))
	return l
}

// Len returns the number of shapes.
func (l *ShapeList) Len() int { return int(l.n.Load()) }

// Add appends the shape s, whose encoding begins at off. If s is nil, the encoding must have passed CheckShape; beyond the
// budget it is not decoded before At asks for it.
func (l *ShapeList) Add(off int, s *Shape) {
	i := l.Len()
	chunks := *l.chunks.Load()
	if i/chunkShapes == len(chunks) {
		longer := append(chunks, new(shapeChunk))
		l.chunks.Store(&longer)
		chunks = longer
	}
	chunks[i/chunkShapes].off[i%chunkShapes] = uint32(off)
	if s == nil && !l.over.Load() {
		s = decodeChecked(l.src[off:])
	}
	if s != nil {
		l.keep(i, s)
	}
	l.n.Store(int64(i) + 1)
}

// At returns shape i.
func (l *ShapeList) At(i int) *Shape {
	chunks := *l.chunks.Load()
	if s := chunks[i/chunkShapes].decoded[i%chunkShapes].Load(); s != nil {
		return s
	}
	s := decodeChecked(l.src[chunks[i/chunkShapes].off[i%chunkShapes]:])
	l.keep(i, s)
	return s
}

// keep keeps shape i decoded. If the budget is exceeded, it drops all others: those, not
// all of the list, which may be many times longer.
func (l *ShapeList) keep(i int, s *Shape) {
	size := int64(s.MemBytes() + keptBytes)
	l.mu.Lock()
	defer l.mu.Unlock()
	chunks := *l.chunks.Load()
	if l.used += size; l.used > l.budget {
		for _, k := range l.kept {
			chunks[k/chunkShapes].decoded[k%chunkShapes].Store(nil)
		}
		l.kept, l.used = l.kept[:0], size
		l.over.Store(true)
	}
	l.kept = append(l.kept, uint32(i))
	chunks[i/chunkShapes].decoded[i%chunkShapes].Store(s)
}

// MemBytes returns about how much memory l takes beside the encoded shapes.
func (l *ShapeList) MemBytes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.used) + l.Len()*chunkShapeBytes
}

// MemBytesOf returns how much memory a holder of s, a shape of l, counts for it: none
// if l keeps all shapes decoded, and so counts them itself.
func (l *ShapeList) MemBytesOf(s *Shape) int {
	if !l.over.Load() {
		return 0
	}
	return s.MemBytes()
}

// Close drops the shapes and src, which what still refers to l would keep. No method may be called
// after it.
func (l *ShapeList) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.src, l.kept, l.used = nil, nil, 0
	l.chunks.Store(new([]*shapeChunk))
	l.n.Store(0)
}
