package hint

import (
	"strings"
	"testing"
)

func TestNear(t *testing.T) {
	many := strings.Fields("Table1 Table2 Table3 Table4")
	for _, c := range []struct {
		typed string
		names []string
		want  string
	}{
		{"Orders", nil, ""},
		{"Ordres", []string{"Items", "Orders"}, ", did you mean Orders"},
		{"orde", []string{"Items", "OrdersOfTheYear"}, ", did you mean OrdersOfTheYear"},
		{"ORDRES", []string{"Order", "Orders"}, ", did you mean Order or Orders"},
		{"Ordxyz", []string{"Orders"}, ""},
		{"--daat", []string{"--account", "--data"}, ", did you mean --data"},
		{"--x", []string{"--account", "--data"}, ""},
		{"--port", []string{"--cert", "--output", "--quiet"}, ""}, // two of four letters differ
		{"--acuont", []string{"--account", "--data"}, ", did you mean --account"},
		{"Tables", many, ", did you mean Table1 or Table2 or Table3"},
	} {
		if got := Near(c.typed, c.names); got != c.want {
			t.Errorf("Near(%q, %q) = %q, want %q", c.typed, c.names, got, c.want)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "abc", 0},
		{"abc", "abd", 1},
		{"abc", "xabc", 1},
		{"abcd", "bcd", 1},
		{"list", "lsit", 1}, // a swap is one edit
		{"listen", "lsitne", 2},
		{"abc", "cab", 2},
		{"kitten", "sitting", 3},
	} {
		for _, pair := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			if got := edits(pair[0], pair[1]); got != c.want {
				t.Errorf("edits(%q, %q) = %d, want %d", pair[0], pair[1], got, c.want)
			}
		}
	}
}
