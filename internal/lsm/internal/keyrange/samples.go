package keyrange

import "slices"

// Samples estimate Share of files that are written before the files below them are known. The
// zero Samples have none. They are not safe for concurrent use.
type Samples struct {
	n    uint64 // entries
	keys []sample
	// counts has the number of sampled entries of each file.
	counts []int
}

type sample struct {
	file int
	user []byte
}

// Add adds the next entry of a file, with a user key that rises.
func (s *Samples) Add(file int, user []byte) {
	if s.n++; !Sampled(s.n) {
		return
	}
	s.counts = append(s.counts, make([]int, max(0, file+1-len(s.counts)))...)
	s.counts[file]++
	s.keys = append(s.keys, sample{file, slices.Clone(user)})
}

// Remove removes the keys that an older version may have.
func (s *Samples) Remove(old func(user []byte) bool) {
	s.keys = slices.DeleteFunc(s.keys, func(k sample) bool { return old(k.user) })
}

// Shares returns Share of each of n files, with the keys that are left as the new ones.
func (s *Samples) Shares(n int) []uint32 {
	found, shares := make([]int, n), make([]uint32, n)
	for _, k := range s.keys {
		found[k.file]++
	}
	for i := range s.counts {
		shares[i] = Share(found[i], s.counts[i])
	}
	return shares
}
