package batch

import (
	"bytes"
	"testing"
)

// TestFindMark compares find with bytes.Index in all texts of up to nine bytes that a
// boundary can have or precede.
func TestFindMark(t *testing.T) {
	const letters, length = "\n-_b", 9
	var text [length]byte
	for _, boundary := range []string{"b", "_", "b_", "_b", "b_b", "__"} {
		s := newSections(nil, boundary)
		for n := range length + 1 {
			for number := range 1 << (2 * n) {
				for i := range n {
					text[i] = letters[number>>(2*i)&3]
				}
				if got, want := s.find(text[:n]), bytes.Index(text[:n], s.mark); got != want {
					t.Fatalf("boundary %q in %q: %d, want %d", boundary, text[:n], got, want)
				}
			}
		}
	}
}
