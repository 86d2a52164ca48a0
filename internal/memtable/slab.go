package memtable

// slabLen is the number of elements of one allocation.
const slabLen = 64

// slab is an array that grows without moving its elements. The garbage collector
// does not scan its memory if T has no pointers.
type slab[T any] struct {
	chunks []*[slabLen]T
	n      uint32
}

// at returns element i.
func (s *slab[T]) at(i uint32) *T { return &s.chunks[i/slabLen][i%slabLen] }

// run returns n elements from i on. n must divide slabLen, and i must be a multiple
// of n.
func (s *slab[T]) run(i, n uint32) []T {
	return s.chunks[i/slabLen][i%slabLen:][:n:n]
}

// add appends n zero elements and returns the index of the first and the number of
// elements allocated. n must divide slabLen and be the same in all calls.
func (s *slab[T]) add(n uint32) (i uint32, allocated int) {
	i = s.n
	if int(i/slabLen) == len(s.chunks) {
		s.chunks = append(s.chunks, new([slabLen]T))
		allocated = slabLen
	}
	s.n += n
	return i, allocated
}
