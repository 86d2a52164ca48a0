package batch

import (
	"bytes"
	"testing"
)

// TestFindMark compares find with bytes.Index in all texts of up to seven bytes that a
// boundary can have, precede or follow.
func TestFindMark(t *testing.T) {
	const letters, length = "\n}x-_b", 7
	var text [length]byte
	for _, boundary := range []string{"b", "_", "b_", "_b", "b_b", "__"} {
		s := newSections(nil, boundary)
		texts := 1
		for n := range length + 1 {
			for number := range texts {
				for i := range n {
					text[i] = letters[number%len(letters)]
					number /= len(letters)
				}
				if got, want := s.find(text[:n], 0), findMark(text[:n], s.mark); got != want {
					t.Fatalf("boundary %q in %q: %d, want %d", boundary, text[:n], got, want)
				}
			}
			texts *= len(letters)
		}
	}
}

// findMark is find without an anchor.
func findMark(text, mark []byte) int {
	at := -1
	for _, before := range []string{"\n", "}"} {
		if i := bytes.Index(text, append([]byte(before), mark...)); i >= 0 && (at < 0 || i+1 < at) {
			at = i + 1
		}
	}
	if bytes.HasPrefix(text, mark) {
		at = 0
	}
	return at
}
