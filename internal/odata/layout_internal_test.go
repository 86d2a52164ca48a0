package odata

import (
	"fmt"
	"strings"
	"testing"
)

// TestLayoutIsBounded parses entities with long names and with many names, and
// checks how many gaps the parser retains.
func TestLayoutIsBounded(t *testing.T) {
	several := func(n int, name string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"%s%d":1,`, name, i)
		}
		return "{" + b.String() + `"PartitionKey":"p","RowKey":"r"}`
	}
	var p parser
	for _, c := range []struct {
		name string
		src  string
		gaps int // that are retained
	}{
		{"two members", several(0, ""), 2},
		{"a long name", several(1, strings.Repeat("n", maxGapBytes)), 0},
		{"some long names", several(20, strings.Repeat("n", maxGapBytes/8)), 7},
		{"many names", several(maxGaps+100, "n"), maxGaps},
		{"two members again", several(0, ""), 2},
	} {
		if _, err := p.parse([]byte(c.src), ParseOptions{}); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if l := &p.layout; len(l.gaps) != c.gaps || len(l.text) > maxGapBytes || cap(l.text) > 2*maxGapBytes || cap(l.gaps) > 2*maxGaps {
			t.Errorf("%s: %d gaps (capacity %d) of %d bytes (capacity %d), want %d gaps",
				c.name, len(l.gaps), cap(l.gaps), len(l.text), cap(l.text), c.gaps)
		}
	}
}
