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

// TestFileLimit writes keys before, at and behind an older one.
func TestFileLimit(t *testing.T) {
	older := []byte("m")
	l := FileLimit{Entries: 10, Older: func(user []byte) []byte {
		if bytes.Compare(user, older) > 0 {
			return nil
		}
		return older
	}}
	for _, c := range []struct {
		first, user string
		want        bool
	}{
		{"a", "b", false}, {"a", "m", true}, {"a", "z", true}, {"m", "m", true}, {"n", "z", false},
	} {
		l.Begin([]byte(c.first))
		if got := l.Reached([]byte(c.user)); got != c.want {
			t.Errorf("file from %q to %q reached an older key: %t, want %t", c.first, c.user, got, c.want)
		}
	}
	if (&FileLimit{}).Reached([]byte("z")) {
		t.Error("without older runs a file reached an older key")
	}
}
