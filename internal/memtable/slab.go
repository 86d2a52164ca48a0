package memtable

// slabLen is the number of elements that a slab allocates at once.
const slabLen = 64

// slab is a growing array whose elements never move, so growing copies
// nothing, and whose memory the garbage collector does not scan when T has no
// pointers.
type slab[T any] struct {
	chunks []*[slabLen]T
	n      uint32
}

// at returns element i.
func (s *slab[T]) at(i uint32) *T { return &s.chunks[i/slabLen][i%slabLen] }

// run returns n elements from i on; n divides slabLen, and i is a multiple.
func (s *slab[T]) run(i, n uint32) []T {
	return s.chunks[i/slabLen][i%slabLen:][:n:n]
}

// add appends n zero elements, where n divides slabLen and is the same in all
// calls, and returns the place of the first and how many were allocated.
func (s *slab[T]) add(n uint32) (i uint32, allocated int) {
	i = s.n
	if int(i/slabLen) == len(s.chunks) {
		s.chunks = append(s.chunks, new([slabLen]T))
		allocated = slabLen
	}
	s.n += n
	return i, allocated
}
