package server

import "testing"

// TestSameTable compares names that differ in case. The Kelvin sign and the long s fold
// to ASCII letters in Unicode, but not in table names.
func TestSameTable(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", "", true},
		{"Book", "Book", true},
		{"Book", "bOOK", true},
		{"Book", "Books", false},
		{"book", "boo\u212a", false},
		{"books", "book\u017f", false},
		{"\u00e4", "\u00c4", false},
	} {
		if got := sameTable(c.a, c.b); got != c.want {
			t.Errorf("sameTable(%q, %q) = %v, want %v", c.a, c.b, got, c.want)
		}
	}
}
