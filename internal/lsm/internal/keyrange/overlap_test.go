package keyrange

import "testing"

func TestOverlapBytes(t *testing.T) {
	for _, c := range []struct {
		name                 string
		lo, hi, lower, upper string
		openEnd              bool
		want                 int64
	}{
		{"first half", "k\x00", "k\x80", "", "k\x40", false, 500},
		{"last quarter", "k\x00", "k\x80", "k\x60", "", true, 250},
		{"middle", "k\x00", "k\x80", "k\x20", "k\x40", false, 250},
		{"beyond both bounds", "k\x00", "k\x80", "a", "z", false, 1000},
		{"very little", "k\x00", "k\x80", "k\x40", "k\x40\x00\x01", false, 1},
		{"keys too similar", "k", "k\x00", "k\x00", "", true, 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			upper := []byte(c.upper)
			if c.openEnd {
				upper = nil
			}
			got := OverlapBytes(1000, []byte(c.lo), []byte(c.hi), []byte(c.lower), upper)
			if got != c.want {
				t.Errorf("OverlapBytes of [%q, %q] in [%q, %q): %d, want %d", c.lo, c.hi, c.lower, upper, got, c.want)
			}
		})
	}
}

func TestOverlapDepth(t *testing.T) {
	for _, c := range []struct {
		name         string
		starts, ends string // of one byte each
		want         int
	}{
		{"none", "", "", 0},
		{"apart", "ace", "bdf", 1},
		{"end where another begins", "ab", "bc", 2},
		{"one in another", "abh", "gci", 2},
		{"three at one key", "cabx", "ddey", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			split := func(s string) (out [][]byte) {
				for i := range s {
					out = append(out, []byte{s[i]})
				}
				return out
			}
			if got := OverlapDepth(split(c.starts), split(c.ends)); got != c.want {
				t.Errorf("OverlapDepth of %q to %q: %d, want %d", c.starts, c.ends, got, c.want)
			}
		})
	}
}
