package codec

import "sync/atomic"

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
	used   atomic.Int64 // about how many bytes the decoded shapes take
}

// shapeChunk is some shapes of a list. Chunks never move.
type shapeChunk struct {
	off     [chunkShapes]uint32 // in src
	decoded [chunkShapes]atomic.Pointer[Shape]
}

const (
	chunkShapes     = 16
	chunkShapeBytes = 12
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

// Add appends the shape s, whose encoding begins at off.
func (l *ShapeList) Add(off int, s *Shape) {
	i := l.Len()
	chunks := *l.chunks.Load()
	if i/chunkShapes == len(chunks) {
		chunks = append(chunks, new(shapeChunk))
		l.chunks.Store(&chunks)
	}
	chunks[i/chunkShapes].off[i%chunkShapes] = uint32(off)
	l.keep(chunks, i, s)
	l.n.Store(int64(i) + 1)
}

// At returns shape i.
func (l *ShapeList) At(i int) *Shape {
	chunks := *l.chunks.Load()
	if s := chunks[i/chunkShapes].decoded[i%chunkShapes].Load(); s != nil {
		return s
	}
	s, _, err := DecodeShape(l.src[chunks[i/chunkShapes].off[i%chunkShapes]:])
	if err != nil {
		panic("codec: a shape that was added cannot be decoded: " + err.Error())
	}
	l.keep(chunks, i, s)
	return s
}

// keep keeps shape i decoded. If the budget is exceeded, it drops all others.
func (l *ShapeList) keep(chunks []*shapeChunk, i int, s *Shape) {
	size := int64(s.MemBytes())
	if l.used.Add(size) > l.budget {
		for _, c := range chunks {
			for k := range c.decoded {
				c.decoded[k].Store(nil)
			}
		}
		l.used.Store(size)
	}
	chunks[i/chunkShapes].decoded[i%chunkShapes].Store(s)
}

// MemBytes returns about how much memory l takes beside the encoded shapes.
func (l *ShapeList) MemBytes() int { return int(l.used.Load()) + l.Len()*chunkShapeBytes }
