package filesize

import (
	"bytes"
	"testing"
)

// TestLimit writes keys before, at and behind an older one.
func TestLimit(t *testing.T) {
	older := []byte("m")
	l := NewLimit(99, func(user []byte) []byte {
		if bytes.Compare(user, older) > 0 {
			return nil
		}
		return older
	})
	if l.Entries != 10 {
		t.Errorf("a file of a run of 99 entries may have %d, want 10", l.Entries)
	}
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
	if (&Limit{}).Reached([]byte("z")) {
		t.Error("without older runs a file reached an older key")
	}
}
