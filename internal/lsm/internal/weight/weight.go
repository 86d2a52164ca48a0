// Package weight tells which ranges of keys have gathered so much above the
// bottom that they are worth merging.
package weight

import (
	"bytes"
	"sort"
)

// Ranges cuts the keys where the files of the bottom begin. Range i goes from
// Starts[i] to the next start; the first reaches down to the least key.
type Ranges struct {
	Starts [][]byte
	Bottom []int64 // bytes of the bottom in each range
	Above  []int64 // estimated bytes above it
	Dead   []int64 // how many of them may hide older versions
}

// New returns n ranges of no weight.
func New(n int) *Ranges {
	return &Ranges{Starts: make([][]byte, n), Bottom: make([]int64, n), Above: make([]int64, n), Dead: make([]int64, n)}
}

// Find returns the range of a key.
func (r *Ranges) Find(key []byte) int {
	return sort.Search(len(r.Starts)-1, func(i int) bool { return bytes.Compare(r.Starts[i+1], key) > 0 })
}

// Bounds returns the bounds of ranges i up to j.
func (r *Ranges) Bounds(i, j int) (lower, upper []byte) {
	if i > 0 {
		lower = r.Starts[i]
	}
	if j < len(r.Starts) {
		upper = r.Starts[j]
	}
	return lower, upper
}

// Live estimates what all ranges take without what is hidden.
func (r *Ranges) Live() (n int64) {
	for i := range r.Starts {
		n += r.live(i)
	}
	return n
}

func (r *Ranges) live(i int) int64 { return r.Bottom[i] + r.Above[i] - r.Dead[i] }

// heavy reports whether what may hide older versions in range i weighs as much
// as what is live: then half of the range may be hidden.
func (r *Ranges) heavy(i int) bool { return r.Dead[i] > 0 && r.Dead[i] >= r.live(i) }

// Due returns the range to merge, from the first on and around: one that is
// heavy, or, if the disk is crowded, one that is half as heavy, or else the
// heaviest. It is -1 for none.
func (r *Ranges) Due(first int, crowded bool) int {
	n, best := len(r.Starts), -1
	for j := range n {
		i := (first + j) % n
		if r.heavy(i) || crowded && r.Dead[i] > 0 && r.Dead[i] >= r.live(i)/2 {
			return i
		}
		// Compare dead/live without dividing.
		if crowded && r.Dead[i] > 0 && (best < 0 || float64(r.Dead[i])*float64(r.live(best)) > float64(r.Dead[best])*float64(r.live(i))) {
			best = i
		}
	}
	return best
}

// Extend returns the end of a stretch of ranges that begins with i and is worth
// merging at once: neighbours that are due as well, and others as long as the
// stretch would leave a small file.
func (r *Ranges) Extend(i int, fileBytes int64) (end int) {
	bottom, total := r.Bottom[i], r.Bottom[i]+r.Above[i]
	for end = i + 1; end < len(r.Starts); end++ {
		if !r.heavy(end) && bottom >= fileBytes/2 {
			break
		}
		bottom += r.Bottom[end]
		total += r.Bottom[end] + r.Above[end]
		if total > 2*fileBytes {
			break
		}
	}
	return end
}
