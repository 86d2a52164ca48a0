package keyrange

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/internal/manifest"
)

// TestSamples has a file of new keys, one of which every second key is old, one of old keys, and
// one without entries.
func TestSamples(t *testing.T) {
	var s Samples
	const n = 10_000
	for i := range 3 * n {
		s.Add(i/n, fmt.Appendf(nil, "%d/%06d", i/n, i))
	}
	s.Remove(func(user []byte) bool {
		return bytes.HasPrefix(user, []byte("2/")) || bytes.HasPrefix(user, []byte("1/")) && user[len(user)-1]%2 == 0
	})
	shares := s.Shares(4)
	for i, want := range []float64{1, 0.5, 0, 0} {
		if got := float64(shares[i]) / manifest.AllNewKeys; got < want-0.1 || got > want+0.1 {
			t.Errorf("file %d: share %.3f, want %.1f", i, got, want)
		}
	}
	if shares[2] == 0 || shares[3] != 0 {
		t.Errorf("shares %v, want 0 only for the file without samples, where it is unknown", shares)
	}
}
